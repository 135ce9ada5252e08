/* Scratch memory of an operation, from the caller's arena; released as a whole when the operation
 * returns. */
#ifndef TARE_KERNELS_CPU_SCRATCH_H
#define TARE_KERNELS_CPU_SCRATCH_H

#include "base/arena.h"
#include "fault.h"

/* Allocate n floats, 64-byte aligned, not zeroed. NULL: out of memory, which is stored as the
 * context's fault; the operation then leaves its results unchanged. */
static inline void *scratch(const struct kctx *c, int64_t n)
{
    struct err e;
    void *p;
    if (arena_push_raw(c->scratch, n * 4, &p, &e)) kernel_fail(c, e.code, "%s", e.message);
    return p;
}

#endif
