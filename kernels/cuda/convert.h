/* Conversion of fp32 to bf16 (nearest even): as a copy, or in kernels that write and read rows
 * (kernels.h, bf16_rows). */
#ifndef TARE_KERNELS_CUDA_CONVERT_H
#define TARE_KERNELS_CUDA_CONVERT_H

#include "mma.cuh"

__device__ inline void row_store(float *to, float x)
{
    *to = x;
}

__device__ inline void row_store(__nv_bfloat16 *to, float x)
{
    *to = __float2bfloat16_rn(x);
}

__device__ inline float row_load(const float *from)
{
    return *from;
}

__device__ inline float row_load(const __nv_bfloat16 *from)
{
    return __bfloat162float(*from);
}

__device__ inline float rounded_if(int rounds, float x)
{
    return rounds ? __bfloat162float(__float2bfloat16_rn(x)) : x;
}

void to_bf16(const struct kctx *c, __nv_bfloat16 *to, const float *from, int64_t n);

#endif
