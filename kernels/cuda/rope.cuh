/* Rotate one pair of a head by an angle (rope.cu). */
#ifndef TARE_KERNELS_CUDA_ROPE_CUH
#define TARE_KERNELS_CUDA_ROPE_CUH

#include "cuda.h"

__device__ inline float2 rope_rotated(float a, float b, float cosine, float sine)
{
    return make_float2(fmaf(a, cosine, -(b * sine)), fmaf(b, cosine, a * sine));
}

#endif
