/* Host memory: zeroed, 64-byte aligned, on huge pages for large blocks. */
#include "base/arena.h"

#include <unistd.h>

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

static int64_t cpu_kv_bytes(struct attn_shape s, int64_t n_blocks)
{
    return n_blocks * s.kv_heads * KV_BLOCK * s.head_dim * (kv_words(&s) ? 2 : 4);
}

static int64_t memory_cache_most(const struct kctx *c)
{
    (void)c;
    return (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE) / 4;
}

static const struct backend host_backend = {.logits_floats = HOST_LOGITS_FLOATS,
                                            .alloc = memory_alloc,
                                            .release = memory_release,
                                            .upload = memory_copy,
                                            .download = memory_copy,
                                            .zero = memory_zero,
                                            .cache_most = memory_cache_most};
