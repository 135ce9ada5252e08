/* Samples a token from a row of logits z[V]: the definition of ref/sample.c, with the same choice
 * for the same logits.
 *
 * e_v = exp(d_v) is in [0, 1]; its mass is a multiple of 2^-44 held in 64 bits, so sums are exact
 * in any order. Truncation keeps a leading part of the ranking by e (equal ones by id): a cut of
 * all e above `bits` and the first `ties` tokens with exactly that value.
 *   top-k: the first k tokens.
 *   top-p: the shortest leading part with mass >= top_p times their total mass.
 *   min-p: e >= min_p.
 * The draw: target = floor(u mass), u from Philox(key, position); the token is the lowest id with
 * (kept mass of ids up to it) > target.
 *
 * One block per row. The cut is found digit by digit (10 bits at a time) in a histogram of counts
 * (top-k) or of masses (top-p), with integer atomics, whose order cannot change a sum. They have 32
 * bits, which shared memory supports natively; 64-bit atomics would be compare-and-swap loops. The
 * draw sums the kept mass of tiles of 1024 ids, selects the tile, and then the id in it. */
#include "softmax.cuh"

enum { SAMPLE_THREADS = 512, TILE = 1024, DIGIT = 10, BINS = 1 << DIGIT, LEVELS = 3, TILES_MOST = 1024 };

struct sample_cut {
    uint32_t bits;
    int64_t ties;
};

/* the largest b whose part of the ranking, all with e >= b, reaches the target; above: the amount
 * in it above b */
struct sample_found {
    uint32_t bits;
    uint64_t above;
};

struct sample_shared {
    union {
        struct { /* 64-bit sums in two words */
            uint32_t low[BINS], high[BINS];
        } bin;
        struct { /* per tile: mass above the cut, and number of ties */
            unsigned long long mass[TILES_MOST];
            int32_t ties[TILES_MOST];
        } tile;
    } u;
    float part[SAMPLE_THREADS / 32];
    unsigned long long sums[SAMPLE_THREADS / 32];
    int64_t index[SAMPLE_THREADS / 32];
    struct sample_found found;
    uint64_t target, below; /* target mass, and mass of the tiles before the one that contains it */
    int64_t tile, ties;     /* the tile; ties that may still be kept in it; -1: nothing has mass */
};

struct sample_logits { /* of a row */
    const float *z;    /* [v] */
    int64_t v;
    float scale, m; /* 1/T; max_i z_i / T */
};

static __device__ float sample_weight(const sample_logits &x, int64_t i)
{
    return exact_exp(softmax_shifted(x.z[i], x.scale, x.m));
}

/* False for NaN, which has no rank. */
static __device__ bool sample_ranked(float e)
{
    return e >= 0;
}

static __device__ void philox(const uint32_t key[2], uint64_t counter,
                              uint32_t out[2]) /* the first two words of a block of base/rng.c */
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = 0, c3 = 0, k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1;
}

/* Returns floor(u total) for a uniform u with 53 bits. */
static __device__ uint64_t sample_target(const struct sample_row *row, uint64_t total)
{
    uint32_t w[2];
    philox(row->key, row->position, w);
    const uint64_t u = ((uint64_t)w[1] << 32 | w[0]) >> 11;
    return __umul64hi(u, total) << 11 | u * total >> 53;
}

/* First index of the largest logit, as a sequential loop finds it: a NaN at the front wins,
 * elsewhere NaN is skipped. */
static __device__ int64_t sample_greedy(struct sample_shared *s, const sample_logits &x)
{
    const float *z = x.z;
    const int64_t v = x.v;
    float best = -INFINITY;
    int64_t at = v;
    for (int64_t i = threadIdx.x; i < v; i += SAMPLE_THREADS)
        if (z[i] > best || (z[i] == best && i < at)) best = z[i], at = i;
    for (int offset = 16; offset; offset >>= 1) {
        const float other = __shfl_xor_sync(ALL_LANES, best, offset);
        const int64_t other_at = __shfl_xor_sync(ALL_LANES, at, offset);
        if (other > best || (other == best && other_at < at)) best = other, at = other_at;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) s->part[threadIdx.x / 32] = best, s->index[threadIdx.x / 32] = at;
    __syncthreads();
    for (int i = 0; i < SAMPLE_THREADS / 32; i++)
        if (s->part[i] > best || (s->part[i] == best && s->index[i] < at)) best = s->part[i], at = s->index[i];
    return at == v || z[0] != z[0] ? 0 : at;
}

