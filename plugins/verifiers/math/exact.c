/* Rational values. Powers, factorials and binomials are refused before they are computed if their
 * size would exceed MAX_BITS. */
#include "flint.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FACTORIAL = 5000, MAX_TERMS = 2000 };

bool values_alloc(struct math *m)
{
    struct values *v = m->values = calloc(1, sizeof *v);
    if (!v) return false;
    v->rational = calloc(MAX_NODES, sizeof *v->rational);
    v->state = calloc(MAX_NODES, 1);
    v->ball = calloc(MAX_NODES, sizeof *v->ball); /* zero bytes are the ball 0 */
    v->stamp = calloc(MAX_NODES, sizeof *v->stamp);
    v->residue = calloc(MAX_NODES, sizeof *v->residue);
    v->residue_stamp = calloc(MAX_NODES, sizeof *v->residue_stamp);
    v->symbol = _acb_vec_init(MAX_SYMBOLS);
    return v->rational && v->state && v->ball && v->stamp && v->residue && v->residue_stamp && v->symbol;
}

void values_reset(struct math *m)
{
    struct values *v = m->values;
    for (int i = 0; i < m->n_nodes; i++) {
        if (v->state[i]) fmpq_clear(&v->rational[i]), memset(&v->rational[i], 0, sizeof v->rational[i]);
        if (v->large) acb_clear(v->ball + i), memset(v->ball + i, 0, sizeof *v->ball);
    }
    memset(v->state, 0, (size_t)m->n_nodes);
    memset(v->stamp, 0, (size_t)m->n_nodes * sizeof *v->stamp);
    memset(v->residue_stamp, 0, (size_t)m->n_nodes * sizeof *v->residue_stamp);
    memset(v->bound, 0, sizeof v->bound);
    v->epoch = 1;
    v->large = false;
}

void values_release(struct math *m)
{
    struct values *v = m->values;
    if (!v) return;
    if (v->ball)
        for (int i = 0; i < MAX_NODES; i++) acb_clear(v->ball + i);
    if (v->symbol) _acb_vec_clear(v->symbol, MAX_SYMBOLS);
    for (int i = 0; i < m->n_nodes; i++)
        if (v->state && v->state[i]) fmpq_clear(&v->rational[i]);
    free(v->rational), free(v->state), free(v->ball), free(v->stamp), free(v->residue), free(v->residue_stamp), free(v);
    m->values = NULL;
    flint_cleanup();
}

bool spend(struct math *m, int64_t steps)
{
    m->steps -= steps;
    return m->steps >= 0;
}

static slong bits_of(const fmpq *q)
{
    const slong a = (slong)fmpz_bits(fmpq_numref(q)), b = (slong)fmpz_bits(fmpq_denref(q));
    return a > b ? a : b;
}

/* Charges the cost of an operation on numbers of these bits. */
static bool afford(struct math *m, slong bits)
{
    return bits <= MAX_BITS && spend(m, bits < 4096 ? 1 : bits < 65536 ? 1 + bits / 2048 : bits / 128);
}

static enum value digits_value(struct math *m, const struct node *a, fmpq *out)
{
    const int64_t size = a->n_digits + (a->exp < 0 ? -a->exp : a->exp);
    if (size > MAX_BITS / 4) return V_TOO_BIG;
    if (!afford(m, (slong)(size * 4))) return V_TOO_BIG;
    if (a->n_digits <= 18) {
        ulong v = 0;
        for (int i = 0; i < a->n_digits; i++) v = v * 10 + (ulong)(m->pool[a->digits + i] - '0');
        fmpz_set_ui(fmpq_numref(out), v);
    } else {
        char *s = malloc((size_t)a->n_digits + 1);
        if (!s) return V_TOO_BIG;
        memcpy(s, m->pool + a->digits, (size_t)a->n_digits);
        s[a->n_digits] = 0;
        fmpz_set_str(fmpq_numref(out), s, 10);
        free(s);
    }
    if (a->aux) fmpz_neg(fmpq_numref(out), fmpq_numref(out));
    if (!a->exp) return V_OK;
    fmpz_t ten;
    fmpz_init(ten);
    fmpz_ui_pow_ui(ten, 10, (ulong)(a->exp < 0 ? -a->exp : a->exp));
    if (a->exp > 0)
        fmpz_mul(fmpq_numref(out), fmpq_numref(out), ten);
    else
        fmpz_set(fmpq_denref(out), ten), fmpq_canonicalise(out);
    fmpz_clear(ten);
    return V_OK;
}

