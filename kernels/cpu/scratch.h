/* Working memory of an operation: pieces of the caller's arena, given back together when the operation returns. */
#ifndef TARE_KERNELS_SCRATCH_H
#define TARE_KERNELS_SCRATCH_H

#include "base/arena.h"
#include "base/log.h"

#include <stdlib.h>

/* n floats, 64-byte aligned, not zeroed. Operations have no status to return: without memory the process ends, saying so. */
static inline void *scratch(const struct kctx *c, int64_t n)
{
    struct err e;
    void *p;
    if (arena_push_raw(c->scratch, n * 4, &p, &e)) {
        log_error(&e);
        exit(1);
    }
    return p;
}

#endif