/* Inclusive sums over the lanes of a warp. */
static __device__ unsigned long long lanes_up(unsigned long long x)
{
    const int lane = (int)(threadIdx.x % 32);
    for (int offset = 1; offset < 32; offset <<= 1) {
        const unsigned long long other = __shfl_up_sync(ALL_LANES, x, (unsigned)offset);
        if (lane >= offset) x += other;
    }
    return x;
}

/* Overflow of the low word goes to the high word, so that the sum of both is exact in any order. */
static __device__ void bin_add(struct sample_shared *s, uint32_t bin, uint64_t x)
{
    const uint32_t low = (uint32_t)x, before = atomicAdd(&s->u.bin.low[bin], low);
    const uint32_t high = (uint32_t)(x >> 32) + (before + low < before ? 1u : 0u);
    if (high) atomicAdd(&s->u.bin.high[bin], high);
}

static __device__ uint64_t bin_sum(const struct sample_shared *s, int bin)
{
    return (uint64_t)s->u.bin.high[bin] << 32 | s->u.bin.low[bin];
}

/* Executed by a warp on the 32 bins from `top` down: find the first bin at which the sum, starting
 * from `above`, reaches `wanted`. last: the lowest bin qualifies in any case. Returns false if no
 * bin does; above then includes the 32 bins. */
static __device__ bool sample_bin(const struct sample_shared *s, int top, bool last, uint64_t wanted, struct sample_found *found)
{
    const unsigned long long own = bin_sum(s, top - (int)(threadIdx.x % 32)), sum = lanes_up(own);
    const uint32_t reached = __ballot_sync(ALL_LANES, found->above + sum >= wanted) | (last ? 0x80000000u : 0u);
    const int at = reached ? __ffs((int)reached) - 1 : 0;
    const unsigned long long before = __shfl_sync(ALL_LANES, sum - own, at), all = __shfl_sync(ALL_LANES, sum, 31);
    found->bits = (uint32_t)(top - at);
    found->above += reached ? before : all;
    return reached != 0;
}

/* Store the digit given by the bins to s->found: each warp sums an equal share of the bins, then
 * one of them searches the share that reaches `wanted`. */
static __device__ void sample_digit(struct sample_shared *s, uint32_t prefix, uint64_t above, uint64_t wanted)
{
    enum { SHARES = SAMPLE_THREADS / 32, SHARE = BINS / SHARES };
    static_assert(SHARE == 64, "two bins a lane");
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    unsigned long long sum = bin_sum(s, warp * SHARE + lane) + bin_sum(s, warp * SHARE + 32 + lane);
    sum = warp_reduce<add_op>(sum);
    if (lane == 0) s->sums[warp] = sum;
    __syncthreads();
    if (warp) return;
    struct sample_found found = {0, above};
    int share = SHARES - 1;
    for (; share > 0 && found.above + s->sums[share] < wanted; share--) found.above += s->sums[share];
    if (!sample_bin(s, share * SHARE + 63, false, wanted, &found)) sample_bin(s, share * SHARE + 31, true, wanted, &found);
    found.bits |= prefix << DIGIT;
    if (lane == 0) s->found = found;
}

/* Search the digits of e's bits from the top; e <= 1 has 30 bits. Zeros are never counted: 0
 * is the result if nothing else qualifies. wanted: a mass, or a number of tokens. */
template <bool MASS> static __device__ void sample_search(struct sample_shared *s, const sample_logits &x, uint64_t wanted)
{
    uint32_t prefix = 0;
    uint64_t above = 0;
    for (int level = LEVELS - 1; level >= 0; level--) {
        const int shift = level * DIGIT;
        for (int i = (int)threadIdx.x; i < BINS; i += SAMPLE_THREADS) s->u.bin.low[i] = s->u.bin.high[i] = 0;
        __syncthreads();
        for (int64_t i = threadIdx.x; i < x.v; i += SAMPLE_THREADS) {
            const float e = sample_weight(x, i);
            const uint32_t bits = f32_bits(e);
            if (!(e > 0) || (uint64_t)bits >> (shift + DIGIT) != prefix) continue;
            const uint32_t bin = bits >> shift & (BINS - 1);
            if (MASS)
                bin_add(s, bin, mass_of(e));
            else
                atomicAdd(&s->u.bin.low[bin], 1u);
        }
        __syncthreads();
        sample_digit(s, prefix, above, wanted);
        __syncthreads();
        prefix = s->found.bits;
        above = s->found.above;
        __syncthreads();
    }
}

