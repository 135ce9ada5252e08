/* Helpers for plugins in C: header-only, and not part of the ABI. A plugin may do without them. */
#ifndef TARE_SDK_H
#define TARE_SDK_H

#include "plugin.h"
#include "text.h"

#include <math.h>

/* ---------------------------------------------------------------- errors and streams */

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

/* Writes bytes to a stream. TARE_OK for a NULL stream, which is one that the host does not want. */
__attribute__((unused)) static tare_status tare_put(const tare_stream *out, const void *data, int64_t size)
{
    return out ? out->write(out->ctx, data, size) : TARE_OK;
}

/* Writes a text that ends with NUL. */
__attribute__((unused)) static tare_status tare_say(const tare_stream *out, const char *text)
{
    return tare_put(out, text, (int64_t)strlen(text));
}

/* Writes formatted text, at most 511 bytes. Returns the stream's status, or TARE_E_RANGE when the
 * text is longer. */
__attribute__((format(printf, 2, 3), unused)) static tare_status tare_print(const tare_stream *out, const char *format, ...)
{
    char text[512];
    va_list args;
    int n;
    va_start(args, format);
    n = tare_format(text, sizeof text, format, args);
    va_end(args);
    if (n < 0 || n >= (int)sizeof text) return TARE_E_RANGE;
    return tare_put(out, text, n);
}

/* Fills data from a stream that is read. */
__attribute__((unused)) static tare_status tare_get(const tare_stream *in, void *data, int64_t size)
{
    return in->read(in->ctx, data, size);
}

/* ---------------------------------------------------------------- verifiers */

/* Gives the verdict: code and reward, and the answer that was found in the completion. */
__attribute__((unused)) static tare_status tare_judge(tare_verdict *out, int32_t code, double reward, tare_text extracted)
{
    out->code = code;
    out->reward = reward;
    return extracted.size > 0 ? tare_put(out->extracted, extracted.data, extracted.size) : TARE_OK;
}

/* Appends a segment. Returns 0 if the host does not want segments or the buffer is full. */
__attribute__((unused)) static int tare_add_segment(tare_verdict *out, int64_t end, double reward)
{
    if (!out->segment || out->n_segments >= out->segment_capacity) return 0;
    const tare_segment segment = {end, reward};
    out->segment[out->n_segments++] = segment;
    return 1;
}

/* ---------------------------------------------------------------- tables */

/* Rows of a parameter table. DEFAULT is a text, as in an INI file. MIN or MAX TARE_NO_MIN, TARE_NO_MAX:
 * no bound. UNIT: a text, or NULL. FLAGS: further TARE_PARAM_... bits. */
#define TARE_NO_MIN (-HUGE_VAL)
#define TARE_NO_MAX HUGE_VAL
#define TARE_NUMBER_PARAM(TYPE, KEY, DEFAULT, DOC, UNIT, MIN, MAX, FLAGS)                                                          \
    {                                                                                                                              \
        .key = (KEY), .fallback = (DEFAULT), .doc = (DOC), .unit = (UNIT), .min = (double)(MIN) > TARE_NO_MIN ? (double)(MIN) : 0, \
        .max = (double)(MAX) < TARE_NO_MAX ? (double)(MAX) : 0, .type = (TYPE),                                                    \
        .flags = (uint32_t)(FLAGS) | ((double)(MIN) > TARE_NO_MIN ? (uint32_t)TARE_PARAM_MIN : 0) |                                \
                 ((double)(MAX) < TARE_NO_MAX ? (uint32_t)TARE_PARAM_MAX : 0)                                                      \
    }
#define TARE_FLOAT_PARAM(KEY, DEFAULT, DOC, MIN, MAX, FLAGS)                                                                       \
    TARE_NUMBER_PARAM(TARE_PARAM_FLOAT, KEY, DEFAULT, DOC, NULL, MIN, MAX, FLAGS)
