/* Sample a token from a row of logits z[V].
 *
 * e_v = exp(d_v) as in head.c, in [0, 1]. Its mass is a multiple of 2^-44 (exact.h), so sums are
 * exact and the draw does not depend on any order. Tokens are ranked by e, equal ones by id.
 * Truncation keeps a leading part of that ranking, stored as a cut: all e above `bits` (a float's
 * bits, which are ordered like the number) and the first `ties` tokens with exactly that value.
 *   top-k: the first k tokens.
 *   top-p: the shortest leading part of those with mass >= top_p times their total mass.
 *   min-p: e >= min_p (the largest e is 1).
 * The draw: u = 53 bits of Philox(key, position), target = floor(u mass); the token is the lowest
 * id with (kept mass of ids up to it) > target. */
struct sample_cut {
    uint32_t bits;
    int64_t ties;
};

struct sample_part { /* the most probable tokens: those whose e, as the bits of a float, is >= a bound */
    int64_t count;
    uint64_t mass;
};

static float sample_weight(const float *z, int64_t i, float scale, float m)
{
    return exact_exp(head_shifted(z[i], scale, m));
}

static struct sample_part sample_above(const float *z, float scale, float m, int64_t v, uint64_t bound)
{
    struct sample_part part = {0, 0};
    for (int64_t i = 0; i < v; i++) {
        const float e = sample_weight(z, i, scale, m);
        if (e >= 0 && f32_bits(e) >= bound) {
            part.count++;
            part.mass += mass_of(e);
        }
    }
    return part;
}

/* Largest bits b with count(e >= b) >= count and mass(e >= b) >= mass. */
static uint32_t sample_search(const float *z, float scale, float m, int64_t v, int64_t count, uint64_t mass)
{
    uint32_t bits = 0;
    for (uint32_t bit = 1u << 29; bit; bit >>= 1) {
        const struct sample_part part = sample_above(z, scale, m, v, bits | bit);
        if (part.count >= count && part.mass >= mass) bits |= bit;
    }
    return bits;
}

static struct sample_cut sample_truncate(const float *z, const struct sample_row *row, float scale, float m, int64_t v)
{
    struct sample_cut cut = {0, v};
    if (row->top_k > 0 && row->top_k < v) {
        cut.bits = sample_search(z, scale, m, v, row->top_k, 0);
        cut.ties = row->top_k - sample_above(z, scale, m, v, (uint64_t)cut.bits + 1).count;
    }
    if (row->top_p < 1) {
        const uint64_t unit = mass_of(f32_from_bits(cut.bits));
        const uint64_t all = row->top_k > 0 && row->top_k < v
                                 ? sample_above(z, scale, m, v, (uint64_t)cut.bits + 1).mass + (uint64_t)cut.ties * unit
                                 : sample_above(z, scale, m, v, 0).mass;
        const double wanted = ceil((double)row->top_p * (double)all);
        const uint64_t need = wanted < 1 ? 1 : wanted > (double)all ? all : (uint64_t)wanted;
        const uint32_t bits = sample_search(z, scale, m, v, 0, need);
        if (bits >= cut.bits) {
            const uint64_t above = sample_above(z, scale, m, v, (uint64_t)bits + 1).mass, each = mass_of(f32_from_bits(bits));
            const int64_t ties = each ? (int64_t)((need - above + each - 1) / each) : v;
            if (bits > cut.bits || ties < cut.ties) cut = (struct sample_cut){bits, ties};
        }
    }
    if (row->min_p > 0 && f32_bits(row->min_p) > cut.bits) cut = (struct sample_cut){f32_bits(row->min_p), v};
    return cut;
}

static uint64_t sample_kept_mass(float e, struct sample_cut cut, int64_t *ties)
{
    if (!(e >= 0) || f32_bits(e) < cut.bits) return 0;
    if (f32_bits(e) == cut.bits && (*ties)++ >= cut.ties) return 0;
    return mass_of(e);
}

static int32_t sample_greedy(const float *z, int64_t v)
{
    int64_t best = 0;
    for (int64_t i = 1; i < v; i++)
        if (z[i] > z[best]) best = i;
    return (int32_t)best;
}

static int32_t sample_draw(const float *z, const struct sample_row *row, float scale, float m, int64_t v)
{
    const struct sample_cut cut = sample_truncate(z, row, scale, m, v);
    uint64_t total = 0, below = 0;
    int64_t ties = 0;
    for (int64_t i = 0; i < v; i++) total += sample_kept_mass(sample_weight(z, i, scale, m), cut, &ties);
    const uint64_t target = sample_target(row, total);
    ties = 0;
    for (int64_t i = 0; i < v; i++) {
        below += sample_kept_mass(sample_weight(z, i, scale, m), cut, &ties);
        if (below > target) return (int32_t)i;
    }
    return sample_greedy(z, v); /* no token has mass: logits are not finite */
}

static void ref_sample(const struct kctx *c, const struct op_sample *o)
{
    (void)c;
    for (int64_t i = 0; i < o->r; i++) {
        const float *z = o->logits + i * o->ld, scale = o->rows[i].temperature > 0 ? 1.0f / o->rows[i].temperature : 1.0f;
        float lse[2];
        const float h = head_row(lse, z, scale, o->v);
        if (o->entropy) o->entropy[i] = h;
        o->token[i] = o->rows[i].temperature > 0 ? sample_draw(z, &o->rows[i], scale, lse[0], o->v) : sample_greedy(z, o->v);
        o->logprob[i] = head_shifted(z[o->token[i]], scale, lse[0]) - lse[1];
    }
}
