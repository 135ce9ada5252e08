/* The blocks of the key/value cache, with reference counts: the full blocks of a prompt are held by
 * the prompt and by each of its samples, and are freed when the last holder releases them. A block
 * is 16 keys in every layer (KV_BLOCK). The most recently freed block is taken first, so that the
 * part of the cache in use stays small and warm.
 *
 * The choice of block never changes a result. Threads: one owner. */
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

/* Allocates n free blocks and frees the previous ones. */
tare_status kv_blocks_init(struct kv_blocks *b, int64_t n, struct err *e);
void kv_blocks_free(struct kv_blocks *b);
/* Frees all blocks; peak is unchanged. */
void kv_blocks_reset(struct kv_blocks *b);
/* Returns a block with one reference, or -1 if none is free. */
int32_t kv_blocks_take(struct kv_blocks *b);
void kv_blocks_share(struct kv_blocks *b, int32_t block);
void kv_blocks_release(struct kv_blocks *b, int32_t block);

#endif