#define TARE_INT_PARAM(KEY, DEFAULT, DOC, MIN, MAX, FLAGS)                                                                         \
    TARE_NUMBER_PARAM(TARE_PARAM_INT, KEY, DEFAULT, DOC, NULL, MIN, MAX, FLAGS)
#define TARE_UNIT_PARAM(KEY, DEFAULT, DOC, UNIT, MIN, MAX, FLAGS)                                                                  \
    TARE_NUMBER_PARAM(TARE_PARAM_FLOAT, KEY, DEFAULT, DOC, UNIT, MIN, MAX, FLAGS)
#define TARE_TEXT_PARAM(TYPE, KEY, DEFAULT, DOC, CHOICES, FLAGS)                                                                   \
    {                                                                                                                              \
        .key = (KEY), .fallback = (DEFAULT), .doc = (DOC), .choices = (CHOICES), .type = (TYPE), .flags = (uint32_t)(FLAGS)        \
    }
#define TARE_BOOL_PARAM(KEY, DEFAULT, DOC, FLAGS) TARE_TEXT_PARAM(TARE_PARAM_BOOL, KEY, DEFAULT, DOC, NULL, FLAGS)
#define TARE_CHOICE_PARAM(KEY, DEFAULT, DOC, CHOICES, FLAGS) TARE_TEXT_PARAM(TARE_PARAM_CHOICE, KEY, DEFAULT, DOC, CHOICES, FLAGS)
#define TARE_STRING_PARAM(KEY, DEFAULT, DOC, FLAGS) TARE_TEXT_PARAM(TARE_PARAM_STRING, KEY, DEFAULT, DOC, NULL, FLAGS)
#define TARE_PATH_PARAM(KEY, DEFAULT, DOC, FLAGS) TARE_TEXT_PARAM(TARE_PARAM_PATH, KEY, DEFAULT, DOC, NULL, FLAGS)

/* The data of a wanted column: const float *entropy = TARE_COLUMN(batch, W_ENTROPY, float); */
#define TARE_COLUMN(FROM, WANT, TYPE) ((const TYPE *)(FROM)->column[WANT].data)

/* Members of a tare_descriptor for tables PARAMS and WANTS with N rows. */
#define TARE_PARAMS(PARAMS, N) .params = (PARAMS), .n_params = (N), .param_size = sizeof(tare_param)
#define TARE_WANTS(WANTS, N) .wants = (WANTS), .n_wants = (N), .want_size = sizeof(tare_want)

/* ---------------------------------------------------------------- the entry point */

#define TARE_QUOTED(X) #X
#define TARE_TEXT_OF(X) TARE_QUOTED(X)
#ifdef __clang__
#define TARE_COMPILER "clang " TARE_TEXT_OF(__clang_major__) "." TARE_TEXT_OF(__clang_minor__)
#else
#define TARE_COMPILER "gcc " TARE_TEXT_OF(__GNUC__) "." TARE_TEXT_OF(__GNUC_MINOR__)
#endif
#define TARE_BUILD "tare-sdk " TARE_TEXT_OF(TARE_ABI_MAJOR) "." TARE_TEXT_OF(TARE_ABI_MINOR) ".0, c, " TARE_COMPILER

/* The entry point of a file with these plugins, each a static tare_descriptor:
 *     TARE_PLUGIN_ENTRY(&FIRST, &SECOND) */
#define TARE_PLUGIN_ENTRY(...)                                                                                                     \
    const tare_plugin *tare_plugin_v1(const tare_host *host, tare_error *error)                                                    \
    {                                                                                                                              \
        static const tare_descriptor *const descriptors[] = {__VA_ARGS__};                                                         \
        static const tare_plugin plugin = {.struct_size = sizeof plugin,                                                           \
                                           .minor_built = TARE_ABI_MINOR,                                                          \
                                           .n_descriptors = sizeof descriptors / sizeof *descriptors,                              \
                                           .descriptors = descriptors,                                                             \
                                           .build = TARE_BUILD};                                                                   \
        (void)host, (void)error;                                                                                                   \
        return &plugin;                                                                                                            \
    }

#endif
