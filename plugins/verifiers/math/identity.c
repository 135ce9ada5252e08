/* Expressions with symbols: rational functions modulo a prime (modular.c), everything else as balls
 * at rational sample points. Disjoint balls at one point prove a difference; equality to 300 bits
 * at all points is accepted as an identity. Symbols under factorials, binomials, gcd, or in the
 * exponent of a negative base get integer values, under a remainder those that usually stand for
 * integers (a to d, i to n, p, q). Under floor and ceiling the points are fractions: at integers
 * the floor of x would be x. Then each letter is made negative in turn. The points are fixed, so a
 * verdict is reproducible. */
#include "flint.h"

#include <string.h>

enum { POINTS = 5, TRIES = 14, PREC = 333 };

enum inside { NOWHERE, BY_NAME, SURELY };

/* Returns whether the letter usually stands for an integer. */
static bool counts_integers(const struct math *m, int s)
{
    return m->symbol[s].n_name == 1 && strchr("abcdijklmnpq", m->pool[m->symbol[s].name]) != NULL;
}

static void mark_whole(const struct math *m, int x, enum inside inside, bool *whole)
{
    const struct node *a = at(m, x);
    if (!(a->flags & NODE_VAR)) return;
    if (a->op == OP_SYM && (inside == SURELY || (inside == BY_NAME && counts_integers(m, a->aux)))) whole[a->aux] = true;
    if (a->op == OP_FACT || a->op == OP_BINOM || a->op == OP_SUM || a->op == OP_PROD ||
        (a->op == OP_FUNC && (a->aux == F_GCD || a->aux == F_LCM)))
        inside = SURELY;
    if (a->op == OP_MOD && !inside) inside = BY_NAME;
    for (int i = 0; i < a->n; i++) {
        const int base = a->op == OP_POW && i == 1 ? kid(m, x, 0) : -1;
        const bool sign = base >= 0 && at(m, base)->op == OP_NUM && at(m, base)->aux;
        mark_whole(m, kid(m, x, i), sign ? SURELY : inside, whole);
    }
}

static uint64_t scramble_bits(uint64_t x)
{
    x = (x + 0x9E3779B97F4A7C15ULL) * 0xBF58476D1CE4E5B9ULL;
    x ^= x >> 29;
    x *= 0x94D049BB133111EBULL;
    return x ^ x >> 32;
}

/* Sample values are mostly positive, like the letters of most answers; points 3 and 6 have both
 * signs where signs matter (absolute values). */
static void sample_values(struct math *m, int try, const bool *whole, bool signs)
{
    struct values *v = m->values;
    balls_forget(m);
    for (int s = 0; s < m->n_symbols; s++) {
        if (v->bound[s] && !whole[s]) v->bound[s] = false;
        const uint64_t r = scramble_bits((uint64_t)(s * 257 + try));
        if (whole[s]) {
            v->bound[s] = true;
            v->bound_value[s] = (int64_t)(2 + r % (try < 7 ? 11 : 29));
            acb_set_si(v->symbol + s, (slong)v->bound_value[s]);
        } else {
            acb_set_si(v->symbol + s, (slong)(1 + r % 4093));
            acb_div_si(v->symbol + s, v->symbol + s, 1021, PREC);
            if (signs && try % 3 == 2 && (r >> 20) & 1) acb_neg(v->symbol + s, v->symbol + s);
        }
    }
    for (int s = 0; s < m->n_symbols; s++) {
        if (!m->alias[s]) continue;
        const int t = m->alias[s] - 1;
        acb_set(v->symbol + s, v->symbol + t);
        v->bound[s] = v->bound[t];
        v->bound_value[s] = v->bound_value[t];
    }
}

static bool has_func(const struct math *m, int x, enum func f)
{
    const struct node *a = at(m, x);
    if (a->op == OP_FUNC && a->aux == (int)f) return true;
    for (int i = 0; i < a->n; i++)
        if (has_func(m, kid(m, x, i), f)) return true;
    return false;
}

static void unbind_symbols(struct math *m)
{
    for (int s = 0; s < m->n_symbols; s++) m->values->bound[s] = false;
    balls_forget(m);
}

static void prepare_samples(const struct math *m, int a, int b, bool *whole, bool *signs)
{
    for (int s = 0; s < MAX_SYMBOLS; s++) whole[s] = false;
    mark_whole(m, a, NOWHERE, whole);
    mark_whole(m, b, NOWHERE, whole);
    for (int s = 0; s < m->n_symbols; s++)
        if (m->alias[s]) whole[s] = whole[m->alias[s] - 1] = whole[s] || whole[m->alias[s] - 1];
    *signs = has_func(m, a, F_ABS) || has_func(m, b, F_ABS) || has_func(m, a, F_SIGN) || has_func(m, b, F_SIGN);
}

/* Makes one letter negative and the others positive: sqrt(x^2) is not x. Counts only where both
 * sides are real there: ln(ab) is ln a + ln b. */
