/* Complex balls (Arb): a ball contains the value, so two disjoint balls prove inequality. The
 * precision is increased in steps. */
#include "flint.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TERMS = 2000, MAX_HIGH_NODES = 200 };

static bool real_ball(acb_srcptr x)
{
    return arb_is_zero(acb_imagref(x));
}

/* Functions that Arb provides; the others are f(1/x) and 1/f(x). */
static const struct {
    void (*f)(acb_t, const acb_t, slong);
    bool of_inverse, inverted;
} ELEMENTARY[F_LOG] = {
    [F_SIN] = {.f = acb_sin},
    [F_COS] = {.f = acb_cos},
    [F_TAN] = {.f = acb_tan},
    [F_COT] = {.f = acb_cot},
    [F_ASIN] = {.f = acb_asin},
    [F_ACOS] = {.f = acb_acos},
    [F_ATAN] = {.f = acb_atan},
    [F_ACOT] = {.f = acb_atan, .of_inverse = true},
    [F_ASEC] = {.f = acb_acos, .of_inverse = true},
    [F_ACSC] = {.f = acb_asin, .of_inverse = true},
    [F_SINH] = {.f = acb_sinh},
    [F_COSH] = {.f = acb_cosh},
    [F_TANH] = {.f = acb_tanh},
    [F_COTH] = {.f = acb_coth},
    [F_SECH] = {.f = acb_cosh, .inverted = true},
    [F_CSCH] = {.f = acb_sinh, .inverted = true},
    [F_ASINH] = {.f = acb_asinh},
    [F_ACOSH] = {.f = acb_acosh},
    [F_ATANH] = {.f = acb_atanh},
    [F_EXP] = {.f = acb_exp},
    [F_LN] = {.f = acb_log},
};

static void ball_elementary(acb_ptr out, acb_srcptr x, int f, slong prec)
{
    if (f >= F_LOG || !ELEMENTARY[f].f) {
        acb_indeterminate(out);
        return;
    }
    if (ELEMENTARY[f].of_inverse) acb_inv(out, x, prec);
    ELEMENTARY[f].f(out, ELEMENTARY[f].of_inverse ? out : x, prec);
    if (ELEMENTARY[f].inverted) acb_inv(out, out, prec);
}

static bool ball_function(struct math *m, int x, slong prec, acb_ptr out)
{
    const struct node *a = at(m, x);
    const int f = a->aux;
    acb_srcptr p, q;
    if (!spend(m, f < F_ABS ? 10 : 1)) return false;
    if (f == F_GCD || f == F_LCM) return false;
    if (!ball_value(m, kid(m, x, 0), prec, &p)) return false;
    if (f == F_MAX || f == F_MIN) {
        acb_set(out, p);
        for (int i = 1; i < a->n; i++) {
            if (!ball_value(m, kid(m, x, i), prec, &q) || !real_ball(q) || !real_ball(out)) return false;
            (f == F_MAX ? arb_max : arb_min)(acb_realref(out), acb_realref(out), acb_realref(q), prec);
        }
        return true;
    }
    switch (f) {
    case F_LOG:
        if (!ball_value(m, kid(m, x, 1), prec, &q)) return false;
        acb_t base;
        acb_init(base);
        acb_log(base, q, prec);
        acb_log(out, p, prec);
        acb_div(out, out, base, prec);
        acb_clear(base);
        return true;
    case F_ABS:
        acb_abs(acb_realref(out), p, prec);
        arb_zero(acb_imagref(out));
        return true;
    case F_FLOOR:
    case F_CEIL:
        if (!real_ball(p)) return false;
        (f == F_FLOOR ? arb_floor : arb_ceil)(acb_realref(out), acb_realref(p), prec);
        arb_zero(acb_imagref(out));
        return true;
    case F_RE:
        acb_set_arb(out, acb_realref(p));
        return true;
    case F_IM:
        acb_set_arb(out, acb_imagref(p));
        return true;
    case F_CONJ:
        acb_conj(out, p);
        return true;
    case F_ARG:
        acb_arg(acb_realref(out), p, prec), arb_zero(acb_imagref(out));
        return true;
    case F_SIGN:
        acb_sgn(out, p, prec);
        return true;
    default:
        ball_elementary(out, p, f, prec);
        return true;
    }
}

