/* The SIMD backend in one translation unit, built once per instruction set. CPU_TABLE and CPU_NAME
 * name the build, and the compiler's target flags select the vectors (simd.h). Definitions of the
 * operations: kernels_ops.h and ref/. */
#include "caches.h"
#include "kernels.h"
#include "kernels_cpu.h"
#include "scratch.h"
#include "spans.h"
#include "vectors.h"

#include <sched.h>
#include <stdatomic.h>

#include "../ref/memory.c"

#include "gemm.c"
#include "gemm_int8.c"
#include "gemm_skinny.c"

#include "gemm_lay.c"
#include "gemm_low.c"

#include "gemm_blocked.c"
#include "small.c"

#include "attention.c"
#include "attention_grad.c"
#include "digest.c"
#include "elementwise.c"
#include "head.c"
#include "matmul.c"

#include "low_rank.c"
#include "norm.c"
#include "optimizer.c"
#include "rope.c"
#include "sample.c"
#include "swiglu.c"

#ifdef CPU_DOT
/* Numbers that differ in magnitude by up to 2^16, so that a different order and a missing or extra
 * rounding change many of the sums. */
static uint32_t dot_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    const uint32_t u = *state;
    return (u & 0x80000000u) | (0x3f800000u - ((u >> 27 & 15u) << 23)) | (u >> 4 & 0x7fffffu);
}

static uint32_t dot_word(uint32_t *state)
{
    const uint32_t high = dot_bits(state) & 0xffff0000u;
    return high | dot_bits(state) >> 16;
}

/* 1: the instruction computes its documented result, on which this table relies. */
int CPU_DOT_CHECK(void);
int CPU_DOT_CHECK(void)
{
    uint32_t state = 1;
    for (int round = 0; round < 32; round++) {
        uint32_t x[LANES], y[LANES];
        float sum[LANES], out[LANES];
        for (int i = 0; i < LANES; i++) {
            x[i] = dot_word(&state);
            y[i] = dot_word(&state);
            sum[i] = f32_from_bits(dot_bits(&state));
        }
        v_store(out, v_dot(v_load((const float *)(const void *)x), v_load((const float *)(const void *)y), v_load(sum)));
        for (int i = 0; i < LANES; i++) {
            const float odd = fmaf(f32_from_bits(x[i] & 0xffff0000u), f32_from_bits(y[i] & 0xffff0000u), sum[i]);
            if (fmaf(f32_from_bits(x[i] << 16), f32_from_bits(y[i] << 16), odd) != out[i]) return 0;
        }
    }
    return 1;
}
#endif

#ifdef CPU_DOT_FASTER
/* Ticks of a number of rounds of eight chains, each a dot product of pairs or a multiply-add; the
 * minimum of several trials. */
static uint64_t chain_ticks(int dot)
{
    enum { CHAINS = 8, TURNS = 512, TRIES = 8 };
    uint64_t least = UINT64_MAX;
    vf sums[CHAINS];
    for (int i = 0; i < CHAINS; i++) sums[i] = v_zero();
    for (int t = 0; t < TRIES; t++) {
        const uint64_t begin = __rdtsc();
        for (int n = 0; n < TURNS; n++) UNROLL for (int i = 0; i < CHAINS; i++)
            {
                sums[i] = dot ? v_dot(v_zero(), v_zero(), sums[i]) : v_fma(v_zero(), v_zero(), sums[i]);
                v_keep(sums[i]);
            }
        const uint64_t took = __rdtsc() - begin;
        least = took < least ? took : least;
    }
    return least;
}

/* A dot product does the work of two multiply-adds. It takes the time of one on AMD processors, and
 * of more than four on Intel processors, which have AMX for this purpose. */
int CPU_DOT_FASTER(void);
int CPU_DOT_FASTER(void)
{
    return chain_ticks(1) < 2 * chain_ticks(0);
}
#endif

#define ENTRY(NAME) .NAME = cpu_##NAME,
const struct kernels CPU_TABLE = {
    .name = CPU_NAME,
    .backend = &host_backend,
    .windows = 1,
    .bf16_rows = 1,
    .row_chains = 1,
    .packed_bytes = matmul_packed_bytes,
    .int8_bytes = matmul_int8_bytes,
    .kv_bytes = cpu_kv_bytes,
    .few_rows = cpu_few_rows,
    KERNEL_OPERATIONS(ENTRY).matmul_dw_apart = cpu_matmul_dw_apart,
    .matmul_low_rank = cpu_matmul_low_rank,
    .matmul_dx_low_rank = cpu_matmul_dx_low_rank,
    .low_rank_dw = cpu_low_rank_dw,
};
