#include "rollout/kv_blocks.h"

#include "base/arena.h"

tare_status kv_blocks_init(struct kv_blocks *b, int64_t n, struct err *e)
{
    const int64_t peak = b->peak;
    kv_blocks_free(b);
    b->peak = peak;
    if (n < 1 || n > INT32_MAX / KV_BLOCK) FAIL(e, TARE_E_RANGE, "a key/value cache of %lld blocks", (long long)n);
    TRY(mem_new(n * (int64_t)sizeof *b->free, (void **)&b->free, e));
    TRY(mem_new(n * (int64_t)sizeof *b->refs, (void **)&b->refs, e));
    b->n = n;
    kv_blocks_reset(b);
    return TARE_OK;
}

void kv_blocks_free(struct kv_blocks *b)
{
    mem_free(b->free);
    mem_free(b->refs);
    *b = (struct kv_blocks){0};
}

void kv_blocks_reset(struct kv_blocks *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        b->free[i] = (int32_t)(b->n - 1 - i);
        b->refs[i] = 0;
    }
    b->n_free = b->n;
}

int32_t kv_blocks_take(struct kv_blocks *b)
{
    if (!b->n_free) return -1;
    const int32_t block = b->free[--b->n_free];
    b->refs[block] = 1;
    if (b->n - b->n_free > b->peak) b->peak = b->n - b->n_free;
    return block;
}

void kv_blocks_share(struct kv_blocks *b, int32_t block)
{
    b->refs[block]++;
}

void kv_blocks_release(struct kv_blocks *b, int32_t block)
{
    if (--b->refs[block] == 0) b->free[b->n_free++] = block;
}