static bool ball_power(struct math *m, int x, slong prec, acb_ptr out)
{
    acb_srcptr b, e;
    int64_t n;
    const int exponent = kid(m, x, 1);
    if (!ball_value(m, kid(m, x, 0), prec, &b)) return false;
    if (small_int(m, exponent, &n)) {
        if (n == -1)
            acb_inv(out, b, prec);
        else
            acb_pow_si(out, b, (slong)n, prec);
        return spend(m, 2);
    }
    const struct node *half = at(m, exponent);
    if (half->op == OP_POW && num_is(m, kid(m, exponent, 0), 2) && num_is(m, kid(m, exponent, 1), -1))
        return acb_sqrt(out, b, prec), spend(m, 2);
    const bool e_base = at(m, kid(m, x, 0))->op == OP_CONST && at(m, kid(m, x, 0))->aux == C_E;
    if (!spend(m, 15) || !ball_value(m, exponent, prec, &e)) return false;
    if (e_base)
        acb_exp(out, e, prec);
    else
        acb_pow(out, b, e, prec);
    return true;
}

static bool ball_big(struct math *m, int x, slong prec, acb_ptr out)
{
    struct values *v = m->values;
    const fmpq *from, *to;
    if (rational_value(m, kid(m, x, 1), &from) || rational_value(m, kid(m, x, 2), &to)) return false;
    const struct node *index = at(m, kid(m, x, 0));
    if (index->op != OP_SYM || !fmpz_is_one(fmpq_denref(from)) || !fmpz_is_one(fmpq_denref(to)) ||
        fmpz_bits(fmpq_numref(from)) > 40 || fmpz_bits(fmpq_numref(to)) > 40)
        return false;
    const int64_t a = fmpz_get_si(fmpq_numref(from)), b = fmpz_get_si(fmpq_numref(to));
    if (b - a >= MAX_TERMS || v->bound[index->aux]) return false;
    acb_t sum;
    acb_init(sum);
    acb_set_si(sum, at(m, x)->op == OP_PROD);
    bool ok = true;
    for (int64_t k = a; k <= b && ok; k++) {
        acb_srcptr term;
        v->bound[index->aux] = true;
        v->bound_value[index->aux] = k;
        acb_set_si(v->symbol + index->aux, (slong)k);
        balls_forget(m);
        ok = ball_value(m, kid(m, x, 3), prec, &term);
        if (ok && at(m, x)->op == OP_PROD)
            acb_mul(sum, sum, term, prec);
        else if (ok)
            acb_add(sum, sum, term, prec);
    }
    v->bound[index->aux] = false;
    balls_forget(m);
    acb_swap(out, sum);
    acb_clear(sum);
    return ok;
}

static bool ball_factorial(struct math *m, int x, slong prec, acb_ptr out)
{
    const struct node *a = at(m, x);
    acb_srcptr p, q;
    if (!spend(m, 30) || !ball_value(m, kid(m, x, 0), prec, &p) || !real_ball(p)) return false;
    if (a->op == OP_FACT) {
        if (arf_cmpabs_2exp_si(arb_midref(acb_realref(p)), 40) > 0) return false;
        acb_add_ui(out, p, 1, prec);
        if (arb_contains_nonpositive(acb_realref(out))) return false;
        acb_gamma(out, out, prec);
        return true;
    }
    if (a->op != OP_BINOM) return false;
    if (!ball_value(m, kid(m, x, 1), prec, &q) || !real_ball(q)) return false;
    acb_t u, w; /* n! / (k! (n-k)!) */
    acb_init(u), acb_init(w);
    bool ok = false;
    acb_sub(u, p, q, prec), acb_add_ui(u, u, 1, prec);
    acb_add_ui(w, q, 1, prec);
    acb_add_ui(out, p, 1, prec);
    if (arb_is_positive(acb_realref(u)) && arb_is_positive(acb_realref(w)) && arb_is_positive(acb_realref(out)) &&
        arf_cmpabs_2exp_si(arb_midref(acb_realref(out)), 40) < 0) {
        acb_gamma(u, u, prec), acb_gamma(w, w, prec), acb_gamma(out, out, prec);
        acb_mul(u, u, w, prec), acb_div(out, out, u, prec);
        ok = true;
    }
    acb_clear(u), acb_clear(w);
    return ok;
}

