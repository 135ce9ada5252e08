/* The gate of a gated MLP (swiglu.cu). */
#ifndef TARE_KERNELS_CUDA_SWIGLU_CUH
#define TARE_KERNELS_CUDA_SWIGLU_CUH

#include "convert.h"

#define GELU_C 1.5957691216057308f /* 2 sqrt(2/pi) */
#define GELU_C3 (GELU_C * 0.044715f)

__device__ inline float swiglu_sigmoid(float g)
{
    const float e = exact_exp(-fabsf(g)), q = 1.0f + e;
    return (g < 0 ? e : 1.0f) / q;
}

__device__ inline float gelu_slope(float g, float c3)
{
    return fmaf(c3, g * g, GELU_C);
}

template <int GELU> __device__ inline float swiglu_gate(float g)
{
    return swiglu_sigmoid(GELU ? g * gelu_slope(g, GELU_C3) : g);
}

#endif
