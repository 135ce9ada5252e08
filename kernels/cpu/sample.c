/* Sampling tokens (definition: ref/sample.c). The masses of blocks of ids are computed with the
 * softmax's sums, and only the block that contains the target is searched. Truncation keeps the
 * row's weights e in scratch and finds the cut by bisection over a float's bits. It examines
 * few weights: those above a bound derived from the largest weights of the blocks' lanes, and fewer
 * and fewer of them. */
enum {
    SAMPLE_TOP = 0x3f800001, /* the bits after those of 1, which is the largest weight */
    SAMPLE_SHORT = 64,       /* at most this many weights are not filtered further */
    SAMPLE_FEW = 4096        /* up to this many weights, no bound is computed */
};

struct sample_args {
    int32_t *token;
    float *logprob, *entropy;
    const float *logits;
    const struct sample_row *rows;
    int64_t ld, v, blocks;
    uint64_t *mass; /* [threads, blocks] */
    int64_t *ties;  /* [threads, blocks] */
    float *most;    /* [threads, blocks, LANES] */
    /* [threads, 2, V rounded up]: the weights, and scratch for those between two bounds */
    float *weights;
};

struct sample_part { /* all weights above a bound */
    int64_t count;
    uint64_t mass;
};

struct sample_list { /* a list of weights */
    const float *e;
    float *scratch; /* scratch for the weights that remain; may be e */
    int64_t n;
};

struct sample_cut {
    uint32_t bits;
    int64_t ties;
};

/* A row during sampling. */
struct sample_work {
    struct head_row h;
    const struct sample_row *row;
    struct sample_list list; /* all with bits >= low */
    uint32_t low;
    int64_t blocks;
    float *scratch; /* [V rounded up] */
    int64_t *ties;  /* [blocks]: number of weights equal to the cut */
    struct sample_cut cut;
};

/* Count and mass of all weights with bits >= bound. NaN has no rank. */
static struct sample_part sample_above(const float *e, int64_t v, uint32_t bound)
{
    struct sample_part part = {0, 0};
    for (int64_t block = 0; block < v; block += MASS_BLOCK) {
        const int64_t end = v - block < MASS_BLOCK ? v : block + MASS_BLOCK;
        vmass sum = vmass_zero();
        for (int64_t i = block; i < end; i += LANES) {
            const int64_t left = end - i;
            const vf x = gemm_load(e + i, left);
            unsigned keep = v_bits_at_least(x, bound) & ~v_bits_at_least(x, 0x7f800000u);
            if (left < LANES) keep &= (1u << left) - 1;
            if (!keep) continue;
            part.count += __builtin_popcount(keep);
            sum = vmass_add(sum, v_zero_where_less(x, x, v_set(f32_from_bits(bound))));
        }
        part.mass += vmass_sum(sum);
    }
    return part;
}

/* Copy the weights with low <= bits < high, in order, and return their number; `to` may be e. */
static int64_t sample_between(float *to, const float *e, int64_t n, uint32_t low, uint32_t high)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t left = n - i;
        const vf x = gemm_load(e + i, left);
        unsigned keep = v_bits_at_least(x, low) & ~v_bits_at_least(x, high);
        if (left < LANES) keep &= (1u << left) - 1;
        if (!keep) continue;
        v_store_kept(to + kept, x, keep);
        kept += __builtin_popcount(keep);
    }
    return kept;
}

struct sample_found {
    uint32_t bits;
    struct sample_part above; /* all weights above the cut */
};

/* Find the largest bits from `low` up such that the weights with at least those bits number `count`
 * or more and have mass `mass` or more; `low` if no bits qualify. The list holds all weights from
 * `low` up. The search goes down from 1 in growing steps, since a pass over few weights is cheap,
 * and then bisects. Weights above the remaining interval are counted once, and weights outside it
 * are dropped when that halves the list. */
static struct sample_found sample_search(struct sample_list l, uint32_t low, int64_t count, uint64_t mass)
{
    /* left_out: the weights above that are not in the list */
    struct sample_part above = {0, 0}, left_out = {0, 0};
    uint32_t high = SAMPLE_TOP, step = 1u << 23; /* an octave */
    while (high - low > 1) {
        const uint32_t middle = step && step < high - low ? high - step : low + (high - low) / 2;
        const struct sample_part part = sample_above(l.e, l.n, middle),
                                 all = {left_out.count + part.count, left_out.mass + part.mass};
        const int enough = all.count >= count && all.mass >= mass;
        step = enough ? 0 : 2 * step;
        if (enough) {
            low = middle;
        } else {
            high = middle;
            above = all;
        }
        if (l.n <= SAMPLE_SHORT || (enough ? part.count : l.n - part.count) > l.n / 2) continue;
        l.n = sample_between(l.scratch, l.e, l.n, low, high);
        l.e = l.scratch;
        left_out = above;
    }
    return (struct sample_found){low, above};
}