/* Computes x - y floor(x / y). */
static bool ball_modulo(struct math *m, int x, slong prec, acb_ptr out)
{
    const fmpq *q;
    acb_srcptr a, b;
    if (!rational_value(m, x, &q)) return arb_set_fmpq(acb_realref(out), q, prec), arb_zero(acb_imagref(out)), true;
    if (!ball_value(m, kid(m, x, 0), prec, &a) || !ball_value(m, kid(m, x, 1), prec, &b) || !real_ball(a) || !real_ball(b))
        return false;
    acb_div(out, a, b, prec);
    arb_floor(acb_realref(out), acb_realref(out), prec);
    arb_mul(acb_realref(out), acb_realref(out), acb_realref(b), prec);
    arb_sub(acb_realref(out), acb_realref(a), acb_realref(out), prec);
    return true;
}

static bool ball_number(struct math *m, int x, slong prec, acb_ptr out)
{
    const struct node *a = at(m, x);
    const fmpq *q;
    arb_zero(acb_imagref(out));
    if (!rational_value(m, x, &q)) return arb_set_fmpq(acb_realref(out), q, prec), true;
    char small[64]; /* a power of ten that is not expanded */
    if (a->n_digits > 40) return false;
    memcpy(small, m->pool + a->digits, (size_t)a->n_digits);
    small[a->n_digits] = 0;
    fmpz_t f, e;
    fmpz_init(f), fmpz_init(e);
    fmpz_set_str(f, small, 10);
    fmpz_set_si(e, a->exp);
    arb_set_ui(acb_realref(out), 10);
    arb_pow_fmpz(acb_realref(out), acb_realref(out), e, prec);
    arb_mul_fmpz(acb_realref(out), acb_realref(out), f, prec);
    if (a->aux) arb_neg(acb_realref(out), acb_realref(out));
    fmpz_clear(f), fmpz_clear(e);
    return true;
}

static bool sum_or_product(struct math *m, int x, slong prec, acb_ptr out)
{
    const struct node *a = at(m, x);
    acb_srcptr p;
    acb_t sum;
    acb_init(sum);
    acb_set_si(sum, a->op == OP_MUL);
    bool ok = true;
    for (int i = 0; i < a->n && ok; i++) {
        ok = ball_value(m, kid(m, x, i), prec, &p);
        if (ok && a->op == OP_MUL)
            acb_mul(sum, sum, p, prec);
        else if (ok)
            acb_add(sum, sum, p, prec);
    }
    acb_swap(out, sum);
    acb_clear(sum);
    return ok;
}

