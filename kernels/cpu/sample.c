/* Drawing tokens (definition: ref/sample.c). The masses of blocks of ids come with the softmax's sums; only the block that holds the
 * target is looked through. Truncation keeps the row's weights e in scratch and finds the cut by bisection over the bits of a float. */
struct sample_args {
    int32_t *token;
    float *logprob, *entropy;
    const float *logits;
    const struct sample_row *rows;
    int64_t ld, v, blocks;
    uint64_t *mass; /* [threads, blocks] */
    float *weights; /* [threads, V rounded up], when a row is truncated */
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

static uint32_t sample_search(const float *e, int64_t v, int64_t count, uint64_t mass)
{
    uint32_t bits = 0;
    for (uint32_t bit = 1u << 29; bit; bit >>= 1) {
        if ((bits | bit) > 0x3f800000u) continue; /* no weight is above 1 */
        const struct sample_part part = sample_above(e, v, bits | bit);
        if (part.count >= count && part.mass >= mass) bits |= bit;
    }
    return bits;
}

struct sample_cut {
    uint32_t bits;
    int64_t ties;
};

static struct sample_cut sample_truncate(const float *e, const struct sample_row *row, int64_t v)
{
    struct sample_cut cut = {0, v};
    const int top_k = row->top_k > 0 && row->top_k < v;
    if (top_k) {
        cut.bits = sample_search(e, v, row->top_k, 0);
        cut.ties = row->top_k - sample_above(e, v, cut.bits + 1).count;
    }
    if (row->top_p < 1) {
        const uint64_t unit = mass_of(f32_from_bits(cut.bits));
        const uint64_t all = top_k ? sample_above(e, v, cut.bits + 1).mass + (uint64_t)cut.ties * unit : sample_above(e, v, 0).mass;
        const double wanted = ceil((double)row->top_p * (double)all);
        const uint64_t need = wanted < 1 ? 1 : wanted > (double)all ? all : (uint64_t)wanted;
        const uint32_t bits = sample_search(e, v, 0, need);
        if (bits >= cut.bits) {
            const uint64_t above = sample_above(e, v, bits + 1).mass, each = mass_of(f32_from_bits(bits));
            const int64_t ties = each ? (int64_t)((need - above + each - 1) / each) : v;
            if (bits > cut.bits || ties < cut.ties) cut = (struct sample_cut){bits, ties};
        }
    }
    if (row->min_p > 0 && f32_bits(row->min_p) > cut.bits) cut = (struct sample_cut){f32_bits(row->min_p), v};
    return cut;
}

/* Zeroes what is cut away; masses of what is kept. */
static void sample_keep(float *e, uint64_t *mass, struct sample_cut cut, int64_t v)
{
    int64_t ties = 0;
    for (int64_t i = 0; i < v; i++) {
        if (i % MASS_BLOCK == 0) mass[i / MASS_BLOCK] = 0;
        if (!(e[i] >= 0) || f32_bits(e[i]) < cut.bits || (f32_bits(e[i]) == cut.bits && ties++ >= cut.ties)) e[i] = 0;
        mass[i / MASS_BLOCK] += mass_of(e[i]);
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

static int32_t sample_draw(const struct sample_row *row, const struct weighed *w)
{
    const uint64_t *mass = w->mass;
    const int64_t v = w->v;
    uint64_t total = 0, below = 0;
    int64_t block = 0;
    for (int64_t i = 0; i * MASS_BLOCK < v; i++) total += mass[i];
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
            e = s->weights + thread * ((s->v + LANES - 1) / LANES * LANES);
            sample_weights(e, z, scale, lse[0], s->v);
            sample_keep(e, mass, sample_truncate(e, row, s->v), s->v);
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
    s.weights = scratch(c, pool_threads(c->pool) * ((o->v + LANES - 1) / LANES * LANES));
    if (!s.mass || !s.weights) return;
    spans(c, o->r, 4 * o->v, 1, sample_run, &s);
    arena_reset(c->scratch);
}
