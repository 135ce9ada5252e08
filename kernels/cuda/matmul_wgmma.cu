/* Products of many rows by Hopper's wgmma, with the sums of matmul_chain.cu: the same slices of K
 * in the same order, each a chain over 16 k at a time from 0, with the last step of 32 k padded
 * with zeros; then bias, then residual. No document promises that adding 16 products to a sum gives
 * the same bits as with mma, so matmul_wgmma_check.cu checks this before the kernel is used.
 *
 * A block has 128 rows of x and, if K is split, 192 of W: two warpgroups of 64 rows each hold the
 * slice's sums and those of the slices before, 96 registers a thread each. With one slice it has
 * 256 rows of W. One thread requests tiles (TMA) and runs ahead through a ring of stages of 64 k: 5
 * of 40 KB, or 4 of 48 KB. A slice begins with a new stage, so if its number of steps is odd, the
 * last stage is half used.
 *
 * If there are few tiles (see matmul_chain.cu), a block takes one slice of a tile of 192 at a time
 * and writes its sums, and matmul_add.cu adds them in order: the same additions, starting at 0.
 *
 * Blocks are persistent, one per multiprocessor; of n blocks, each takes every n-th tile. The next
 * tile's stages are loaded while results are written, and while one warpgroup writes, the other
 * multiplies. Tiles go down 16 tiles of rows, then to the next of W, so that concurrent blocks read
 * few rows of both. */
#include "matmul.h"

#include "wgmma.cuh"

enum { ROWS = 128, GROUP_ROWS = 64, CONSUMERS = 256, THREADS = 384, DOWN = 16, WARPS = CONSUMERS / 32 };
/* of the swizzle: a tile may begin at a multiple of PATTERN */
enum { TILE_STEPS = TILE_K / CHAIN_STEP, PATTERN = 8 * TILE_ROW };

template <int COLUMNS> struct wgmma_shape {
    static constexpr int X = ROWS * TILE_ROW, STAGE = X + COLUMNS * TILE_ROW, STAGES = COLUMNS == 256 ? 4 : 5;
    /* dynamic shared memory is aligned to 16 bytes, the ring to PATTERN */
    static constexpr int BYTES = STAGES * STAGE + PATTERN;
};

struct wgmma_job {
    tensor_map x, w;
    product p;
    chain_cut cut;
    int down, across; /* numbers of tiles */
    int works;        /* number of work items for blocks: tiles, or slices of tiles */
};

/* One work item of a block. PARTS: a slice of a tile, with all tiles of a slice in sequence, so
 * that concurrent blocks read the same part of x. */
struct wgmma_place {
    int row, column; /* of a tile's first sum */
    int begin, end;  /* steps of K */
    int above;       /* rows of the slices before, [slices, T, N] */
};

template <int COLUMNS, bool PARTS> __device__ inline wgmma_place place_of(const wgmma_job &job, int work)
{
    const int tiles = job.down * job.across, slice = PARTS ? work / tiles : 0, tile = work - slice * tiles;
    const int first = tile / (DOWN * job.across) * DOWN, rows = min((int)DOWN, job.down - first), at = tile - first * job.across;
    const int begin = slice * job.cut.slice, end = PARTS ? min(job.cut.steps, begin + job.cut.slice) : job.cut.steps;
    return wgmma_place{(first + at % rows) * ROWS, at / rows * COLUMNS, begin, end, slice * (int)job.p.t};
}

template <int COLUMNS> struct wgmma_ring {
    using S = wgmma_shape<COLUMNS>;
    unsigned char *stages;
    uint64_t *full, *empty;
    int at;
    uint32_t turn; /* number of passes through the ring, modulo 2 */

    __device__ inline unsigned char *stage() const { return stages + at * S::STAGE; }
    __device__ inline void next()
    {
        if (++at < S::STAGES) return;
        at = 0;
        turn ^= 1;
    }
};

/* One thread loads all tiles of the block, slice by slice. */
template <int COLUMNS, bool PARTS> __device__ inline void wgmma_produce(const wgmma_job &job, wgmma_ring<COLUMNS> ring)
{
    using S = wgmma_shape<COLUMNS>;
    tile_map_soon(&job.x);
    tile_map_soon(&job.w);
    for (int work = (int)blockIdx.x; work < job.works; work += (int)gridDim.x) {
        const wgmma_place place = place_of<COLUMNS, PARTS>(job, work);
        for (int slice = place.begin; slice < place.end; slice += job.cut.slice)
            for (int s = slice; s < min(place.end, slice + job.cut.slice); s += TILE_STEPS) {
                barrier_wait(&ring.empty[ring.at], ring.turn ^ 1);
                barrier_expect(&ring.full[ring.at], S::STAGE);
                tile_load(ring.stage(), &job.x, s * CHAIN_STEP, place.row, &ring.full[ring.at]);
                tile_load(ring.stage() + S::X, &job.w, s * CHAIN_STEP, place.column, &ring.full[ring.at]);
                ring.next();
            }
    }
}

