/* The instructions of wgmma.cuh on the host (shim/wgmma.cc), with their asynchronous behaviour:
 *   - a tile arrives as soon as it is requested (mma_host_eager), or as late as possible: when no
 *     thread can continue without it, the newest first. Until then its memory keeps the old
 *     contents;
 *   - products are computed when they are waited for, from the contents of their tiles at that
 *     time; tiles that changed since the product was issued are reported. Sums are NaN meanwhile,
 *     and writing them is reported. So is a product without a wgmma_fence after its sums were
 *     accessed;
 *   - operands are located by their descriptors alone, bit by bit as the PTX ISA specifies. */
#ifndef TARE_KERNELS_CUDA_WGMMA_HOST_CUH
#define TARE_KERNELS_CUDA_WGMMA_HOST_CUH

#include "cuda/shim/wgmma_faults.h"

extern "C" int wgmma_host_fault;

struct tensor_map {
    const unsigned char *base;
    int64_t rows, k;
    int box_rows;
};

void barrier_init(uint64_t *b, int count);
void barriers_announce(void);
void barrier_arrive(uint64_t *b);
void barrier_expect(uint64_t *b, int bytes);
void barrier_wait(uint64_t *b, uint32_t parity);
void tile_load(void *to, const tensor_map *map, int k, int row, uint64_t *b);
inline void tile_map_soon(const tensor_map *) {}

void wgmma_fence(void);
void wgmma_commit(void);
void wgmma_wait_host(int newest);
void wgmma_host(float *d, int n, uint64_t a, uint64_t b);
uint32_t shared_address(const void *p); /* in dynamic shared memory */

template <int N> inline void registers_fewer() {}
template <int N> inline void registers_more() {}
template <int N> inline void sums_here(float (&)[N]) {}
template <int N> inline void wgmma_wait()
{
    wgmma_wait_host(N);
}
template <int N> inline void wgmma(float (&d)[N / 2], uint64_t a, uint64_t b)
{
    wgmma_host(d, N, a, b);
}

#endif