/* Find bits such that the weights with at least these bits number `count` or more and have mass
 * `mass` or more, because the largest ones of the blocks' lanes do. Often not many more qualify, so
 * one pass leaves few weights to search. 0: the largest ones are not enough. Call it once per row,
 * since it sorts them in place. */
static uint32_t sample_bound(const struct sample_work *w, int64_t count, uint64_t mass)
{
    if (w->h.v <= SAMPLE_FEW) return 0;
    return sample_search((struct sample_list){w->h.most, w->h.most, w->blocks * LANES}, 0, count, mass).bits;
}

/* Collect all weights from `low` up in the list, with scratch for a search that does not change
 * them. Without scratch, the list is made again for the next search. */
static void sample_gather(struct sample_work *w, uint32_t low)
{
    if (w->list.n && w->list.e != w->list.scratch && w->low <= low) return;
    w->list = (struct sample_list){w->h.e, w->scratch, w->h.v};
    w->low = low;
    if (!low) return;
    const int64_t n = sample_between(w->scratch, w->h.e, w->h.v, low, SAMPLE_TOP), vectors = (n + LANES - 1) / LANES * LANES;
    w->list = (struct sample_list){w->scratch, 2 * vectors <= w->h.v ? w->scratch + vectors : w->scratch, n};
}

static uint64_t sample_total(const struct sample_work *w)
{
    uint64_t total = 0;
    for (int64_t i = 0; i < w->blocks; i++) total += w->h.mass[i];
    return total;
}

static struct sample_cut sample_truncate(struct sample_work *w)
{
    const struct sample_row *row = w->row;
    const int64_t v = w->h.v;
    const int top_k = row->top_k > 0 && row->top_k < v;
    struct sample_cut cut = {0, v};
    uint64_t all = w->h.mass ? sample_total(w) : 0;
    if (top_k) {
        sample_gather(w, sample_bound(w, row->top_k, 0));
        const struct sample_found k = sample_search(w->list, w->low, row->top_k, 0);
        cut = (struct sample_cut){k.bits, row->top_k - k.above.count};
        all = k.above.mass + (uint64_t)cut.ties * mass_of(f32_from_bits(cut.bits));
    }
    if (row->top_p < 1) {
        const double wanted = ceil((double)row->top_p * (double)all);
        const uint64_t need = wanted < 1 ? 1 : wanted > (double)all ? all : (uint64_t)wanted;
        sample_gather(w, top_k ? cut.bits : sample_bound(w, 0, need));
        const struct sample_found p = sample_search(w->list, w->low, 0, need);
        if (p.bits >= cut.bits) {
            const uint64_t each = mass_of(f32_from_bits(p.bits));
            const int64_t ties = each ? (int64_t)((need - p.above.mass + each - 1) / each) : v;
            if (p.bits > cut.bits || ties < cut.ties) cut = (struct sample_cut){p.bits, ties};
        }
    }
    if (row->min_p > 0 && f32_bits(row->min_p) > cut.bits) cut = (struct sample_cut){f32_bits(row->min_p), v};
    return cut;
}

/* Compute the masses that the cut leaves in every block. The first ties are kept. */
static void sample_keep(struct sample_work *w)
{
    const uint32_t bits = w->cut.bits;
    const uint64_t each = mass_of(f32_from_bits(bits));
    int64_t stay = w->cut.ties;
    for (int64_t block = 0; block < w->blocks; block++) {
        const int64_t end = w->h.v - block * MASS_BLOCK < MASS_BLOCK ? w->h.v : (block + 1) * MASS_BLOCK;
        int64_t ties = 0;
        vmass sum = vmass_zero();
        for (int64_t i = block * MASS_BLOCK; i < end; i += LANES) {
            const int64_t left = end - i;
            const vf x = gemm_load(w->h.e + i, left);
            unsigned keep = v_bits_at_least(x, bits) & ~v_bits_at_least(x, SAMPLE_TOP);
            if (left < LANES) keep &= (1u << left) - 1;
            if (!keep) continue;
            ties += __builtin_popcount(keep & ~v_bits_at_least(x, bits + 1));
            sum = vmass_add(sum, v_zero_where_less(x, x, v_set(f32_from_bits(bits))));
        }
        w->ties[block] = ties < stay ? ties : stay;
        w->h.mass[block] = vmass_sum(sum) - (uint64_t)(ties - w->ties[block]) * each;
        stay -= w->ties[block];
    }
}

