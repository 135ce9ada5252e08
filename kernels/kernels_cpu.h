/* The CPU tables, each built from the same source for one instruction set, and definitions that the
 * builds share. */
#ifndef TARE_KERNELS_KERNELS_CPU_H
#define TARE_KERNELS_KERNELS_CPU_H

#include "base/rng.h"
#include "kernels.h"

extern const struct kernels kernels_ref_any, kernels_ref_fma; /* ref/ */
extern const struct kernels kernels_ref_amx;                  /* ref/, sums in the order of tiles/ */
extern const struct kernels kernels_avx2, kernels_avx512;     /* cpu/ */
extern const struct kernels kernels_avx512bf16;               /* avx512 with the bf16 dot product */
extern const struct kernels kernels_neon;                     /* cpu/, on aarch64 */
/* 1: kernels_avx512bf16 is faster than avx512 on this CPU; both compute the same bits. */
int kernels_avx512bf16_faster(void);
int kernels_avx512bf16_check(void); /* 1: the instruction computes what the table relies on */
/* The AVX-512 tiling on AVX2 vectors: slow, for tests on a machine without AVX-512. */
extern const struct kernels kernels_emu512, kernels_emu512bf16;
int kernels_emu512bf16_check(void);

/* 1 if the CPU tables store keys and values in bf16, two numbers per word, the first in the lower
 * half:
 *   k: [n_blocks, J, D/2, 16], dims 2i and 2i + 1 of a key
 *   v: [n_blocks, J, 8, D], keys 2i and 2i + 1 of a dim
 * Attention scores, weights and sums are fp32 in either case. The backward pass rounds keys and
 * values in the same way. */
static inline int kv_words(const struct attn_shape *s)
{
    return s->dtype == DTYPE_BF16 && s->head_dim % 2 == 0;
}

/* Index of one bf16 number in k or v: dim d of the key in this lane of a block, for head j. */
static inline int64_t kv_word_k(const struct attn_shape *s, int64_t block, int64_t j, int64_t lane, int64_t d)
{
    return (((block * s->kv_heads + j) * (s->head_dim / 2) + d / 2) * KV_BLOCK + lane) * 2 + d % 2;
}
static inline int64_t kv_word_v(const struct attn_shape *s, int64_t block, int64_t j, int64_t lane, int64_t d)
{
    return (((block * s->kv_heads + j) * (KV_BLOCK / 2) + lane / 2) * s->head_dim + d) * 2 + lane % 2;
}

/* The random draw of a row as a mass in [0, total). */
static inline uint64_t sample_target(const struct sample_row *row, uint64_t total)
{
    uint32_t w[4];
    rng_block((struct rng_key){{row->key[0], row->key[1]}}, row->position, 0, w);
    return (uint64_t)((unsigned __int128)(((uint64_t)w[1] << 32 | w[0]) >> 11) * total >> 53);
}

#endif