/* Computes the q-th root of b >= 0 if it is rational. */
static bool perfect_root(fmpq *out, const fmpq *b, slong q)
{
    fmpz_t power;
    fmpz_init(power);
    bool ok = true;
    for (int k = 0; k < 2 && ok; k++) {
        const fmpz *from = k ? fmpq_denref(b) : fmpq_numref(b);
        fmpz *to = k ? fmpq_denref(out) : fmpq_numref(out);
        ok = fmpz_bits(from) < 65536;
        if (!ok) break;
        fmpz_root(to, from, q);
        fmpz_pow_ui(power, to, (ulong)q);
        ok = fmpz_equal(power, from);
    }
    fmpz_clear(power);
    return ok;
}

static enum value integer_power(struct math *m, const fmpq *b, const fmpz *e, fmpq *out)
{
    if (fmpq_is_zero(b)) {
        fmpq_zero(out);
        return fmpz_sgn(e) > 0 ? V_OK : V_UNDEFINED;
    }
    if (fmpz_is_zero(e)) return fmpq_one(out), V_OK;
    const bool unit = fmpz_is_pm1(fmpq_numref(b)) && fmpz_is_one(fmpq_denref(b));
    if (unit) return fmpq_set_si(out, fmpz_is_odd(e) ? fmpz_get_si(fmpq_numref(b)) : 1, 1), V_OK;
    if (fmpz_cmpabs(e, (fmpz[]){MAX_BITS}) > 0) return V_TOO_BIG;
    const slong n = fmpz_get_si(e);
    if (!afford(m, bits_of(b) * (n < 0 ? -n : n))) return V_TOO_BIG;
    fmpq_pow_si(out, b, n);
    return V_OK;
}

static enum value evaluate_power(struct math *m, const fmpq *b, const fmpq *e, bool real_root, fmpq *out)
{
    if (fmpz_is_one(fmpq_denref(e))) return integer_power(m, b, fmpq_numref(e), out);
    if (fmpz_cmp_ui(fmpq_denref(e), 1000) > 0) return V_NOT_RATIONAL;
    if (fmpq_is_zero(b)) return fmpq_zero(out), fmpq_sgn(e) > 0 ? V_OK : V_UNDEFINED;
    const slong q = fmpz_get_si(fmpq_denref(e));
    const bool negative = fmpq_sgn(b) < 0;
    if (negative && !(real_root && q % 2)) return V_NOT_RATIONAL;
    fmpq_t root, base;
    fmpq_init(root), fmpq_init(base);
    fmpq_abs(base, b);
    enum value got = V_NOT_RATIONAL;
    if (perfect_root(root, base, q)) {
        if (negative) fmpq_neg(root, root);
        got = integer_power(m, root, fmpq_numref(e), out);
    }
    fmpq_clear(root), fmpq_clear(base);
    return got;
}

/* Computes log_b a if it is an integer. */
static enum value logarithm(struct math *m, const fmpq *a, const fmpq *b, fmpq *out)
{
    if (fmpq_sgn(a) <= 0 || fmpq_sgn(b) <= 0 || fmpq_is_one(b))
        return fmpq_sgn(a) && fmpq_sgn(b) && !fmpq_is_one(b) ? V_NOT_RATIONAL : V_UNDEFINED;
    if (fmpq_is_one(a)) return fmpq_zero(out), V_OK;
    const slong bits = bits_of(a);
    if (bits > 4096 || bits_of(b) > 4096) return V_NOT_RATIONAL;
    fmpq_t p;
    fmpq_init(p);
    enum value got = V_NOT_RATIONAL;
    fmpq_one(p);
    for (slong k = 1; k <= bits && got && afford(m, bits) && bits_of(p) <= 2 * bits; k++) {
        fmpq_mul(p, p, b);
        if (fmpq_equal(p, a))
            fmpq_set_si(out, k, 1), got = V_OK;
        else if (fmpz_equal(fmpq_numref(p), fmpq_denref(a)) && fmpz_equal(fmpq_denref(p), fmpq_numref(a)))
            fmpq_set_si(out, -k, 1), got = V_OK;
    }
    fmpq_clear(p);
    return got;
}

