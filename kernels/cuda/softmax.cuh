/* A row of logits relative to its maximum, as in ref/head.c: d_v = max(z_v / T - m, -200). */
#ifndef TARE_KERNELS_CUDA_SOFTMAX_CUH
#define TARE_KERNELS_CUDA_SOFTMAX_CUH

#include "reduce.cuh"

static __device__ inline float softmax_shifted(float z, float scale, float m)
{
    const float d = z * scale - m;
    return SOFTMAX_FLOOR > d ? SOFTMAX_FLOOR : d;
}

/* max_v z_v / T; NaN is skipped. */
template <int THREADS> static __device__ float softmax_max(const float *__restrict__ z, float scale, int64_t v, float *part)
{
    float m = -INFINITY;
    for (int64_t i = threadIdx.x; i < v; i += THREADS) m = max_op::of(m, z[i] * scale);
    return block_reduce<max_op, THREADS>(m, part) + 0.0f; /* turns -0 into +0 */
}

#endif