/* of a thread: two rows of its warp's 16, by 8 columns */
template <int COLUMNS> struct wgmma_sums {
    float v[COLUMNS / 2];

    __device__ inline void zero()
    {
#pragma unroll
        for (int i = 0; i < COLUMNS / 2; i++) v[i] = 0;
    }
    __device__ inline void add(const wgmma_sums &other)
    {
#pragma unroll
        for (int i = 0; i < COLUMNS / 2; i++) v[i] += other.v[i];
    }
};

/* State with which the stages of a slice are processed. A stage is free when its products are done:
 * while the newest is in progress, the one before it is freed. */
template <int COLUMNS> struct wgmma_worker {
    using S = wgmma_shape<COLUMNS>;
    wgmma_ring<COLUMNS> ring;
    uint64_t *busy; /* barrier of the stage in progress; NULL: none */
    int group;

    /* K16: number of groups of 16 k in the stage */
    template <int K16> __device__ inline void stage(wgmma_sums<COLUMNS> &acc)
    {
        barrier_wait(&ring.full[ring.at], ring.turn);
        const uint64_t x = wgmma_tile(ring.stage() + group * GROUP_ROWS * TILE_ROW), w = wgmma_tile(ring.stage() + S::X);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < K16; i++) wgmma<COLUMNS>(acc.v, x + 2 * i, w + 2 * i);
        wgmma_commit();
        wgmma_wait<1>();
        leave();
        busy = &ring.empty[ring.at];
        ring.next();
    }
    __device__ inline void leave()
    {
        if (busy && threadIdx.x % 32 == 0) barrier_arrive(busy);
        busy = nullptr;
    }
    __device__ inline void slice(wgmma_sums<COLUMNS> &acc, int steps)
    {
        sums_here(acc.v);
        for (; steps >= TILE_STEPS; steps -= TILE_STEPS) stage<4>(acc);
        if (steps) stage<2>(acc);
        wgmma_wait<0>();
        sums_here(acc.v);
        leave();
    }
};

/* A thread's place in a tile, and the limits of y. */
struct wgmma_edge {
    int row, column, rows, columns;
};

/* Add the values at `from`. INSIDE: all columns of the tile exist. */
template <int COLUMNS, bool INSIDE>
__device__ inline void wgmma_add(wgmma_sums<COLUMNS> &sums, const wgmma_edge &at, const float *from, int64_t ld)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float *row = from + (at.row + 8 * i) * ld + at.column;
        if (at.row + 8 * i >= at.rows) return;
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++)
            if (INSIDE || at.column + 8 * j < at.columns) {
                const float2 x = *reinterpret_cast<const float2 *>(row + 8 * j);
                sums.v[4 * j + 2 * i] += x.x, sums.v[4 * j + 2 * i + 1] += x.y;
            }
    }
}

/* Add bias, then residual, then store results, each for all sums: a load after the store of the
 * previous sum would wait for that sum's load. n is even. */
template <int COLUMNS, bool INSIDE>
__device__ inline void wgmma_finish(const product &p, const wgmma_edge &at, wgmma_sums<COLUMNS> &sums)
{
    if (p.bias) wgmma_add<COLUMNS, INSIDE>(sums, at, p.bias, 0);
    if (p.residual) wgmma_add<COLUMNS, INSIDE>(sums, at, p.residual, p.ldy);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float *row = p.y + (at.row + 8 * i) * p.ldy + at.column;
        if (at.row + 8 * i >= at.rows) return;
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++)
            if (INSIDE || at.column + 8 * j < at.columns)
                *reinterpret_cast<float2 *>(row + 8 * j) = make_float2(sums.v[4 * j + 2 * i], sums.v[4 * j + 2 * i + 1]);
    }
}

template <int COLUMNS> __device__ inline void wgmma_finish(const product &p, wgmma_place place, wgmma_sums<COLUMNS> &sums)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const wgmma_edge at = {place.above + place.row + warp * 16 + lane / 4, place.column + lane % 4 * 2, place.above + (int)p.t,
                           (int)p.n};
    if (place.column + COLUMNS <= at.columns)
        wgmma_finish<COLUMNS, true>(p, at, sums);
    else
        wgmma_finish<COLUMNS, false>(p, at, sums);
}

/* One warpgroup: 64 rows of every tile of the block. SLICED: it adds the slices of a tile. */
template <int COLUMNS, bool SLICED, bool PARTS> __device__ inline void wgmma_consume(const wgmma_job &job, wgmma_ring<COLUMNS> ring)
{
    wgmma_worker<COLUMNS> worker = {ring, nullptr, (int)threadIdx.x / 128};
    wgmma_sums<COLUMNS> acc, total;
    for (int work = (int)blockIdx.x; work < job.works; work += (int)gridDim.x) {
        const wgmma_place place = place_of<COLUMNS, PARTS>(job, work);
        if (!SLICED) {
            acc.zero();
            worker.slice(acc, place.end - place.begin);
            wgmma_finish<COLUMNS>(job.p, place, acc);
            continue;
        }
        total.zero();
        for (int slice = 0; slice < job.cut.steps; slice += job.cut.slice) {
            acc.zero();
            worker.slice(acc, min(job.cut.slice, job.cut.steps - slice));
            total.add(acc);
        }
        wgmma_finish<COLUMNS>(job.p, place, total);
    }
}

