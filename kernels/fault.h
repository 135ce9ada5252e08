/* Store the first failure of a context (kernels.h). Uses no function of the engine, so that
 * libtare_cuda.so does not link to it. */
#ifndef TARE_KERNELS_FAULT_H
#define TARE_KERNELS_FAULT_H

#include "kernels.h"

#include <stdarg.h>
#include <stdio.h>

static inline int kernel_faulted(const struct kctx *c)
{
    return c->fault && c->fault->code != TARE_OK;
}

static inline void kernel_fail(const struct kctx *c, tare_status code, const char *format, ...) ERR_PRINTF(3, 4);
static inline void kernel_fail(const struct kctx *c, tare_status code, const char *format, ...)
{
    va_list args;
    if (kernel_faulted(c)) return;
    va_start(args, format);
    if (c->fault) {
        c->fault->code = code;
        vsnprintf(c->fault->message, sizeof c->fault->message, format, args);
    } else {
        fputs("tare: ", stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
    }
    va_end(args);
}

#endif
