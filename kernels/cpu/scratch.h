/* Working memory of an operation: pieces of the caller's arena, given back together when the operation returns. */
#ifndef TARE_KERNELS_CPU_SCRATCH_H
#define TARE_KERNELS_CPU_SCRATCH_H

#include "base/arena.h"
#include "fault.h"

/* n floats, 64-byte aligned, not zeroed. NULL: no memory, which is the context's fault then; the operation leaves its results as they are. */
static inline void *scratch(const struct kctx *c, int64_t n)
{
    struct err e;
    void *p;
    if (arena_push_raw(c->scratch, n * 4, &p, &e)) kernel_fail(c, e.code, "%s", e.message);
    return p;
}

#endif
