#include "convert.h"

#include "mma.cuh"

static __global__ void to_bf16_four(uint2 *to, const float4 *from, int64_t n)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        const float4 x = from[i];
        to[i] = make_uint2(bf16_pair(x.x, x.y), bf16_pair(x.z, x.w));
    }
}

static __global__ void to_bf16_one(__nv_bfloat16 *to, const float *from, int64_t n)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        to[i] = __float2bfloat16_rn(from[i]);
}

void cuda_to_bf16(const struct kctx *c, const struct op_to_bf16 *o)
{
    CUDA_OP(c, "to_bf16", "n", o->n);
    to_bf16(c, static_cast<__nv_bfloat16 *>(o->y), o->x, o->n);
}

void to_bf16(const struct kctx *c, __nv_bfloat16 *to, const float *from, int64_t n)
{
    if (n <= 0) return;
    if (n % 4 || (uintptr_t)from % 16 || (uintptr_t)to % 8)
        CUDA_LAUNCH(c, to_bf16_one, cuda_blocks(n, 256), 256, 0, to, from, n);
    else
        CUDA_LAUNCH(c, to_bf16_four, cuda_blocks(n / 4, 256), 256, 0, reinterpret_cast<uint2 *>(to),
                    reinterpret_cast<const float4 *>(from), n / 4);
}