static bool ball_node(struct math *m, int x, slong prec, acb_ptr out)
{
    const struct node *a = at(m, x);
    acb_srcptr p;
    switch (a->op) {
    case OP_NUM:
        return ball_number(m, x, prec, out);
    case OP_SYM:
        acb_set(out, m->values->symbol + a->aux);
        return true;
    case OP_CONST:
        if (a->aux == C_PI)
            acb_const_pi(out, prec);
        else if (a->aux == C_E)
            arb_const_e(acb_realref(out), prec), arb_zero(acb_imagref(out));
        else if (a->aux == C_I)
            acb_onei(out);
        else
            return false;
        return true;
    case OP_ADD:
    case OP_MUL:
        return sum_or_product(m, x, prec, out);
    case OP_POW:
        return ball_power(m, x, prec, out);
    case OP_ROOT: {
        int64_t n;
        if (!ball_value(m, kid(m, x, 0), prec, &p) || !small_int(m, kid(m, x, 1), &n) || !spend(m, 5)) return false;
        const bool negative = real_ball(p) && arb_is_negative(acb_realref(p));
        if (negative)
            acb_neg(out, p), acb_root_ui(out, out, (ulong)n, prec), acb_neg(out, out);
        else
            acb_root_ui(out, p, (ulong)n, prec);
        return true;
    }
    case OP_FUNC:
        return ball_function(m, x, prec, out);
    case OP_MOD:
        return ball_modulo(m, x, prec, out);
    case OP_FACT:
    case OP_BINOM: {
        const fmpq *q; /* integers exactly: under a binding, or closed */
        if (!rational_value(m, x, &q)) return arb_set_fmpq(acb_realref(out), q, prec), arb_zero(acb_imagref(out)), true;
        return ball_factorial(m, x, prec, out);
    }
    case OP_SUM:
    case OP_PROD:
        return ball_big(m, x, prec, out);
    case OP_DEG:
    case OP_UNIT:
    case OP_BASE:
        if (!ball_value(m, kid(m, x, 0), prec, &p)) return false;
        acb_set(out, p);
        return true;
    default:
        return false;
    }
}

bool ball_value(struct math *m, int x, slong prec, acb_srcptr *out)
{
    struct values *v = m->values;
    *out = v->ball + x;
    if (v->stamp[x] == v->epoch) return true;
    if (!spend(m, 1 + prec / 256)) return false;
    if (prec > 512) v->large = true;
    acb_t r;
    acb_init(r);
    const bool ok = ball_node(m, x, prec, r) && acb_is_finite(r);
    if (ok) {
        acb_swap(v->ball + x, r);
        v->stamp[x] = v->epoch;
    }
    acb_clear(r);
    return ok;
}

void balls_forget(struct math *m)
{
    m->values->epoch++;
}

bool ball_floor(struct math *m, int x, bool ceiling, fmpz_t out)
{
    static const slong precs[] = {64, 256, 1024};
    for (int k = 0; k < 3; k++) {
        acb_srcptr p;
        balls_forget(m);
        if (!ball_value(m, x, precs[k], &p) || !real_ball(p)) return false;
        arb_t r;
        arb_init(r);
        (ceiling ? arb_ceil : arb_floor)(r, acb_realref(p), precs[k]);
        const bool ok = arf_cmpabs_2exp_si(arb_midref(r), 60) < 0 && arb_get_unique_fmpz(out, r);
        arb_clear(r);
        balls_forget(m);
        if (ok) return true;
    }
    return false;
}

/* ---------------------------------------------------------------- closed values */

enum truth numeric_refutes(struct math *m, int a, int b, bool *undefined)
{
    static const slong precs[] = {64, 128, 256};
    *undefined = false;
    for (int k = 0; k < 3; k++) {
        acb_srcptr x, y;
        balls_forget(m);
        const bool ok = ball_value(m, a, precs[k], &x) && ball_value(m, b, precs[k], &y);
        *undefined = !ok;
        m->precision = precs[k];
        if (ok && !acb_overlaps(x, y)) return NO;
    }
    return UNKNOWN;
}

bool numeric_is_undefined(struct math *m, int a)
{
    acb_srcptr x;
    balls_forget(m);
    if (ball_value(m, a, 128, &x)) return false;
    balls_forget(m);
    return !ball_value(m, a, 512, &x);
}

/* Returns whether all intermediate values are of ordinary size, so that 3,333 bits would reveal a
 * difference. */