/* Computes the least positive rational number that is an integer multiple of both. */
static void common_multiple(fmpq *out, const fmpq *a, const fmpq *b)
{
    fmpq_t g;
    fmpq_init(g);
    fmpq_gcd(g, a, b);
    fmpq_mul(out, a, b);
    if (!fmpq_is_zero(g)) fmpq_div(out, out, g);
    fmpq_abs(out, out);
    fmpq_clear(g);
}

/* Computes max, min, gcd or lcm of any number of arguments. */
static enum value of_many(struct math *m, int x, fmpq *out)
{
    const struct node *a = at(m, x);
    const int f = a->aux;
    for (int i = 0; i < a->n; i++) {
        const fmpq *r;
        if (rational_value(m, kid(m, x, i), &r)) return V_NOT_RATIONAL;
        if (!afford(m, bits_of(out) + bits_of(r))) return V_TOO_BIG;
        if (!i)
            fmpq_set(out, r);
        else if (f == F_GCD)
            fmpq_gcd(out, out, r);
        else if (f == F_LCM)
            common_multiple(out, out, r);
        else if ((fmpq_cmp(r, out) > 0) == (f == F_MAX))
            fmpq_set(out, r);
    }
    return V_OK;
}

/* Returns f(0) of a function that is rational at no other rational number; -1: another function. */
static int at_zero(int f)
{
    switch (f) {
    case F_SIN:
    case F_TAN:
    case F_ASIN:
    case F_ATAN:
    case F_SINH:
    case F_TANH:
    case F_ASINH:
    case F_ATANH:
        return 0;
    case F_COS:
    case F_COSH:
        return 1;
    default:
        return -1;
    }
}

static enum value evaluate_function(struct math *m, int x, fmpq *out)
{
    const struct node *a = at(m, x);
    const fmpq *q[2] = {NULL, NULL};
    enum value worst = V_OK;
    for (int i = 0; i < a->n; i++) {
        const fmpq *r;
        const enum value s = rational_value(m, kid(m, x, i), &r);
        if (s == V_UNDEFINED) return s;
        if (s > worst) worst = s;
        if (i < 2) q[i] = r;
    }
    const int f = a->aux;
    if (worst == V_NOT_RATIONAL && (f == F_FLOOR || f == F_CEIL) && !(at(m, kid(m, x, 0))->flags & NODE_VAR))
        return ball_floor(m, kid(m, x, 0), f == F_CEIL, fmpq_numref(out)) ? V_OK : V_NOT_RATIONAL;
    if (worst) return worst;
    const int zero = at_zero(f);
    if (zero >= 0) {
        if (!fmpq_is_zero(q[0])) return V_NOT_RATIONAL;
        fmpq_set_si(out, zero, 1);
        return V_OK;
    }
    switch (f) {
    case F_ABS:
        fmpq_abs(out, q[0]);
        return V_OK;
    case F_FLOOR:
        fmpz_fdiv_q(fmpq_numref(out), fmpq_numref(q[0]), fmpq_denref(q[0]));
        return V_OK;
    case F_CEIL:
        fmpz_cdiv_q(fmpq_numref(out), fmpq_numref(q[0]), fmpq_denref(q[0]));
        return V_OK;
    case F_SIGN:
        fmpq_set_si(out, fmpq_sgn(q[0]), 1);
        return V_OK;
    case F_RE:
    case F_CONJ:
        fmpq_set(out, q[0]);
        return V_OK;
    case F_IM:
        fmpq_zero(out);
        return V_OK;
    case F_LN:
        if (!fmpq_is_one(q[0])) return fmpq_is_zero(q[0]) ? V_UNDEFINED : V_NOT_RATIONAL;
        fmpq_zero(out);
        return V_OK;
    case F_LOG:
        return logarithm(m, q[0], q[1], out);
    case F_MAX:
    case F_MIN:
    case F_GCD:
    case F_LCM:
        return of_many(m, x, out);
    default:
        return V_NOT_RATIONAL;
    }
}