/* Mass of the tokens above the cut and of the ties that it keeps. */
static __device__ uint64_t sample_mass(struct sample_shared *s, const sample_logits &x, sample_cut cut)
{
    unsigned long long sum = 0;
    for (int64_t i = threadIdx.x; i < x.v; i += SAMPLE_THREADS) {
        const float e = sample_weight(x, i);
        if (f32_bits(e) > cut.bits) sum += mass_of(e); /* NaN has none */
    }
    return block_reduce<add_op, SAMPLE_THREADS>(sum, s->sums) + (uint64_t)cut.ties * mass_of(f32_from_bits(cut.bits));
}

/* Every thread computes the same cut. */
static __device__ sample_cut sample_truncate(struct sample_shared *s, const sample_logits &x, const struct sample_row *row)
{
    sample_cut cut = {0, x.v};
    if (row->top_k > 0 && row->top_k < x.v) {
        sample_search<false>(s, x, (uint64_t)row->top_k);
        cut.bits = s->found.bits;
        cut.ties = row->top_k - (int64_t)s->found.above;
    }
    if (row->top_p < 1) {
        const uint64_t all = sample_mass(s, x, cut);
        const double wanted = ceil((double)row->top_p * (double)all);
        const uint64_t need = wanted < 1 ? 1 : wanted > (double)all ? all : (uint64_t)wanted;
        sample_search<true>(s, x, need);
        const uint32_t bits = s->found.bits;
        if (bits >= cut.bits) {
            const uint64_t each = mass_of(f32_from_bits(bits));
            const int64_t ties = each ? (int64_t)((need - s->found.above + each - 1) / each) : x.v;
            if (bits > cut.bits || ties < cut.ties) cut.bits = bits, cut.ties = ties;
        }
    }
    if (row->min_p > 0 && f32_bits(row->min_p) > cut.bits) cut.bits = f32_bits(row->min_p), cut.ties = x.v;
    return cut;
}

/* Compute mass and ties of each tile of ids, one warp per tile. For more than TILES_MOST tiles,
 * tiles grow: tile_ids ids per tile. */
static __device__ void sample_tiles(struct sample_shared *s, const sample_logits &x, sample_cut cut, int64_t tile_ids)
{
    for (int64_t tile = threadIdx.x / 32; tile * tile_ids < x.v; tile += SAMPLE_THREADS / 32) {
        const int64_t begin = tile * tile_ids, end = begin + tile_ids < x.v ? begin + tile_ids : x.v;
        unsigned long long mass = 0;
        int ties = 0;
        for (int64_t i = begin + threadIdx.x % 32; i < end; i += 32) {
            const float e = sample_weight(x, i);
            if (sample_ranked(e) && f32_bits(e) > cut.bits) mass += mass_of(e);
            if (sample_ranked(e) && f32_bits(e) == cut.bits) ties++;
        }
        mass = warp_reduce<add_op>(mass);
        ties = warp_reduce<add_op>(ties);
        if (threadIdx.x % 32 == 0) s->u.tile.mass[tile] = mass, s->u.tile.ties[tile] = ties;
    }
}

static __device__ int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One thread finds the tile that contains the target, the mass before it, and the ties remaining
 * for it. */
static __device__ void sample_pick_tile(struct sample_shared *s, const struct sample_row *row, sample_cut cut, int64_t n_tiles)
{
    const uint64_t unit = mass_of(f32_from_bits(cut.bits));
    uint64_t total = 0;
    int64_t ties = cut.ties;
    for (int64_t i = 0; i < n_tiles; i++) {
        const int64_t kept = smaller_of(ties, s->u.tile.ties[i]);
        total += s->u.tile.mass[i] + (uint64_t)kept * unit;
        ties -= kept;
    }
    s->tile = -1;
    if (!total) return;
    s->target = sample_target(row, total);
    uint64_t below = 0;
    ties = cut.ties;
    for (int64_t i = 0; i < n_tiles; i++) {
        const int64_t kept = smaller_of(ties, s->u.tile.ties[i]);
        const uint64_t mass = s->u.tile.mass[i] + (uint64_t)kept * unit;
        if (below + mass > s->target) {
            s->tile = i;
            s->ties = ties;
            s->below = below;
            return;
        }
        below += mass;
        ties -= kept;
    }
}