static bool is_ordinary(struct math *m, int x)
{
    const struct node *a = at(m, x);
    const struct values *v = m->values;
    if (a->op == OP_NUM && !a->n_digits) return true;
    if (v->stamp[x] == v->epoch) {
        mag_t high, low;
        mag_init(high), mag_init(low);
        acb_get_mag(high, v->ball + x);
        acb_get_mag_lower(low, v->ball + x);
        const bool ok = mag_cmp_2exp_si(high, 600) < 0 && (mag_is_zero(low) || mag_cmp_2exp_si(low, -600) > 0);
        mag_clear(high), mag_clear(low);
        if (!ok) return false;
    }
    for (int i = 0; i < a->n; i++)
        if (!is_ordinary(m, kid(m, x, i))) return false;
    return true;
}

enum truth numeric_equal(struct math *m, int a, int b)
{
    if (m->n_nodes > MAX_HIGH_NODES || (at(m, a)->flags | at(m, b)->flags) & NODE_DISCRETE) return UNKNOWN;
    static const slong precs[] = {1024, HIGH};
    for (int k = 0; k < 2; k++) {
        acb_srcptr x, y;
        balls_forget(m);
        if (!ball_value(m, a, precs[k], &x) || !ball_value(m, b, precs[k], &y)) return UNKNOWN;
        m->precision = precs[k];
        if (!acb_overlaps(x, y)) return NO;
        if (k && (acb_rel_accuracy_bits(x) < HIGH / 2 || acb_rel_accuracy_bits(y) < HIGH / 2)) {
            if (!arb_contains_zero(acb_realref(x)) || !acb_contains_zero(x)) return UNKNOWN;
        }
    }
    return is_ordinary(m, a) && is_ordinary(m, b) ? YES : UNKNOWN;
}

enum truth numeric_less(struct math *m, int a, int b)
{
    static const slong precs[] = {64, 256, 1024};
    for (int k = 0; k < 3; k++) {
        acb_srcptr x, y;
        balls_forget(m);
        if (!ball_value(m, a, precs[k], &x) || !ball_value(m, b, precs[k], &y) || !real_ball(x) || !real_ball(y)) return UNKNOWN;
        if (arb_lt(acb_realref(x), acb_realref(y))) return YES;
        if (arb_ge(acb_realref(x), acb_realref(y))) return NO;
    }
    return UNKNOWN;
}

bool numeric_close(struct math *m, int a, int b)
{
    acb_srcptr x, y;
    balls_forget(m);
    if (!ball_value(m, a, 64, &x) || !ball_value(m, b, 64, &y) || !real_ball(x) || !real_ball(y)) return false;
    arb_t difference, bound;
    arb_init(difference), arb_init(bound);
    arb_sub(difference, acb_realref(x), acb_realref(y), 64);
    arb_abs(difference, difference);
    arb_abs(bound, acb_realref(x));
    arb_div_ui(bound, bound, 100, 64);
    const bool close = arb_le(difference, bound);
    arb_clear(difference), arb_clear(bound);
    return close;
}

enum truth numeric_rounded(struct math *m, int a, int b, int64_t decimals)
{
    acb_srcptr x;
    fmpz_t r[2];
    fmpz_init(r[0]), fmpz_init(r[1]);
    bool ok = true;
    for (int k = 0; k < 2 && ok; k++) {
        balls_forget(m);
        ok = ball_value(m, k ? b : a, 256, &x) && real_ball(x) && arf_cmpabs_2exp_si(arb_midref(acb_realref(x)), 128) < 0;
        if (!ok) break;
        arb_t y, ten;
        arb_init(y), arb_init(ten);
        arb_ui_pow_ui(ten, 10, (ulong)decimals, 256);
        arb_mul(y, acb_realref(x), ten, 256);
        arf_t half;
        arf_init(half);
        arf_set_d(half, 0.5);
        arb_add_arf(y, y, half, 256);
        arf_floor(arb_midref(y), arb_midref(y));
        arf_get_fmpz(r[k], arb_midref(y), ARF_RND_FLOOR);
        arf_clear(half);
        arb_clear(y), arb_clear(ten);
    }
    const bool equal = ok && fmpz_equal(r[0], r[1]);
    fmpz_clear(r[0]), fmpz_clear(r[1]);
    return !ok ? UNKNOWN : equal ? YES : NO;
}
