/* Hopper's asynchronous instructions: thin wrappers for PTX, and host versions for the shim
 * (wgmma_host.cuh). They are barriers in shared memory that count bytes, copies of tiles by tensor
 * maps (TMA), and products of a warpgroup (four consecutive warps) whose factors are in shared
 * memory.
 *
 * A tile has rows of 64 bf16, 128 bytes each, and is aligned to 1,024 bytes. Its copy arrives
 * swizzled: the 16-byte chunk c of row r is at the place of chunk c ^ r % 8. wgmma_tile is the
 * descriptor by which the product finds it ("matrix descriptor" in the PTX ISA): address and
 * distances in units of 16 bytes; 64 of them, 1,024 bytes, from eight rows to the next eight; the
 * swizzle mode in the two highest bits. 16 k further are 32 bytes: 2 more in the address, since the
 * hardware swizzles addresses and not indices.
 *
 * wgmma<N>: D[64,N] += A[64,16] B[N,16]^T, bf16 factors, fp32 sums. With g = lane / 4 and t = lane
 * % 4, a thread of warp w of the four holds
 *   d[4 j], d[4 j + 1]: D[16 w + g][8 j + 2 t, + 1]
 *   d[4 j + 2], d[4 j + 3]: D[16 w + g + 8][8 j + 2 t, + 1]
 * It is in progress until wgmma_wait: before that, d must not be read or written, and its tiles
 * must not be written. Products into the same d complete in order. wgmma_fence must precede the
 * first product after d was accessed.
 *
 * Machine code for it exists only for sm_90a (CUDA_WGMMA); it is not compiled for other
 * architectures. */
#ifndef TARE_KERNELS_CUDA_WGMMA_CUH
#define TARE_KERNELS_CUDA_WGMMA_CUH

#include "mma.cuh"

#if defined(TARE_CUDA_SHIM) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define CUDA_WGMMA 1
#endif

enum { TILE_K = 64, TILE_ROW = 128 }; /* of a tile in shared memory: k of a row, its bytes */

#ifdef TARE_CUDA_SHIM
#include "wgmma_host.cuh"
#else
#include <cuda.h>

typedef CUtensorMap tensor_map;

/* ---- barriers: a phase ends when `count` threads have arrived and all announced bytes are
 * there */

__device__ inline void barrier_init(uint64_t *b, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count) : "memory");
}

/* Make this thread's initialisation visible to asynchronous copies. */
__device__ inline void barriers_announce()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void barrier_arrive(uint64_t *b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}

/* Arrive, and announce bytes for which this phase also waits. */
__device__ inline void barrier_expect(uint64_t *b, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes) : "memory");
}

__device__ inline bool barrier_try(uint64_t *b, uint32_t parity)
{
    uint32_t done;
    asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(shared_address(b)), "r"(parity)
                 : "memory");
    return done;
}

/* Wait until the phase of that parity has ended. A phase that never ends makes the launch fail
 * after 2^36 clocks, about 40 seconds, instead of hanging the run. */
__device__ inline void barrier_wait(uint64_t *b, uint32_t parity)
{
    if (barrier_try(b, parity)) return;
    const long long begin = clock64();
    while (!barrier_try(b, parity))
        if (clock64() - begin > 1ll << 36) __trap();
}

/* ---- copies: load the map's box at (`row`, `k`), with zeros beyond the tensor; the barrier b
 * counts its bytes */

__device__ inline void tile_load(void *to, const tensor_map *map, int k, int row, uint64_t *b)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            shared_address(to)),
        "l"(map), "r"(k), "r"(row), "r"(shared_address(b))
        : "memory");
}

__device__ inline void tile_map_soon(const tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* ---- products */

/* Set the number of registers that a thread of this warpgroup may use from here on; all of its
 * warps must execute it. */
template <int N> __device__ inline void registers_fewer()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> __device__ inline void registers_more()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

__device__ inline void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Wait until all but the newest N groups are done. */
template <int N> __device__ inline void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

/* The compiler moves no use of these sums across this point. */
template <int N> __device__ inline void sums_here(float (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

#define SUMS_8(I)                                                                                                                  \
    "+f"(d[I]), "+f"(d[I + 1]), "+f"(d[I + 2]), "+f"(d[I + 3]), "+f"(d[I + 4]), "+f"(d[I + 5]), "+f"(d[I + 6]), "+f"(d[I + 7])
#define SUMS_32(I) SUMS_8(I), SUMS_8(I + 8), SUMS_8(I + 16), SUMS_8(I + 24)
#define NAMES_96                                                                                                                   \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                                                       \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"                                                             \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"                                                             \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"                                                             \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"                                                             \
    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define NAMES_128                                                                                                                  \
    NAMES_96 ","                                                                                                                   \
             "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,"                                        \
             "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
/* The predicate selects whether the product is added to d. Factors are unchanged (1, 1), both with
 * k contiguous (0, 0). */
#define WGMMA(N, NAMES, A, B, ADDS)                                                                                                \
    "{\n .reg .pred p;\n setp.ne.b32 p, " ADDS ", 0;\n wgmma.mma_async.sync.aligned.m64n" N "k16.f32.bf16.bf16 {" NAMES "}, " A    \
    ", " B ", p, 1, 1, 0, 0;\n}"

template <int N> __device__ inline void wgmma(float (&d)[N / 2], uint64_t a, uint64_t b);
template <> __device__ inline void wgmma<192>(float (&d)[96], uint64_t a, uint64_t b)
{
    asm volatile(WGMMA("192", NAMES_96, "%96", "%97", "%98") : SUMS_32(0), SUMS_32(32), SUMS_32(64) : "l"(a), "l"(b), "r"(1));
}
template <> __device__ inline void wgmma<256>(float (&d)[128], uint64_t a, uint64_t b)
{
    asm volatile(WGMMA("256", NAMES_128, "%128", "%129", "%130")
                 : SUMS_32(0), SUMS_32(32), SUMS_32(64), SUMS_32(96)
                 : "l"(a), "l"(b), "r"(1));
}
#undef WGMMA
#undef NAMES_128
#undef NAMES_96
#undef SUMS_32
#undef SUMS_8
#endif

/* Descriptor of a tile's first 16 k; with 128 bytes per row, the distance in the other direction is
 * not used. */
__device__ inline uint64_t wgmma_tile(const void *tile)
{
    const uint64_t address = (shared_address(tile) & 0x3ffff) >> 4, eight_rows = 8 * TILE_ROW >> 4, swizzle_128 = 1;
    return address | (uint64_t)1 << 16 | eight_rows << 32 | swizzle_128 << 62;
}

/* On the host: make a map of consecutive rows of k bf16, in boxes of box_rows rows and 64 k.
 * Returns false if k is not a multiple of 8, the tensor is not aligned to 16 bytes, or the driver
 * has no tensor maps. */
bool tile_map(tensor_map *map, const void *base, int64_t rows, int64_t k, int box_rows);

#endif
