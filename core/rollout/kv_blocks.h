/* The blocks of the key/value cache, handed out with reference counts: the full blocks of a prompt are held by the prompt and by each of its
 * samples, and come back when the last holder lets go. A block is 16 keys in every layer (KV_BLOCK). The block taken is always one of those
 * given back last, so that the part of the cache in use stays small and warm.
 *
 * Which block a key lands in never changes a result. Threads: one owner. */
#ifndef TARE_CORE_ROLLOUT_KV_BLOCKS_H
#define TARE_CORE_ROLLOUT_KV_BLOCKS_H

#include "base/err.h"
#include "kernels.h"

struct kv_blocks {
    int64_t n, n_free, peak; /* blocks, free ones, most ever in use */
    int32_t *free;           /* [n] a stack */
    int32_t *refs;           /* [n] */
};

static inline int64_t kv_blocks_for(int64_t keys)
{
    return (keys + KV_BLOCK - 1) / KV_BLOCK;
}

/* Makes n free blocks; what was there before is freed. */
tare_status kv_blocks_init(struct kv_blocks *b, int64_t n, struct err *e);
void kv_blocks_free(struct kv_blocks *b);
/* Everything free again; peak stays. */
void kv_blocks_reset(struct kv_blocks *b);
/* A block with one reference, or -1 when none is free. */
int32_t kv_blocks_take(struct kv_blocks *b);
void kv_blocks_share(struct kv_blocks *b, int32_t block);
void kv_blocks_release(struct kv_blocks *b, int32_t block);

#endif
