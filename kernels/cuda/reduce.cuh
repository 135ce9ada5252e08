/* Reductions over the threads of a warp and of a block, in one fixed tree. Every thread gets the
 * bit-identical result, because the exchange is symmetric. THREADS: the threads that reduce
 * together, 32 or all of a one-dimensional block of up to 1024. */
#ifndef TARE_KERNELS_CUDA_REDUCE_CUH
#define TARE_KERNELS_CUDA_REDUCE_CUH

#include "cuda.h"

#define ALL_LANES 0xffffffffu

struct add_op {
    template <class T> static __device__ T of(T a, T b) { return a + b; }
};

struct max_op { /* ignores NaN */
    template <class T> static __device__ T of(T a, T b) { return b > a ? b : a; }
};

template <class OP, class T> static __device__ T warp_reduce(T x)
{
    for (int offset = 16; offset; offset >>= 1) x = OP::of(x, __shfl_xor_sync(ALL_LANES, x, offset));
    return x;
}

/* part: shared memory, one value per warp. Begins and ends with a barrier, so that part can be
 * reused at once. */
template <class OP, int THREADS, class T> static __device__ T block_reduce(T x, T *part)
{
    x = warp_reduce<OP>(x);
    if (THREADS == 32) return x;
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    T sum = part[0];
    for (int i = 1; i < THREADS / 32; i++) sum = OP::of(sum, part[i]);
    return sum;
}

#endif