template <int COLUMNS, bool SLICED, bool PARTS>
static __global__ void __launch_bounds__(THREADS, 1) product_wgmma(const __grid_constant__ wgmma_job job)
{
#ifdef CUDA_WGMMA
    using S = wgmma_shape<COLUMNS>;
    CUDA_SHARED(unsigned char, shared);
    __shared__ __align__(8) uint64_t full[S::STAGES], empty[S::STAGES];
    const uint32_t beyond = shared_address(shared) % PATTERN;
    const wgmma_ring<COLUMNS> ring = {shared + (beyond ? PATTERN - beyond : 0), full, empty, 0, 0};
    if (threadIdx.x == 0) {
        for (int i = 0; i < S::STAGES; i++) {
            barrier_init(&full[i], 1);
            barrier_init(&empty[i], WARPS);
        }
        barriers_announce();
    }
    __syncthreads();
    if (threadIdx.x >= CONSUMERS) {
        registers_fewer<24>();
        if (threadIdx.x == CONSUMERS) wgmma_produce<COLUMNS, PARTS>(job, ring);
    } else {
        registers_more<240>();
        wgmma_consume<COLUMNS, SLICED, PARTS>(job, ring);
    }
#else
    (void)job;
#endif
}

static bool at_multiple(const void *p, uintptr_t of)
{
    return (uintptr_t)p % of == 0;
}

bool matmul_wgmma_fits(const product &p)
{
    /* rows and k are 32 bits in a tensor map, and tiles are counted in 32 bits */
    const int64_t most = INT64_C(1) << 30;
    return cuda_capability() == 90 && p.k >= TILE_K && p.k % 8 == 0 && p.n % 2 == 0 && p.ldy % 2 == 0 && p.t < most && p.n < most &&
           p.k < most && (p.t / ROWS + 1) * (p.n / 192 + 1) < most && at_multiple(p.x, 16) && at_multiple(p.w, 16) &&
           at_multiple(p.y, 8) && at_multiple(p.bias, 8) && at_multiple(p.residual, 8);
}

template <int COLUMNS, bool SLICED, bool PARTS>
static bool wgmma_launch(const struct kctx *c, const product &p, const chain_cut &cut, int most)
{
    wgmma_job job = {};
    job.p = p, job.cut = cut;
    job.down = (int)((p.t + ROWS - 1) / ROWS), job.across = (int)((p.n + COLUMNS - 1) / COLUMNS);
    job.works = job.down * job.across * (PARTS ? chain_slices(cut) : 1);
    if (!tile_map(&job.x, p.x, p.t, p.k, ROWS) || !tile_map(&job.w, p.w, p.n, p.k, COLUMNS)) return false;
    const int processors = most ? most : cuda_processors();
    const unsigned blocks = (unsigned)(processors && processors < job.works ? processors : job.works);
    CUDA_SHARED_LIMIT(c, (product_wgmma<COLUMNS, SLICED, PARTS>), wgmma_shape<COLUMNS>::BYTES);
    CUDA_LAUNCH(c, (product_wgmma<COLUMNS, SLICED, PARTS>), blocks, THREADS, wgmma_shape<COLUMNS>::BYTES, job);
    return true;
}

bool matmul_wgmma(const struct kctx *c, const product &p, const chain_cut &cut, float *parts, int blocks)
{
    if (chain_slices(cut) == 1) return wgmma_launch<256, false, false>(c, p, cut, blocks);
    if (!parts) return wgmma_launch<192, true, false>(c, p, cut, blocks);
    return wgmma_launch<192, false, true>(c, product{parts, p.x, p.w, nullptr, nullptr, p.n, p.t, p.n, p.k}, cut, blocks);
}

#ifndef TARE_CUDA_SHIM
/* The driver's function is looked up at run time, so that the driver is not linked. */
bool tile_map(tensor_map *map, const void *base, int64_t rows, int64_t k, int box_rows)
{
    typedef CUresult encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                            const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    static void *known;
    cudaDriverEntryPointQueryResult found;
    if (!known &&
        (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &known, 12000, cudaEnableDefault, &found) != cudaSuccess ||
         found != cudaDriverEntryPointSuccess)) {
        cudaGetLastError(); /* clears the error */
        known = nullptr;
        return false;
    }
    const cuuint64_t sizes[2] = {(cuuint64_t)k, (cuuint64_t)rows}, distance[1] = {(cuuint64_t)k * 2};
    const cuuint32_t box[2] = {TILE_K, (cuuint32_t)box_rows}, every[2] = {1, 1};
    return reinterpret_cast<encode *>(known)(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void *>(base), sizes, distance,
                                             box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
#endif
