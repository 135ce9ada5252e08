/* The instructions of mma.cuh on the host, lane by lane as the PTX ISA describes them
 * (shim/mma.cc). A cp.async copy may happen at any time between its issue and the wait for its
 * group. mma_host_eager selects either end, so that tests find a missing wait, or memory that is
 * still being read. */
#ifndef TARE_KERNELS_CUDA_MMA_HOST_CUH
#define TARE_KERNELS_CUDA_MMA_HOST_CUH

extern "C" int mma_host_eager; /* 1: copies happen at once; 0: as late as allowed */
/* 1: sums as in a published model of Hopper's units (arXiv 2511.10909): 16 products and the sum in
 * one addition, each truncated 25 bits below the largest exponent; 0: one product after another,
 * which detects every wrong order of k. */
extern "C" int mma_host_cuts;
enum { MMA_HOST_BITS = 25 };

void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2]);
void ldmatrix_host(uint32_t r[4], const void *row, bool trans);
void cp_async16(void *to, const void *from, bool valid);
void cp_async_commit(void);
void cp_async_wait_host(int newest);

inline void ldmatrix(uint32_t r[4], const void *row)
{
    ldmatrix_host(r, row, false);
}
inline void ldmatrix_trans(uint32_t r[4], const void *row)
{
    ldmatrix_host(r, row, true);
}
template <int N> inline void cp_async_wait()
{
    cp_async_wait_host(N);
}

inline uint32_t bf16_pair(float low, float high)
{
    return (uint32_t)bf16_from_f32(low) | (uint32_t)bf16_from_f32(high) << 16;
}
inline float exp2_fast(float x)
{
    return exp2f(x);
}

#endif