/* One warp finds the lowest id of the tile with (kept mass of ids up to it) > target, 32 ids at a
 * time, in order. */
static __device__ int64_t sample_pick_id(const struct sample_shared *s, const sample_logits &x, sample_cut cut, int64_t tile_ids)
{
    const int lane = (int)(threadIdx.x % 32);
    const uint32_t before = (1u << lane) - 1;
    uint64_t below = s->below;
    int64_t ties = s->ties;
    for (int64_t base = s->tile * tile_ids; base < x.v; base += 32) {
        const int64_t i = base + lane;
        const float e = i < x.v ? sample_weight(x, i) : 0;
        const bool ranked = i < x.v && sample_ranked(e), tie = ranked && f32_bits(e) == cut.bits;
        const uint32_t tied = __ballot_sync(ALL_LANES, tie);
        const bool kept = (ranked && f32_bits(e) > cut.bits) || (tie && __popc(tied & before) < ties);
        const unsigned long long sum = lanes_up(kept ? mass_of(e) : 0);
        const uint32_t over = __ballot_sync(ALL_LANES, below + sum > s->target);
        if (over) return base + __ffs((int)over) - 1;
        below += __shfl_sync(ALL_LANES, sum, 31);
        ties -= smaller_of(ties, __popc(tied));
    }
    return 0; /* not reached: the tile contains the target */
}

static __device__ int64_t sample_draw(struct sample_shared *s, const sample_logits &x, const struct sample_row *row)
{
    const sample_cut cut = sample_truncate(s, x, row);
    const int64_t v = x.v;
    const int64_t tile_ids = v <= (int64_t)TILE * TILES_MOST ? (int64_t)TILE : (v + TILES_MOST * 32 - 1) / (TILES_MOST * 32) * 32;
    __syncthreads();
    sample_tiles(s, x, cut, tile_ids);
    __syncthreads();
    if (threadIdx.x == 0) sample_pick_tile(s, row, cut, (v + tile_ids - 1) / tile_ids);
    __syncthreads();
    if (s->tile < 0) return sample_greedy(s, x); /* nothing has mass: logits are not finite */
    if (threadIdx.x < 32) {
        const int64_t id = sample_pick_id(s, x, cut, tile_ids);
        if (threadIdx.x == 0) s->index[0] = id;
    }
    __syncthreads();
    return s->index[0];
}

struct sample_out { /* for all rows */
    int32_t *token;
    float *logprob, *entropy; /* entropy or NULL */
};

static __global__ void sample_kernel(const sample_out out, const float *__restrict__ logits, int64_t ld,
                                     const struct sample_row *__restrict__ rows, int64_t v)
{
    __shared__ sample_shared s;
    const struct sample_row *row = rows + blockIdx.x;
    const float *z = logits + blockIdx.x * ld, scale = row->temperature > 0 ? 1.0f / row->temperature : 1.0f;
    const float m = softmax_max<SAMPLE_THREADS>(z, scale, v, s.part);
    float l = 0, w = 0;
    for (int64_t i = threadIdx.x; i < v; i += SAMPLE_THREADS) {
        const float d = softmax_shifted(z[i], scale, m), e = exact_exp(d);
        l += e;
        w = fmaf(e, d, w);
    }
    l = block_reduce<add_op, SAMPLE_THREADS>(l, s.part);
    w = block_reduce<add_op, SAMPLE_THREADS>(w, s.part);
    const sample_logits x = {z, v, scale, m};
    const int64_t id = row->temperature > 0 ? sample_draw(&s, x, row) : sample_greedy(&s, x);
    if (threadIdx.x) return;
    const float log_l = exact_log(l);
    out.token[blockIdx.x] = (int32_t)id;
    out.logprob[blockIdx.x] = softmax_shifted(z[id], scale, m) - log_l;
    if (out.entropy) out.entropy[blockIdx.x] = log_l - w / l;
}

void cuda_sample(const struct kctx *c, const struct op_sample *o)
{
    CUDA_OP(c, "sample", "rows vocab", o->r, o->v);
    const sample_out out = {o->token, o->logprob, o->entropy};
    if (o->r > 0 && o->v > 0)
        CUDA_LAUNCH(c, sample_kernel, (unsigned)o->r, SAMPLE_THREADS, 0, out, o->logits, o->ld, o->rows, o->v);
}
