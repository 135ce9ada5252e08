/* Proves equalities that ball arithmetic cannot prove: those of algebraic numbers (qqbar: minimal
 * polynomials), then of elementary numbers (ca). Neither library can be interrupted, so its input
 * is limited: degrees, heights, and the number of radicals and functions. */
#include "flint.h"

/* MAX_PRODUCT: of degrees */
enum { MAX_DEGREE = 64, MAX_PRODUCT = 4096, MAX_HEIGHT = 4000, MAX_RADICALS = 6, MAX_PARTS = 60 };

struct size {
    int nodes, radicals, functions, pis;
    int64_t degree;
};

/* Adds up the parts of x; false: a part is not algebraic or elementary, or there are too many. */
static bool measure_size(struct math *m, int x, struct size *s)
{
    const struct node *a = at(m, x);
    const fmpq *q;
    if (++s->nodes > MAX_PARTS) return false;
    if (!(a->flags & (NODE_TRANS | NODE_VAR | NODE_SHAPE)) && !rational_value(m, x, &q))
        return fmpz_bits(fmpq_numref(q)) < 2000 && fmpz_bits(fmpq_denref(q)) < 2000;
    switch (a->op) {
    case OP_CONST:
        s->degree *= a->aux == C_I ? 2 : 1;
        s->pis += a->aux == C_PI;
        s->functions += a->aux == C_E;
        return a->aux <= C_I && s->degree <= MAX_PRODUCT;
    case OP_POW:
    case OP_ROOT: {
        const enum value got = rational_value(m, kid(m, x, 1), &q);
        if (got)
            s->functions++;
        else {
            const fmpz *part = a->op == OP_ROOT ? fmpq_numref(q) : fmpq_denref(q);
            if (fmpz_cmp_ui(part, 64) > 0 || fmpz_sgn(part) <= 0) return false;
            if (a->op == OP_POW && fmpz_cmpabs(fmpq_numref(q), (fmpz[]){128}) > 0) return false;
            if (!fmpz_is_one(part)) s->radicals++, s->degree *= fmpz_get_si(part);
            if (s->degree > MAX_PRODUCT) return false;
            return measure_size(m, kid(m, x, 0), s);
        }
        break;
    }
    case OP_FUNC:
        if (a->aux >= F_MAX) return false;
        if (a->aux == F_FLOOR || a->aux == F_CEIL) return !rational_value(m, x, &q);
        s->functions++;
        break;
    case OP_ADD:
    case OP_MUL:
    case OP_DEG:
        break;
    default:
        return false;
    }
    for (int i = 0; i < a->n; i++)
        if (!measure_size(m, kid(m, x, i), s)) return false;
    return s->radicals <= MAX_RADICALS && s->functions <= MAX_RADICALS;
}

/* ---------------------------------------------------------------- algebraic numbers */

/* Returns whether x = q pi, or q pi i, with a rational q of small denominator. */
static bool pi_multiple(struct math *m, int x, bool times_i, slong *p, ulong *q)
{
    const struct node *a = at(m, x);
    const fmpq *r;
    fmpq_t c;
    bool pi = a->op == OP_CONST && a->aux == C_PI, ok = pi || a->op == OP_MUL, i_left = times_i;
    fmpq_init(c);
    fmpq_one(c);
    for (int i = 0; a->op == OP_MUL && i < a->n && ok; i++) {
        const struct node *k = at(m, kid(m, x, i));
        if (k->op == OP_CONST && k->aux == C_PI)
            ok = !pi, pi = true;
        else if (!rational_value(m, kid(m, x, i), &r))
            fmpq_mul(c, c, r);
        else
            ok = false;
    }
    ok = ok && pi && !i_left && fmpz_cmp_ui(fmpq_denref(c), 60) <= 0 && fmpz_bits(fmpq_numref(c)) < 30;
    if (ok) *p = fmpz_get_si(fmpq_numref(c)), *q = fmpz_get_ui(fmpq_denref(c));
    fmpq_clear(c);
    return ok;
}

static bool algebraic_value(struct math *m, int x, qqbar_t out);

static bool algebraic_function(struct math *m, int x, qqbar_t out)
{
    const struct node *a = at(m, x);
    slong p;
    ulong q;
    if (a->aux == F_ABS) {
        if (!algebraic_value(m, kid(m, x, 0), out) || qqbar_degree(out) > 8) return false;
        return qqbar_abs(out, out), true;
    }
    if (!pi_multiple(m, kid(m, x, 0), false, &p, &q)) return false;
    switch (a->aux) {
    case F_SIN:
        qqbar_sin_pi(out, p, q);
        return true;
    case F_COS:
        qqbar_cos_pi(out, p, q);
        return true;
    case F_TAN:
        return qqbar_tan_pi(out, p, q);
    case F_COT:
        return qqbar_cot_pi(out, p, q);
    default:
        return false;
    }
}

