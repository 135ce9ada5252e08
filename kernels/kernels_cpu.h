/* The CPU tables, one a build of the same source for an instruction set, and what the builds share. */
#ifndef TARE_KERNELS_CPU_H
#define TARE_KERNELS_CPU_H

#include "base/rng.h"
#include "kernels.h"

extern const struct kernels kernels_ref_any, kernels_ref_fma; /* ref/ */
extern const struct kernels kernels_avx2, kernels_avx512;     /* cpu/ */
extern const struct kernels kernels_avx512bf16;               /* avx512 with the bf16 dot product */
int kernels_avx512bf16_check(void);                           /* 1: the instruction does what the table relies on */
/* The AVX-512 tiling on AVX2 vectors: slow, for tests on a machine without AVX-512. */
extern const struct kernels kernels_emu512, kernels_emu512bf16;
int kernels_emu512bf16_check(void);

/* The draw of a row as a mass in [0, total). */
static inline uint64_t sample_target(const struct sample_row *row, uint64_t total)
{
    uint32_t w[4];
    rng_block((struct rng_key){{row->key[0], row->key[1]}}, row->position, 0, w);
    return (uint64_t)((unsigned __int128)(((uint64_t)w[1] << 32 | w[0]) >> 11) * total >> 53);
}

#endif