static enum truth refute_negative(struct math *m, int a, int b, const bool *whole)
{
    struct values *v = m->values;
    for (int s = 0; s < m->n_symbols; s++) {
        if (whole[s] || m->alias[s]) continue;
        for (int try = 0; try < 2; try++) {
            acb_srcptr x, y;
            sample_values(m, try, whole, false);
            acb_neg(v->symbol + s, v->symbol + s);
            for (int t = 0; t < m->n_symbols; t++)
                if (m->alias[t] == s + 1) acb_set(v->symbol + t, v->symbol + s);
            if (!ball_value(m, a, PREC, &x) || !ball_value(m, b, PREC, &y)) continue;
            if (acb_is_real(x) && acb_is_real(y) && !acb_overlaps(x, y)) return NO;
        }
    }
    return UNKNOWN;
}

/* Samples integers and a square, where the floor and the ceiling of x or its root are equal, but
 * floor + 1 and the ceiling are not. */
static enum truth refute_whole(struct math *m, int a, int b)
{
    bool every[MAX_SYMBOLS];
    memset(every, true, sizeof every);
    for (int try = 0; try < 2; try++) {
        acb_srcptr x, y;
        sample_values(m, try, every, false);
        for (int s = 0; try && s < m->n_symbols; s++) m->values->bound_value[s] = 4, acb_set_si(m->values->symbol + s, 4);
        if (ball_value(m, a, PREC, &x) && ball_value(m, b, PREC, &y) && !acb_overlaps(x, y)) return NO;
    }
    return UNKNOWN;
}

/* Samples complex z if z and w are the only letters and a modulus is taken, because |z| is not
 * z. */
static enum truth refute_complex(struct math *m, int a, int b)
{
    struct values *v = m->values;
    bool whole[MAX_SYMBOLS] = {false};
    acb_srcptr x, y;
    if (!has_func(m, a, F_ABS) && !has_func(m, b, F_ABS)) return UNKNOWN;
    sample_values(m, 1, whole, false);
    for (int s = 0; s < m->n_symbols; s++) {
        const char c = m->pool[m->symbol[s].name];
        if (m->symbol[s].n_name != 1 || (c != 'z' && c != 'w')) return UNKNOWN;
        arb_set(acb_imagref(v->symbol + s), acb_realref(v->symbol + s));
        arb_mul_2exp_si(acb_imagref(v->symbol + s), acb_imagref(v->symbol + s), 1);
    }
    return ball_value(m, a, PREC, &x) && ball_value(m, b, PREC, &y) && !acb_overlaps(x, y) ? NO : UNKNOWN;
}

static bool is_accurate(acb_srcptr x)
{
    return acb_rel_accuracy_bits(x) > 100 || acb_contains_zero(x);
}

enum truth numeric_identity(struct math *m, int a, int b)
{
    bool whole[MAX_SYMBOLS], signs;
    int points = 0;
    enum truth got = UNKNOWN;
    m->precision = PREC;
    prepare_samples(m, a, b, whole, &signs);
    for (int try = 0; try < TRIES && points < POINTS && got == UNKNOWN; try++) {
        acb_srcptr x, y;
        sample_values(m, try, whole, signs);
        const bool ok = ball_value(m, a, PREC, &x), too = ok && ball_value(m, b, PREC, &y);
        if (!ok || !too) continue;
        if (!acb_overlaps(x, y))
            got = NO;
        else if (is_accurate(x) && is_accurate(y))
            points++;
    }
    if (got == UNKNOWN && points == POINTS) got = refute_negative(m, a, b, whole);
    if (got == UNKNOWN && points == POINTS) got = refute_complex(m, a, b);
    if (got == UNKNOWN && points == POINTS && (at(m, a)->flags | at(m, b)->flags) & NODE_DISCRETE) got = refute_whole(m, a, b);
    unbind_symbols(m);
    return got == NO ? NO : points == POINTS ? YES : UNKNOWN;
}

enum truth numeric_proportional(struct math *m, int p, int q, int *sign)
{
    bool whole[MAX_SYMBOLS], signs;
    int points = 0;
    enum truth got = UNKNOWN;
    acb_t c, ratio;
    acb_init(c), acb_init(ratio);
    *sign = 0;
    prepare_samples(m, p, q, whole, &signs);
    for (int try = 0; try < TRIES && points <= POINTS && got == UNKNOWN; try++) {
        acb_srcptr x, y;
        sample_values(m, try, whole, true);
        if (!ball_value(m, p, PREC, &x) || !ball_value(m, q, PREC, &y)) continue;
        if (acb_contains_zero(y) || acb_contains_zero(x)) continue;
        acb_div(ratio, x, y, PREC);
        if (!points)
            acb_set(c, ratio);
        else if (!acb_overlaps(ratio, c))
            got = NO;
        points++;
    }
    if (points && arb_is_zero(acb_imagref(c)))
        *sign = arb_is_positive(acb_realref(c)) ? 1 : arb_is_negative(acb_realref(c)) ? -1 : 0;
    acb_clear(c), acb_clear(ratio);
    unbind_symbols(m);
    return got == NO ? NO : points > POINTS ? YES : UNKNOWN;
}

enum truth identity_equal(struct math *m, int a, int b)
{
    if (modular_is_rational(m, a) && modular_is_rational(m, b)) return modular_equal(m, a, b);
    return numeric_identity(m, a, b);
}

enum truth identity_proportional(struct math *m, int p, int q, int *sign)
{
    *sign = 0;
    if (modular_is_rational(m, p) && modular_is_rational(m, q)) {
        const enum truth got = modular_proportional(m, p, q);
        if (got == NO) return NO;
    }
    return numeric_proportional(m, p, q, sign);
}