static bool algebraic_many(struct math *m, int x, qqbar_t out)
{
    const struct node *a = at(m, x);
    qqbar_t y;
    qqbar_init(y);
    bool ok = algebraic_value(m, kid(m, x, 0), out);
    for (int i = 1; i < a->n && ok; i++) {
        ok = algebraic_value(m, kid(m, x, i), y) && qqbar_binop_within_limits(out, y, MAX_DEGREE, MAX_HEIGHT);
        if (ok && a->op == OP_ADD)
            qqbar_add(out, out, y);
        else if (ok)
            qqbar_mul(out, out, y);
    }
    qqbar_clear(y);
    return ok;
}

/* A real root of a negative number is negative. */
static bool algebraic_root(struct math *m, int x, qqbar_t out)
{
    const fmpq *index;
    if (rational_value(m, kid(m, x, 1), &index) || !algebraic_value(m, kid(m, x, 0), out)) return false;
    const ulong n = fmpz_get_ui(fmpq_numref(index));
    if (qqbar_degree(out) * (slong)n > MAX_DEGREE) return false;
    const bool negative = qqbar_is_real(out) && qqbar_sgn_re(out) < 0;
    if (negative) qqbar_neg(out, out);
    qqbar_root_ui(out, out, n);
    if (negative) qqbar_neg(out, out);
    return true;
}

static bool algebraic_power(struct math *m, int x, qqbar_t out)
{
    const struct node *base = at(m, kid(m, x, 0));
    const fmpq *q;
    if (base->op == OP_CONST && base->aux == C_E) { /* e^(i pi q) */
        slong turns;
        ulong half;
        if (!pi_multiple(m, kid(m, x, 1), true, &turns, &half)) return false;
        qqbar_exp_pi_i(out, turns, half);
        return true;
    }
    if (rational_value(m, kid(m, x, 1), &q) || !algebraic_value(m, kid(m, x, 0), out)) return false;
    if (qqbar_is_zero(out) && fmpq_sgn(q) <= 0) return false;
    if (fmpz_bits(fmpq_numref(q)) > 8 || fmpz_bits(fmpq_denref(q)) > 7) return false;
    const slong n = fmpz_get_si(fmpq_numref(q)), d = fmpz_get_si(fmpq_denref(q));
    if (qqbar_degree(out) * d > MAX_DEGREE || qqbar_height_bits(out) * (n < 0 ? -n : n) > MAX_HEIGHT) return false;
    fmpq_t e;
    fmpq_init(e);
    fmpq_set(e, q);
    qqbar_pow_fmpq(out, out, e);
    fmpq_clear(e);
    return true;
}

static bool algebraic_value(struct math *m, int x, qqbar_t out)
{
    const struct node *a = at(m, x);
    const fmpq *q;
    if (!spend(m, 20)) return false;
    if (!rational_value(m, x, &q)) {
        qqbar_set_fmpq(out, (fmpq *)(uintptr_t)q);
        return true;
    }
    switch (a->op) {
    case OP_CONST:
        if (a->aux != C_I) return false;
        qqbar_i(out);
        return true;
    case OP_DEG:
        return algebraic_value(m, kid(m, x, 0), out);
    case OP_ADD:
    case OP_MUL:
        return algebraic_many(m, x, out);
    case OP_POW:
        return algebraic_power(m, x, out);
    case OP_ROOT:
        return algebraic_root(m, x, out);
    case OP_FUNC:
        return algebraic_function(m, x, out);
    default:
        return false;
    }
}

static enum truth algebraic_test(struct math *m, int a, int b)
{
    qqbar_t x, y;
    qqbar_init(x), qqbar_init(y);
    enum truth got = UNKNOWN;
    if (algebraic_value(m, a, x) && algebraic_value(m, b, y)) got = qqbar_equal(x, y) ? YES : NO;
    qqbar_clear(x), qqbar_clear(y);
    return got;
}

/* ---------------------------------------------------------------- elementary numbers */

static bool elementary_value(struct math *m, int x, ca_t out, ca_ctx_t ctx);

