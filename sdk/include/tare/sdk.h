/* Helpers for plugins in C: header-only, and not part of the ABI. A plugin may do without them. */
#ifndef TARE_SDK_H
#define TARE_SDK_H

#include "plugin.h"
#include "text.h"

/* Sets the caller's error and returns code:
 *     return tare_fail(error, TARE_E_RANGE, "group %lld: no rollouts", (long long)m);
 * In tare_fail and tare_print, %g and the other floating-point conversions write a point in every
 * locale. */
__attribute__((format(printf, 3, 4), unused)) static tare_status tare_fail(tare_error *error, tare_status code, const char *format,
                                                                           ...)
{
    va_list args;
    if (!error) return code;
    error->code = code;
    va_start(args, format);
    tare_format(error->message, sizeof error->message, format, args);
    va_end(args);
    return code;
}

/* Writes formatted text, at most 511 bytes, to a stream (JSON or state). Returns the stream's
 * status, or TARE_E_RANGE when the text is longer. */
__attribute__((format(printf, 2, 3), unused)) static tare_status tare_print(const tare_stream *out, const char *format, ...)
{
    char text[512];
    va_list args;
    int n;
    va_start(args, format);
    n = tare_format(text, sizeof text, format, args);
    va_end(args);
    if (n < 0 || n >= (int)sizeof text) return TARE_E_RANGE;
    return out->write(out->ctx, text, n);
}

/* The entry point of a file with one plugin. DESCRIPTOR is a static tare_descriptor; MINOR is the
 * oldest minor version of a host that can run it. */
#define TARE_PLUGIN_ENTRY(DESCRIPTOR) TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 0)
#define TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, MINOR)                                                                                 \
    const tare_plugin *tare_plugin_v1(const tare_host *host, tare_error *error)                                                    \
    {                                                                                                                              \
        static const tare_descriptor *const descriptors[] = {&(DESCRIPTOR)};                                                       \
        static const tare_plugin plugin = {sizeof plugin, TARE_ABI_MINOR, MINOR, 1, descriptors};                                  \
        (void)host, (void)error;                                                                                                   \
        return &plugin;                                                                                                            \
    }

#endif
