/* Drawing tokens (definition: ref/sample.c). The masses of blocks of ids come with the softmax's sums; only the block that holds the
 * target is looked through. Truncation keeps the row's weights e in scratch and finds the cut by bisection over the bits of a float, which looks at fewer
 * and fewer of them. */
struct sample_args {
    int32_t *token;
    float *logprob, *entropy;
    const float *logits;
    const struct sample_row *rows;
    int64_t ld, v, blocks;
    uint64_t *mass; /* [threads, blocks] */
    float *weights; /* [threads, 2, V rounded up], when a row is truncated: the weights, and room for those between two bounds */
};

struct sample_part {
    int64_t count;
    uint64_t mass;
};

static void sample_weights(float *e, const float *z, float scale, float m, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES)
        gemm_store(e + i, v_exp(v_shifted(gemm_load(z + i, n - i), v_set(scale), v_set(m))), n - i);
}

/* All with e bits >= bound. NaN has no rank. */
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

/* The lanes of x that `keep` has, side by side; what follows them, up to a vector, is overwritten. */
INLINE void sample_store(float *to, vf x, unsigned keep)
{
#ifdef __AVX512F__
    v_store(to, _mm512_maskz_compress_ps((__mmask16)keep, x));
#else
    float lanes[LANES];
    v_store(lanes, x);
    for (; keep; keep &= keep - 1) *to++ = lanes[__builtin_ctz(keep)];
#endif
}

/* Those with low <= bits < high, in their order; `to` may be e. Returns how many. */
static int64_t sample_between(float *to, const float *e, int64_t n, uint32_t low, uint32_t high)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t left = n - i;
        const vf x = gemm_load(e + i, left);
        unsigned keep = v_bits_at_least(x, low) & ~v_bits_at_least(x, high);
        if (left < LANES) keep &= (1u << left) - 1;
        sample_store(to + kept, x, keep);
        kept += __builtin_popcount(keep);
    }
    return kept;
}

struct sample_row_weights {
    const float *e;
    float *room; /* [v rounded up] */
    int64_t v;
    uint64_t mass; /* of all */
};

struct sample_found {
    uint32_t bits;
    struct sample_part above; /* all with more */
};

/* The largest bits such that all with at least those are `count` or more, and their mass is `mass` or more. From 1 downwards in growing steps, since a pass
 * over few is cheap, and then by bisection. What is above the interval that is left is counted once, and what is not in it is left out when that halves
 * the list. */
static struct sample_found sample_search(const struct sample_row_weights *w, int64_t count, uint64_t mass)
{
    const float *e = w->e;
    int64_t n = w->v;
    struct sample_part above = {0, 0}, left_out = {0, 0};  /* left_out: of those above, what is not in the list */
    uint32_t low = 0, high = 0x3f800001u, step = 1u << 23; /* no weight is above 1; an octave */
    while (high - low > 1) {
        const uint32_t middle = step && step < high - low ? high - step : low + (high - low) / 2;
        const struct sample_part part = sample_above(e, n, middle), all = {left_out.count + part.count, left_out.mass + part.mass};
        const int enough = all.count >= count && all.mass >= mass;
        step = enough ? 0 : 2 * step;
        if (enough) {
            low = middle;
        } else {
            high = middle;
            above = all;
        }
        if ((enough ? part.count : n - part.count) > n / 2) continue;
        n = sample_between(w->room, e, n, low, high);
        e = w->room;
        left_out = above;
    }
    return (struct sample_found){low, above};
}

struct sample_cut {
    uint32_t bits;
    int64_t ties;
};

static struct sample_cut sample_truncate(const struct sample_row_weights *w, const struct sample_row *row)
{
    struct sample_cut cut = {0, w->v};
    uint64_t all = w->mass;
    if (row->top_k > 0 && row->top_k < w->v) {
        const struct sample_found k = sample_search(w, row->top_k, 0);
        cut = (struct sample_cut){k.bits, row->top_k - k.above.count};
        all = k.above.mass + (uint64_t)cut.ties * mass_of(f32_from_bits(cut.bits));
    }
    if (row->top_p < 1) {
        const double wanted = ceil((double)row->top_p * (double)all);
        const uint64_t need = wanted < 1 ? 1 : wanted > (double)all ? all : (uint64_t)wanted;
        const struct sample_found p = sample_search(w, 0, need);
        if (p.bits >= cut.bits) {
            const uint64_t each = mass_of(f32_from_bits(p.bits));
            const int64_t ties = each ? (int64_t)((need - p.above.mass + each - 1) / each) : w->v;
            if (p.bits > cut.bits || ties < cut.ties) cut = (struct sample_cut){p.bits, ties};
        }
    }
    if (row->min_p > 0 && f32_bits(row->min_p) > cut.bits) cut = (struct sample_cut){f32_bits(row->min_p), w->v};
    return cut;
}

