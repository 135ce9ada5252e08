/* Tensor-core products and asynchronous copies of one warp: thin wrappers for PTX instructions, and
 * host versions for the shim.
 *
 * mma_bf16: D[16,8] += A[16,16] B[16,8], bf16 factors, fp32 sums
 * (mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32, PTX ISA "Matrix Fragments for
 * mma.m16n8k16"). With g = lane / 4 and t = lane % 4, a lane holds
 *   a[0]: A[g][2t, 2t+1]      a[1]: A[g+8][2t, 2t+1]     (first element in the low half)
 *   a[2]: A[g][2t+8, 2t+9]    a[3]: A[g+8][2t+8, 2t+9]
 *   b[0]: B[2t, 2t+1][g]      b[1]: B[2t+8, 2t+9][g]
 *   d[0], d[1]: D[g][2t, 2t+1]                            d[2], d[3]: D[g+8][2t, 2t+1]
 *
 * ldmatrix: four 8x8 matrices of 16-bit elements. Lane l gives the address of row l % 8 of matrix l
 * / 8 and receives in r[i] the elements [g][2t, 2t+1] of matrix i, or with trans [2t, 2t+1][g].
 *
 * A 16x16 tile of A or B from shared memory is one ldmatrix. The lane's row and column (in
 * elements) in the stored tile are
 *   A stored [m][k]: tile_row(lane), tile_col(lane)            -> a[0..3]
 *   A stored [k][m]: trans, tile_row_b(lane), tile_col_b(lane) -> a[0..3]
 *   B stored [n][k]: tile_row_b(lane), tile_col_b(lane)        -> r[0], r[1] = b of columns 0-7,
 *                                                                 r[2], r[3] = b of columns 8-15
 *   B stored [k][n]: trans, tile_row(lane), tile_col(lane)     -> the same */
#ifndef TARE_KERNELS_CUDA_MMA_CUH
#define TARE_KERNELS_CUDA_MMA_CUH

#include "cuda.h"

#include <stdint.h>

__device__ inline int tile_row(int lane)
{
    return lane % 16;
}
__device__ inline int tile_col(int lane)
{
    return lane / 16 * 8;
}
__device__ inline int tile_row_b(int lane)
{
    return lane % 8 + lane / 16 * 8;
}
__device__ inline int tile_col_b(int lane)
{
    return lane / 8 % 2 * 8;
}

/* More than 48 KB of dynamic shared memory must be allowed for each kernel, once, for the largest
 * request. */
#ifdef TARE_CUDA_SHIM
#define CUDA_SHARED_LIMIT(C, KERNEL, BYTES) cuda_try((C), shim_limit(), "cudaFuncSetAttribute")
#else
#define CUDA_SHARED_LIMIT(C, KERNEL, BYTES)                                                                                        \
    do {                                                                                                                           \
        static int most_;                                                                                                          \
        if (most_ >= (int)(BYTES)) break;                                                                                          \
        if (cuda_try((C), cudaFuncSetAttribute(KERNEL, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(BYTES)),                 \
                     "cudaFuncSetAttribute"))                                                                                      \
            most_ = (int)(BYTES);                                                                                                  \
    } while (0)
#endif

#ifndef TARE_CUDA_SHIM

__device__ inline uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ inline void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ inline void ldmatrix(uint32_t r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

__device__ inline void ldmatrix_trans(uint32_t r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* Copy 16 bytes to shared memory; zeros if not valid (then nothing is read). Complete at the
 * cp_async_wait of its group. */
__device__ inline void cp_async16(void *to, const void *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
}

__device__ inline void cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Wait until all but the newest N groups of this thread are complete. */
template <int N> __device__ inline void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Convert two floats to bf16 (nearest even), the first in the low half. */
__device__ inline uint32_t bf16_pair(float low, float high)
{
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

/* 2^x; 0 for -inf. */
__device__ inline float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#else
#include "mma_host.cuh"
#endif

__device__ inline float bf16_low(uint32_t pair)
{
    return __uint_as_float(pair << 16);
}
__device__ inline float bf16_high(uint32_t pair)
{
    return __uint_as_float(pair & 0xffff0000u);
}

#endif