/* Computes p - q floor(p / q). */
static enum value remainder_of(const fmpq *p, const fmpq *q, fmpq *out)
{
    if (fmpq_is_zero(q)) return V_UNDEFINED;
    fmpq_div(out, p, q);
    fmpz_fdiv_q(fmpq_numref(out), fmpq_numref(out), fmpq_denref(out));
    fmpz_one(fmpq_denref(out));
    fmpq_mul(out, out, q);
    fmpq_sub(out, p, out);
    return V_OK;
}

static enum value evaluate_discrete(struct math *m, int x, fmpq *out)
{
    const struct node *a = at(m, x);
    const fmpq *p, *q = NULL;
    enum value s = rational_value(m, kid(m, x, 0), &p);
    if (!s && a->n > 1) s = rational_value(m, kid(m, x, 1), &q);
    if (s) return s;
    if (a->op == OP_MOD) return remainder_of(p, q, out);
    if (!fmpz_is_one(fmpq_denref(p)) || (q && !fmpz_is_one(fmpq_denref(q)))) return V_NOT_RATIONAL;
    const fmpz *n = fmpq_numref(p), *k = q ? fmpq_numref(q) : NULL;
    if (fmpz_sgn(n) < 0) return V_UNDEFINED;
    if (a->op == OP_FACT) {
        if (fmpz_cmp_ui(n, MAX_FACTORIAL) > 0 || !spend(m, 1 + fmpz_get_si(n) / 8)) return V_TOO_BIG;
        fmpz_fac_ui(fmpq_numref(out), fmpz_get_ui(n));
        return V_OK;
    }
    if (fmpz_sgn(k) < 0) return V_UNDEFINED;
    if (fmpz_cmp(k, n) > 0) return V_OK;
    if (fmpz_cmp_ui(n, MAX_FACTORIAL) > 0 || !spend(m, 1 + fmpz_get_si(n) / 8)) return V_TOO_BIG;
    fmpz_bin_uiui(fmpq_numref(out), fmpz_get_ui(n), fmpz_get_ui(k));
    return V_OK;
}

/* Evaluates a sum or product of few terms, with the index bound to each integer in turn. */
static enum value evaluate_big(struct math *m, int x, fmpq *out)
{
    struct values *v = m->values;
    const fmpq *from, *to, *term;
    enum value s = rational_value(m, kid(m, x, 1), &from);
    if (!s) s = rational_value(m, kid(m, x, 2), &to);
    if (s) return s;
    const struct node *index = at(m, kid(m, x, 0));
    if (index->op != OP_SYM || !fmpz_is_one(fmpq_denref(from)) || !fmpz_is_one(fmpq_denref(to)) ||
        fmpz_bits(fmpq_numref(from)) > 40 || fmpz_bits(fmpq_numref(to)) > 62)
        return V_NOT_RATIONAL;
    const int64_t a = fmpz_get_si(fmpq_numref(from)), b = fmpz_get_si(fmpq_numref(to));
    const bool product = at(m, x)->op == OP_PROD;
    if (b - a >= MAX_TERMS) return V_TOO_BIG;
    const int symbol = index->aux;
    if (v->bound[symbol]) return V_NOT_RATIONAL;
    if (product) fmpq_one(out);
    v->bound[symbol] = true;
    for (int64_t k = a; k <= b && !s; k++) {
        v->bound_value[symbol] = k;
        s = rational_value(m, kid(m, x, 3), &term);
        if (!s && !afford(m, bits_of(out) + bits_of(term))) s = V_TOO_BIG;
        if (s) break;
        if (product)
            fmpq_mul(out, out, term);
        else
            fmpq_add(out, out, term);
    }
    v->bound[symbol] = false;
    return s;
}