/* Zeroes what is cut away; masses of what is kept. */
static void sample_keep(float *e, uint64_t *mass, struct sample_cut cut, int64_t v)
{
    const vf bound = v_set(f32_from_bits(cut.bits));
    int64_t ties = 0;
    for (int64_t block = 0; block < v; block += MASS_BLOCK, mass++) {
        const int64_t end = v - block < MASS_BLOCK ? v : block + MASS_BLOCK;
        vmass sum = vmass_zero();
        for (int64_t i = block; i < end; i += LANES) {
            const int64_t left = end - i;
            const vf x = gemm_load(e + i, left), kept = v_zero_where_less(v_zero_unless_positive(x), x, bound);
            unsigned tie = v_bits_at_least(x, cut.bits) & ~v_bits_at_least(x, cut.bits + 1);
            if (left < LANES) tie &= (1u << left) - 1;
            ties += __builtin_popcount(tie);
            sum = vmass_add(sum, kept);
            gemm_store(e + i, kept, left);
        }
        *mass = vmass_sum(sum);
        for (int64_t i = end; ties > cut.ties && i-- > block;) { /* the last ones are too many */
            if (f32_bits(e[i]) != cut.bits) continue;
            *mass -= mass_of(e[i]);
            e[i] = 0;
            ties--;
        }
    }
}

static int32_t sample_greedy(const float *z, int64_t v)
{
    int64_t best = 0;
    for (int64_t i = 1; i < v; i++)
        if (z[i] > z[best]) best = i;
    return (int32_t)best;
}

struct weighed {        /* a row of logits, and the mass of each block of MASS_BLOCK */
    const float *z, *e; /* e: the kept weights, or NULL when nothing is cut away */
    const uint64_t *mass;
    float scale, m;
    int64_t v;
};

static uint64_t sample_total(const uint64_t *mass, int64_t v)
{
    uint64_t total = 0;
    for (int64_t i = 0; i * MASS_BLOCK < v; i++) total += mass[i];
    return total;
}

static int32_t sample_draw(const struct sample_row *row, const struct weighed *w)
{
    const uint64_t *mass = w->mass;
    const int64_t v = w->v;
    const uint64_t total = sample_total(mass, v);
    uint64_t below = 0;
    int64_t block = 0;
    if (!total) return sample_greedy(w->z, v); /* logits are not finite */
    const uint64_t target = sample_target(row, total);
    while (below + mass[block] <= target) below += mass[block++];
    const int64_t begin = block * MASS_BLOCK, n = v - begin < MASS_BLOCK ? v - begin : MASS_BLOCK;
    float own[MASS_BLOCK];
    if (w->e)
        memcpy(own, w->e + begin, (size_t)n * sizeof *own);
    else
        sample_weights(own, w->z + begin, w->scale, w->m, n);
    int64_t i = 0;
    while ((below += mass_of(own[i])) <= target) i++;
    return (int32_t)(begin + i);
}

static void sample_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    const struct sample_args *s = arg;
    uint64_t *mass = s->mass + thread * s->blocks;
    for (int64_t i = begin; i < end; i++) {
        const struct sample_row *row = &s->rows[i];
        const float *z = s->logits + i * s->ld, scale = row->temperature > 0 ? 1.0f / row->temperature : 1.0f;
        float lse[2], *e = NULL;
        const float h = head_row(lse, mass, z, scale, s->v);
        if (s->entropy) s->entropy[i] = h;
        if (row->temperature > 0 && ((row->top_k > 0 && row->top_k < s->v) || row->top_p < 1 || row->min_p > 0)) {
            const int64_t room = (s->v + LANES - 1) / LANES * LANES;
            e = s->weights + thread * 2 * room;
            sample_weights(e, z, scale, lse[0], s->v);
            const struct sample_row_weights w = {e, e + room, s->v, sample_total(mass, s->v)};
            sample_keep(e, mass, sample_truncate(&w, row), s->v);
        }
        s->token[i] =
            row->temperature > 0 ? sample_draw(row, &(struct weighed){z, e, mass, scale, lse[0], s->v}) : sample_greedy(z, s->v);
        s->logprob[i] = head_shifted(z[s->token[i]], scale, lse[0]) - lse[1];
    }
}

static void sample(const struct kctx *c, const struct op_sample *o)
{
    struct sample_args s = {o->token, o->logprob, o->entropy, o->logits, o->rows, o->ld, o->v, (o->v + MASS_BLOCK - 1) / MASS_BLOCK,
                            NULL,     NULL};
    s.mass = scratch(c, pool_threads(c->pool) * s.blocks * 2);
    s.weights = scratch(c, pool_threads(c->pool) * 2 * ((o->v + LANES - 1) / LANES * LANES));
    if (!s.mass || !s.weights) return;
    spans(c, o->r, 4 * o->v, 1, sample_run, &s);
    arena_reset(c->scratch);
}