static bool elementary_function(struct math *m, int x, ca_t out, ca_ctx_t ctx)
{
    const struct node *a = at(m, x);
    ca_t y;
    if (!elementary_value(m, kid(m, x, 0), out, ctx)) return false;
    switch (a->aux) {
    case F_SIN:
        ca_sin(out, out, ctx);
        return true;
    case F_COS:
        ca_cos(out, out, ctx);
        return true;
    case F_TAN:
        ca_tan(out, out, ctx);
        return true;
    case F_COT:
        ca_cot(out, out, ctx);
        return true;
    case F_ASIN:
        ca_asin(out, out, ctx);
        return true;
    case F_ACOS:
        ca_acos(out, out, ctx);
        return true;
    case F_ATAN:
        ca_atan(out, out, ctx);
        return true;
    case F_EXP:
        ca_exp(out, out, ctx);
        return true;
    case F_LN:
        ca_log(out, out, ctx);
        return true;
    case F_ABS:
        ca_abs(out, out, ctx);
        return true;
    case F_LOG:
        ca_init(y, ctx);
        bool ok = elementary_value(m, kid(m, x, 1), y, ctx);
        if (ok) ca_log(out, out, ctx), ca_log(y, y, ctx), ca_div(out, out, y, ctx);
        ca_clear(y, ctx);
        return ok;
    default:
        return false;
    }
}

static bool elementary_value(struct math *m, int x, ca_t out, ca_ctx_t ctx)
{
    const struct node *a = at(m, x);
    const fmpq *q;
    if (!spend(m, 20)) return false;
    if (!rational_value(m, x, &q)) return ca_set_fmpq(out, q, ctx), true;
    switch (a->op) {
    case OP_CONST:
        if (a->aux == C_PI)
            ca_pi(out, ctx);
        else if (a->aux == C_I)
            ca_i(out, ctx);
        else if (a->aux == C_E)
            ca_one(out, ctx), ca_exp(out, out, ctx);
        else
            return false;
        return true;
    case OP_DEG:
        return elementary_value(m, kid(m, x, 0), out, ctx);
    case OP_ADD:
    case OP_MUL:
    case OP_POW: {
        ca_t y;
        ca_init(y, ctx);
        bool ok = elementary_value(m, kid(m, x, 0), out, ctx);
        for (int i = 1; i < a->n && ok; i++) {
            ok = elementary_value(m, kid(m, x, i), y, ctx);
            if (!ok) break;
            if (a->op == OP_ADD)
                ca_add(out, out, y, ctx);
            else if (a->op == OP_MUL)
                ca_mul(out, out, y, ctx);
            else
                ca_pow(out, out, y, ctx);
        }
        ca_clear(y, ctx);
        return ok;
    }
    case OP_FUNC:
        return elementary_function(m, x, out, ctx);
    default:
        return false;
    }
}

static enum truth elementary_test(struct math *m, int a, int b)
{
    ca_ctx_t ctx;
    ca_t x, y;
    ca_ctx_init(ctx);
    ctx->options[CA_OPT_PREC_LIMIT] = 512;
    ctx->options[CA_OPT_QQBAR_DEG_LIMIT] = 24;
    ctx->options[CA_OPT_LLL_PREC] = 64;
    ctx->options[CA_OPT_POW_LIMIT] = 10;
    ctx->options[CA_OPT_SMOOTH_LIMIT] = 16;
    ctx->options[CA_OPT_GROEBNER_LENGTH_LIMIT] = 20;
    ctx->options[CA_OPT_GROEBNER_POLY_LENGTH_LIMIT] = 50;
    ca_init(x, ctx), ca_init(y, ctx);
    enum truth got = UNKNOWN;
    if (elementary_value(m, a, x, ctx) && elementary_value(m, b, y, ctx)) {
        const truth_t t = ca_check_equal(x, y, ctx);
        got = t == T_TRUE ? YES : t == T_FALSE ? NO : UNKNOWN;
    }
    ca_clear(x, ctx), ca_clear(y, ctx);
    ca_ctx_clear(ctx);
    return got;
}

enum truth algebraic_equal(struct math *m, int a, int b)
{
    struct size s = {.degree = 1};
    if (!measure_size(m, a, &s)) return UNKNOWN;
    const int64_t degree = s.degree;
    s.degree = 1;
    if (!measure_size(m, b, &s)) return UNKNOWN;
    enum truth got = UNKNOWN;
    if (degree <= MAX_DEGREE && s.degree <= MAX_DEGREE) {
        got = algebraic_test(m, a, b);
        if (got != UNKNOWN) m->reason = got == YES ? "equal algebraic numbers (proved)" : "different algebraic numbers (proved)";
    }
    if (got == UNKNOWN && s.functions + s.pis > 0 && s.radicals <= 3 && s.functions <= 4) {
        got = elementary_test(m, a, b);
        if (got != UNKNOWN) m->reason = got == YES ? "equal elementary numbers (proved)" : "different elementary numbers (proved)";
    }
    return got;
}