static enum value sum_or_product(struct math *m, int x, fmpq *out)
{
    const struct node *a = at(m, x);
    const fmpq *q;
    enum value worst = V_OK;
    if (a->op == OP_MUL) fmpq_one(out);
    for (int i = 0; i < a->n; i++) {
        const enum value s = rational_value(m, kid(m, x, i), &q);
        if (s == V_UNDEFINED) return s;
        if (s > worst) worst = s;
        if (worst) continue; /* a later term may be undefined */
        if (!afford(m, bits_of(out) + bits_of(q))) return V_TOO_BIG;
        if (a->op == OP_ADD)
            fmpq_add(out, out, q);
        else
            fmpq_mul(out, out, q);
    }
    return worst;
}

static enum value power_or_root(struct math *m, int x, fmpq *out)
{
    const fmpq *q, *r;
    const enum value s = rational_value(m, kid(m, x, 0), &q), t = rational_value(m, kid(m, x, 1), &r);
    if (s == V_UNDEFINED || t == V_UNDEFINED) return V_UNDEFINED;
    if (s || t) return s > t ? s : t;
    if (at(m, x)->op == OP_POW) return evaluate_power(m, q, r, false, out);
    fmpq_t e;
    fmpq_init(e);
    fmpq_inv(e, r);
    const enum value root = evaluate_power(m, q, e, true, out);
    fmpq_clear(e);
    return root;
}

static enum value evaluate_node(struct math *m, int x, fmpq *out)
{
    const struct node *a = at(m, x);
    const fmpq *q;
    enum value s;
    switch (a->op) {
    case OP_NUM:
        return digits_value(m, a, out);
    case OP_SYM:
        if (!m->values->bound[a->aux]) return V_NOT_RATIONAL;
        fmpq_set_si(out, m->values->bound_value[a->aux], 1);
        return V_OK;
    case OP_CONST:
        return a->aux == C_UNDEFINED ? V_UNDEFINED : V_NOT_RATIONAL;
    case OP_ADD:
    case OP_MUL:
        return sum_or_product(m, x, out);
    case OP_POW:
    case OP_ROOT:
        return power_or_root(m, x, out);
    case OP_FUNC:
        return evaluate_function(m, x, out);
    case OP_FACT:
    case OP_BINOM:
    case OP_MOD:
        return evaluate_discrete(m, x, out);
    case OP_SUM:
    case OP_PROD:
        return evaluate_big(m, x, out);
    case OP_DEG:
    case OP_BASE:
    case OP_UNIT:
        s = rational_value(m, kid(m, x, 0), &q);
        if (!s) fmpq_set(out, q);
        return s;
    default:
        return V_NOT_RATIONAL;
    }
}

enum value rational_value(struct math *m, int x, const fmpq **out)
{
    struct values *v = m->values;
    const bool keep = !(at(m, x)->flags & (NODE_VAR | NODE_BOUND));
    *out = &v->rational[x];
    if (v->state[x] && keep) return (enum value)(v->state[x] - 1);
    if (!spend(m, 1)) return V_TOO_BIG;
    if (!v->state[x]) fmpq_init(&v->rational[x]), v->state[x] = 1 + V_NOT_RATIONAL;
    fmpq_t q;
    fmpq_init(q);
    const enum value s = evaluate_node(m, x, q);
    fmpq_swap(&v->rational[x], q);
    fmpq_clear(q);
    v->state[x] = (uint8_t)(1 + s);
    return s;
}

enum truth exact_equal(struct math *m, int a, int b)
{
    const fmpq *x, *y;
    const enum value s = rational_value(m, a, &x), t = rational_value(m, b, &y);
    if (s == V_UNDEFINED || t == V_UNDEFINED) return NO;
    if (s || t) return UNKNOWN;
    return fmpq_equal(x, y) ? YES : NO;
}

enum value exact_sign(struct math *m, int a, int *sign)
{
    const fmpq *x;
    const enum value s = rational_value(m, a, &x);
    if (!s) *sign = fmpq_sgn(x);
    return s;
}
