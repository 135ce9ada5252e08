/* The norm of a row by a block, for rmsnorm (norm.cu) and for kernels that compute the row
 * themselves (matmul_add.cu): the order is the same, so the results are bit-identical. */
#ifndef TARE_KERNELS_CUDA_NORM_CUH
#define TARE_KERNELS_CUDA_NORM_CUH

#include "convert.h"
#include "reduce.cuh"

/* rows up to this width take a warp, wider ones a block */
enum { NORM_WARP_WIDTH = 256, NORM_THREADS = 256 };

/* 1 / sqrt(mean + eps), from the thread's sum of squares of columns thread, thread + THREADS, ...
 * in ascending order. */
template <int THREADS> __device__ inline float norm_scale(float sum, int64_t width, float eps, float *part)
{
    return 1.0f / sqrtf(block_reduce<add_op, THREADS>(sum, part) / (float)width + eps);
}

#endif
