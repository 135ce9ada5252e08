/* Writes a code and a message into the host's buffer, and returns the code. */
#ifndef TARE_CLUSTERERS_FAIL_H
#define TARE_CLUSTERERS_FAIL_H

#include <tare/plugin.h>

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 3, 4))) static inline tare_status fail(tare_error *error, tare_status code, const char *format, ...)
{
    va_list args;
    error->code = code;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return code;
}

#endif
