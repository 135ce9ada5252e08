/* Host memory: zeroed, 64-byte aligned, on huge pages where large. */
#include "base/arena.h"

static void *memory_alloc(const struct kctx *c, int64_t bytes)
{
    struct err e;
    void *p;
    (void)c;
    return mem_new(bytes, &p, &e) ? NULL : p;
}

static void memory_release(const struct kctx *c, void *p)
{
    (void)c;
    mem_free(p);
}

static void memory_copy(const struct kctx *c, void *dst, const void *src, int64_t bytes)
{
    (void)c;
    memcpy(dst, src, (size_t)bytes);
}

static void memory_zero(const struct kctx *c, void *p, int64_t bytes)
{
    (void)c;
    memset(p, 0, (size_t)bytes);
}