/* Index of the first of the largest logits. `top` is that maximum unless the first logit is NaN; no
 * number is greater than NaN. */
static int32_t sample_greedy(const float *z, int64_t v, float top)
{
    int64_t i = 0;
    if (isnan(z[0])) return 0;
    while (v - i > MASS_BLOCK && head_max(z + i, 1, MASS_BLOCK) < top) i += MASS_BLOCK;
    while (z[i] != top) i++;
    return (int32_t)i;
}

static int32_t sample_draw(const struct sample_work *w)
{
    const uint64_t *mass = w->h.mass, total = sample_total(w);
    uint64_t below = 0;
    int64_t block = 0;
    /* logits are not finite */
    if (!total) return sample_greedy(w->h.z, w->h.v, head_max(w->h.z, 1, w->h.v));
    const uint64_t target = sample_target(w->row, total);
    while (below + mass[block] <= target) below += mass[block++];
    const int64_t begin = block * MASS_BLOCK, n = w->h.v - begin < MASS_BLOCK ? w->h.v - begin : MASS_BLOCK;
    const float *e = w->h.e + begin;
    float own[MASS_BLOCK];
    if (!w->h.e) {
        for (int64_t i = 0; i < n; i += LANES) gemm_store(own + i, v_exp(head_distance(&w->h, begin + i, n - i)), n - i);
        e = own;
    }
    int64_t i = 0;
    if (!w->cut.bits) {
        while ((below += mass_of(e[i])) <= target) i++;
        return (int32_t)(begin + i);
    }
    for (int64_t ties = w->ties[block];; i++) {
        const uint32_t bits = f32_bits(e[i]);
        if (bits < w->cut.bits || (bits == w->cut.bits && ties-- <= 0)) continue;
        if ((below += mass_of(e[i])) > target) return (int32_t)(begin + i);
    }
}

static void sample_one(const struct sample_args *s, int64_t i, int thread)
{
    const struct sample_row *row = &s->rows[i];
    const int top_k = row->top_k > 0 && row->top_k < s->v, top_p = row->top_p < 1;
    const int truncated = row->temperature > 0 && (top_k || top_p || row->min_p > 0);
    const int64_t first = thread * s->blocks;
    float *e = s->weights + first * 2 * MASS_BLOCK, lse[2];
    struct sample_work w = {.h = {.z = s->logits + i * s->ld,
                                  .v = s->v,
                                  .scale = row->temperature > 0 ? 1.0f / row->temperature : 1.0f,
                                  /* the total of which top-p takes a part */
                                  .mass = truncated && (top_k || !top_p) ? NULL : s->mass + first,
                                  .e = truncated ? e : NULL,
                                  .most = s->most + first * LANES},
                            .row = row,
                            .blocks = s->blocks,
                            .scratch = e + s->blocks * MASS_BLOCK,
                            .ties = s->ties + first};
    const float h = head_row(lse, &w.h);
    if (s->entropy) s->entropy[i] = h;
    if (truncated) {
        w.cut = sample_truncate(&w);
        w.h.mass = s->mass + first;
        sample_keep(&w);
    }
    s->token[i] = row->temperature > 0 ? sample_draw(&w) : sample_greedy(w.h.z, s->v, w.h.top);
    s->logprob[i] = head_shifted(w.h.z[s->token[i]], w.h.scale, lse[0]) - lse[1];
}

static void sample_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    for (int64_t i = begin; i < end; i++) sample_one(arg, i, thread);
}

static void cpu_sample(const struct kctx *c, const struct op_sample *o)
{
    struct sample_args s = {.token = o->token,
                            .logprob = o->logprob,
                            .entropy = o->entropy,
                            .logits = o->logits,
                            .rows = o->rows,
                            .ld = o->ld,
                            .v = o->v,
                            .blocks = (o->v + MASS_BLOCK - 1) / MASS_BLOCK};
    const int64_t n = pool_threads(c->pool) * s.blocks;
    s.mass = scratch(c, n * 2);
    s.ties = scratch(c, n * 2);
    s.most = scratch(c, n * LANES);
    s.weights = scratch(c, n * 2 * MASS_BLOCK);
    if (!s.mass || !s.ties || !s.most || !s.weights) return;
    spans(c, o->r, 4 * o->v, 1, sample_run, &s);
    arena_reset(c->scratch);
}
