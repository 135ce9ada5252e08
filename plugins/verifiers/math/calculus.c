/* Derivatives, and the values of definite integrals and limits if a table and l'Hopital's rule give
 * them exactly. All others remain opaque structures, equal only to identical ones. Every step
 * counts against the pair's budget. */
#include "flint.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RULES = 4, DEEP = 24, MAX_GROWTH = 2000 };

static bool depends_on(const struct math *m, int x, int s)
{
    const struct node *a = at(m, x);
    if (!(a->flags & NODE_VAR)) return false;
    if (a->op == OP_SYM) return a->aux == s;
    for (int i = 0; i < a->n; i++)
        if (depends_on(m, kid(m, x, i), s)) return true;
    return false;
}

/* Letters that are constants, or the variable itself; a function of the variable may be called y or
 * u. */
bool only_constants(const struct math *m, int x, int s)
{
    const struct node *a = at(m, x);
    if (a->op == OP_SYM)
        return a->aux == s || (m->symbol[a->aux].n_name == 1 && strchr("abcknmpqABC", m->pool[m->symbol[a->aux].name]));
    for (int i = 0; i < a->n; i++)
        if (!only_constants(m, kid(m, x, i), s)) return false;
    return true;
}

static int reciprocal_node(struct math *m, int x)
{
    return mk_pow(m, x, mk_int(m, -1));
}

static int minus_node(struct math *m, int a, int b)
{
    return mk_add(m, a, mk_neg(m, b));
}

/* Make sums, products and powers, simplified with integers: otherwise the rules below would leave 0
 * x^{2-1-1} for a constant. */
static int plus_node(struct math *m, int a, int b)
{
    int64_t x, y;
    if (a < 0 || b < 0) return -1;
    if (num_is(m, a, 0)) return b;
    if (num_is(m, b, 0)) return a;
    if (small_int(m, a, &x) && small_int(m, b, &y) && llabs(x) < 1000000 && llabs(y) < 1000000) return mk_int(m, x + y);
    return mk_add(m, a, b);
}

static int product_node(struct math *m, int a, int b)
{
    int64_t x, y;
    if (a < 0 || b < 0) return -1;
    if (num_is(m, a, 0) || num_is(m, b, 0)) return mk_int(m, 0);
    if (small_int(m, a, &x) && small_int(m, b, &y) && llabs(x) < 1000000 && llabs(y) < 1000000) return mk_int(m, x * y);
    return mk_mul(m, a, b);
}

static int power_node(struct math *m, int a, int b)
{
    return a >= 0 && b >= 0 && num_is(m, b, 0) ? mk_int(m, 1) : mk_pow(m, a, b);
}

static int quotient_node(struct math *m, int a, int b)
{
    return product_node(m, a, power_node(m, b, mk_int(m, -1)));
}

/* Returns f'(u) of the function f. */
static int outer_derivative(struct math *m, int f, int u)
{
    const int one = mk_int(m, 1), two = mk_int(m, 2), square = power_node(m, u, two);
    switch (f) {
    case F_SIN:
        return mk_func(m, F_COS, u);
    case F_COS:
        return mk_neg(m, mk_func(m, F_SIN, u));
    case F_TAN:
        return power_node(m, mk_func(m, F_COS, u), mk_int(m, -2));
    case F_COT:
        return mk_neg(m, power_node(m, mk_func(m, F_SIN, u), mk_int(m, -2)));
    case F_ASIN:
        return reciprocal_node(m, mk_root(m, minus_node(m, one, square), 2));
    case F_ACOS:
        return mk_neg(m, reciprocal_node(m, mk_root(m, minus_node(m, one, square), 2)));
    case F_ATAN:
        return reciprocal_node(m, plus_node(m, one, square));
    case F_SINH:
        return mk_func(m, F_COSH, u);
    case F_COSH:
        return mk_func(m, F_SINH, u);
    case F_TANH:
        return power_node(m, mk_func(m, F_COSH, u), mk_int(m, -2));
    case F_LN:
        return reciprocal_node(m, u);
    default:
        return -1;
    }
}

static int derive_node(struct math *m, int x, int s, int depth);

static int derive_power(struct math *m, int x, int s, int depth)
{
    const int base = kid(m, x, 0), exponent = kid(m, x, 1), b = derive_node(m, base, s, depth),
              e = derive_node(m, exponent, s, depth);
    if (!depends_on(m, exponent, s))
        return product_node(m, product_node(m, exponent, power_node(m, base, plus_node(m, exponent, mk_int(m, -1)))), b);
    const bool natural = at(m, base)->op == OP_CONST && at(m, base)->aux == C_E;
    const int by_exponent = natural ? e : product_node(m, e, mk_func(m, F_LN, base));
    if (!depends_on(m, base, s)) return product_node(m, x, by_exponent);
    return product_node(m, x, plus_node(m, by_exponent, product_node(m, exponent, quotient_node(m, b, base))));
}

static int derive_node(struct math *m, int x, int s, int depth)
{
    if (x < 0 || depth > DEEP || !spend(m, 1)) return -1;
    const struct node a = *at(m, x);
    if (!depends_on(m, x, s)) return mk_int(m, 0);
    int sum = mk_int(m, 0);
    switch (a.op) {
    case OP_SYM:
        return mk_int(m, 1);
    case OP_ADD:
        for (int i = 0; i < a.n; i++) sum = plus_node(m, sum, derive_node(m, kid(m, x, i), s, depth + 1));
        return sum;
    case OP_MUL:
        for (int i = 0; i < a.n; i++) {
            int term = derive_node(m, kid(m, x, i), s, depth + 1);
            for (int k = 0; k < a.n; k++)
                if (k != i) term = product_node(m, term, kid(m, x, k));
            sum = plus_node(m, sum, term);
        }
        return sum;
    case OP_POW:
        return derive_power(m, x, s, depth + 1);
    case OP_ROOT: {
        const int under = derive_node(m, kid(m, x, 0), s, depth + 1);
        return quotient_node(m, product_node(m, x, under), product_node(m, kid(m, x, 0), kid(m, x, 1)));
    }
    case OP_FUNC:
        if (a.n == 2 && a.aux == F_LOG && !depends_on(m, kid(m, x, 1), s))
            return quotient_node(m, derive_node(m, kid(m, x, 0), s, depth + 1),
                                 product_node(m, kid(m, x, 0), mk_func(m, F_LN, kid(m, x, 1))));
        return a.n == 1 ? product_node(m, outer_derivative(m, a.aux, kid(m, x, 0)), derive_node(m, kid(m, x, 0), s, depth + 1))
                        : -1;
    default:
        return -1;
    }
}

int derivative(struct math *m, int x, int s)
{
    /* each derivative may be several times as long as its function */
    return m->n_nodes > MAX_GROWTH ? -1 : derive_node(m, x, s, 0);
}

/* ---------------------------------------------------------------- integrals */

/* Returns the derivative of a linear function of the letter; -1: not linear. */
static int linear_slope(struct math *m, int x, int s)
{
    const int d = derivative(m, x, s);
    return d < 0 || depends_on(m, d, s) || num_is(m, d, 0) ? -1 : d;
}

static bool vanishes_at(struct math *m, int x)
{
    if (x < 0) return false;
    return num_is(m, x, 0) || (!(at(m, x)->flags & (NODE_SHAPE | NODE_INF)) && decide(m, x, mk_int(m, 0)));
}

/* Computes c = a b for polynomials of na and nb coefficients. Returns the number of coefficients of
 * c; 0: too many. */
static int convolve_polynomials(struct math *m, const int *a, int na, const int *b, int nb, int *c)
{
    if (na + nb - 1 > MAX_TAYLOR + 1) return 0;
    int out[MAX_TAYLOR + 1];
    for (int k = 0; k < na + nb - 1; k++) out[k] = mk_int(m, 0);
    for (int i = 0; i < na; i++)
        for (int k = 0; k < nb; k++) out[i + k] = plus_node(m, out[i + k], product_node(m, a[i], b[k]));
    memcpy(c, out, sizeof out);
    return na + nb - 1;
}

static int expand_polynomial(struct math *m, int x, int s, int *out, int depth);

static int expand_power(struct math *m, int x, int s, int *out, int depth)
{
    int part[MAX_TAYLOR + 1], n = 1;
    int64_t exponent;
    if (!small_int(m, kid(m, x, 1), &exponent) || exponent < 1 || exponent > MAX_TAYLOR) return 0;
    const int k = expand_polynomial(m, kid(m, x, 0), s, part, depth + 1);
    out[0] = mk_int(m, 1);
    for (int i = 0; i < exponent && k && n; i++) n = convolve_polynomials(m, out, n, part, k, out);
    return k ? n : 0;
}

/* Returns the number of coefficients of x as written; 0: not a polynomial of small degree. */
static int expand_polynomial(struct math *m, int x, int s, int *out, int depth)
{
    const struct node a = *at(m, x);
    int part[MAX_TAYLOR + 1], n = 1;
    if (depth > DEEP || !spend(m, 20)) return 0;
    if (!depends_on(m, x, s)) return out[0] = x, 1;
    if (a.op == OP_SYM) return out[0] = mk_int(m, 0), out[1] = mk_int(m, 1), 2;
    if (a.op == OP_POW) return expand_power(m, x, s, out, depth);
    if (a.op != OP_ADD && a.op != OP_MUL) return 0;
    out[0] = mk_int(m, a.op == OP_MUL);
    for (int i = 0; i < a.n && n; i++) {
        const int k = expand_polynomial(m, kid(m, x, i), s, part, depth + 1);
        if (!k) return 0;
        if (a.op == OP_MUL) {
            n = convolve_polynomials(m, out, n, part, k, out);
            continue;
        }
        for (int l = 0; l < k; l++) out[l] = l < n ? plus_node(m, out[l], part[l]) : part[l];
        n = k > n ? k : n;
    }
    return n;
}

int coefficients(struct math *m, int f, int s, int *out)
{
    int n = f < 0 ? 0 : expand_polynomial(m, f, s, out, 0);
    for (int i = 0; i < n; i++)
        if (out[i] < 0) return 0;
    while (n > 1 && vanishes_at(m, out[n - 1])) n--;
    return n;
}

static int of_polynomial(struct math *m, int f, int s, int v)
{
    int c[MAX_TAYLOR + 1], sum = mk_int(m, 0);
    const int n = coefficients(m, f, s, c);
    for (int k = 0; k < n; k++) sum = mk_add(m, sum, mk_div(m, mk_mul(m, c[k], mk_pow(m, v, mk_int(m, k + 1))), mk_int(m, k + 1)));
    return n ? sum : -1;
}

/* Returns a function whose derivative is base^exponent. */
static int of_power(struct math *m, int base, int exponent, int s)
{
    if (!depends_on(m, base, s)) { /* c^{a v + b} */
        const int a = linear_slope(m, exponent, s);
        return a < 0 ? -1 : mk_div(m, mk_pow(m, base, exponent), mk_mul(m, a, mk_func(m, F_LN, base)));
    }
    const int a = linear_slope(m, base, s), more = mk_add(m, exponent, mk_int(m, 1));
    if (depends_on(m, exponent, s)) return -1;
    if (a >= 0 && num_is(m, exponent, -1)) return mk_div(m, mk_func(m, F_LN, mk_func(m, F_ABS, base)), a);
    if (a >= 0) return mk_div(m, mk_pow(m, base, more), mk_mul(m, a, more));
    const struct node f = *at(m, base);
    if (f.op == OP_FUNC && num_is(m, exponent, -2) && (f.aux == F_COS || f.aux == F_SIN)) {
        const int inner = linear_slope(m, kid(m, base, 0), s);
        if (inner < 0) return -1;
        return f.aux == F_COS ? mk_div(m, mk_func(m, F_TAN, kid(m, base, 0)), inner)
                              : mk_neg(m, mk_div(m, mk_func(m, F_COT, kid(m, base, 0)), inner));
    }
    int c[MAX_TAYLOR + 1];
    if (!num_is(m, exponent, -1) || coefficients(m, base, s, c) != 3 || !vanishes_at(m, c[1])) return -1;
    /* 1 / (c2 v^2 + c0) */
    const int product = mk_mul(m, c[2], c[0]), root = mk_root(m, product, 2);
    if (product < 0 || numeric_less(m, mk_int(m, 0), product) != YES) return -1;
    const int v = mk_div(m, derivative(m, base, s), mk_int(m, 2));
    return mk_div(m, mk_func(m, F_ATAN, mk_div(m, v, root)), root);
}

/* Returns whether the integrand may have a pole between the limits. It has none if the base of each
 * negative power is linear with its root outside, or never 0. */
static bool has_pole(struct math *m, int f, int s, int from, int to)
{
    const struct node a = *at(m, f);
    if (!depends_on(m, f, s)) return false;
    if (a.op == OP_FUNC && (a.aux == F_TAN || a.aux == F_COT || a.aux == F_COTH)) return true;
    int sign;
    if (a.op == OP_POW && (exact_sign(m, kid(m, f, 1), &sign) || sign < 0)) {
        const int base = kid(m, f, 0), by = linear_slope(m, base, s);
        const bool whole = !exact_sign(m, kid(m, f, 1), &sign);
        if (!whole && !depends_on(m, base, s)) return has_pole(m, kid(m, f, 1), s, from, to);
        int c[MAX_TAYLOR + 1];
        if (by < 0) {
            const int n = coefficients(m, base, s, c);
            return n != 3 || !vanishes_at(m, c[1]) || numeric_less(m, mk_int(m, 0), mk_mul(m, c[0], c[2])) != YES;
        }
        const int root = mk_neg(m, mk_div(m, substitute(m, base, s, mk_int(m, 0)), by));
        return root < 0 || at(m, root)->flags & NODE_VAR ||
               !(numeric_less(m, root, from) == YES || numeric_less(m, to, root) == YES) || numeric_less(m, from, to) != YES;
    }
    for (int i = 0; i < a.n; i++)
        if (has_pole(m, kid(m, f, i), s, from, to)) return true;
    return false;
}

static int antiderivative_of(struct math *m, int f, int s, int v, int depth)
{
    if (f < 0 || depth > DEEP || !spend(m, 10)) return -1;
    const struct node a = *at(m, f);
    if (!depends_on(m, f, s)) return mk_mul(m, f, v);
    const int polynomial = of_polynomial(m, f, s, v);
    if (polynomial >= 0) return polynomial;
    if (a.op == OP_ADD) {
        int sum = mk_int(m, 0);
        for (int i = 0; i < a.n; i++) sum = mk_add(m, sum, antiderivative_of(m, kid(m, f, i), s, v, depth + 1));
        return sum;
    }
    if (a.op == OP_MUL) { /* one factor depends on the letter */
        int constant = mk_int(m, 1), rest = -1;
        for (int i = 0; i < a.n; i++) {
            const int k = kid(m, f, i);
            if (!depends_on(m, k, s))
                constant = mk_mul(m, constant, k);
            else if (rest >= 0)
                return -1;
            else
                rest = k;
        }
        return mk_mul(m, constant, antiderivative_of(m, rest, s, v, depth + 1));
    }
    if (a.op == OP_POW) return of_power(m, kid(m, f, 0), kid(m, f, 1), s);
    if (a.op == OP_ROOT) return of_power(m, kid(m, f, 0), reciprocal_node(m, kid(m, f, 1)), s);
    if (a.op != OP_FUNC || a.n != 1) return -1;
    const int u = kid(m, f, 0), by = linear_slope(m, u, s);
    if (by < 0) return -1;
    int g = -1;
    if (a.aux == F_SIN) g = mk_neg(m, mk_func(m, F_COS, u));
    if (a.aux == F_COS) g = mk_func(m, F_SIN, u);
    if (a.aux == F_SINH) g = mk_func(m, F_COSH, u);
    if (a.aux == F_COSH) g = mk_func(m, F_SINH, u);
    if (a.aux == F_LN) g = minus_node(m, mk_mul(m, u, f), u);
    return mk_div(m, g, by);
}

static bool is_finite(struct math *m, int x)
{
    return x >= 0 && !(at(m, x)->flags & (NODE_INF | NODE_SHAPE)) && (at(m, x)->flags & NODE_VAR || !numeric_is_undefined(m, x));
}

/* Returns the value of a definite integral whose integrand is finite between its limits; -1: not
 * found. */
static int integral_value(struct math *m, int x)
{
    const struct node a = *at(m, x);
    if (a.n != 5) return -1;
    const int from = kid(m, x, 0), to = kid(m, x, 1), f = kid(m, x, 3), v = kid(m, x, 4), s = at(m, v)->aux;
    if (!is_finite(m, from) || !is_finite(m, to) || !only_constants(m, f, s)) return -1;
    int c[MAX_TAYLOR + 1];
    const int middle = mk_div(m, mk_add(m, from, to), mk_int(m, 2)), points[3] = {from, middle, to};
    for (int i = 0; i < 3; i++)
        if (!is_finite(m, substitute(m, f, s, points[i]))) return -1;
    if (!coefficients(m, f, s, c) && at(m, f)->flags & NODE_VAR && has_pole(m, f, s, from, to)) return -1;
    const int F = antiderivative_of(m, f, s, v, 0);
    return F < 0 ? -1 : minus_node(m, substitute(m, F, s, to), substitute(m, F, s, from));
}

/* ---------------------------------------------------------------- limits */

/* Splits x into n / d: factors with negative powers go below. */
static void split_fraction(struct math *m, int x, int *n, int *d)
{
    const struct node a = *at(m, x);
    *n = *d = mk_int(m, 1);
    for (int i = 0; i < (a.op == OP_MUL ? a.n : 1); i++) {
        const int k = a.op == OP_MUL ? kid(m, x, i) : x;
        int64_t power;
        if (at(m, k)->op == OP_POW && small_int(m, kid(m, k, 1), &power) && power < 0)
            *d = mk_mul(m, *d, mk_pow(m, kid(m, k, 0), mk_int(m, -power)));
        else
            *n = mk_mul(m, *n, k);
    }
}

/* Returns the limit of a rational function at infinity: the quotient of the leading coefficients,
 * or 0. */
static int limit_at_infinity(struct math *m, int n, int d, int s)
{
    int a[MAX_TAYLOR + 1], b[MAX_TAYLOR + 1];
    const int k = coefficients(m, n, s, a), l = coefficients(m, d, s, b);
    if (!k || !l || k > l) return -1;
    return k < l ? mk_int(m, 0) : mk_div(m, a[k - 1], b[l - 1]);
}

static int limit_value(struct math *m, const struct limit *l)
{
    const struct node r = *at(m, l->under);
    if (r.op != OP_REL || r.n != 2 || at(m, kid(m, l->under, 0))->op != OP_SYM) return -1;
    const int s = at(m, kid(m, l->under, 0))->aux, to = kid(m, l->under, 1);
    if (!only_constants(m, l->body, s)) return -1; /* f(x) of an unknown f */
    if (!depends_on(m, l->body, s)) return l->body;
    if (at(m, l->body)->flags & NODE_DISCRETE) return -1; /* a floor may be discontinuous there */
    int n, d;
    split_fraction(m, l->body, &n, &d);
    if (n < 0 || d < 0) return -1;
    if (at(m, to)->flags & NODE_INF) return limit_at_infinity(m, n, d, s);
    if (!is_finite(m, to)) return -1;
    for (int k = 0; k < MAX_RULES && n >= 0 && d >= 0; k++) {
        const int above = substitute(m, n, s, to), below = substitute(m, d, s, to);
        if (!is_finite(m, above) || !is_finite(m, below)) return -1;
        if (!vanishes_at(m, below)) return mk_div(m, above, below);
        if (!vanishes_at(m, above)) return -1;
        n = derivative(m, n, s), d = derivative(m, d, s);
    }
    return -1;
}

/* ---------------------------------------------------------------- in answers */

/* Replaces every integral and limit in x that has a value by it; x itself: there are none. */
static int evaluate_all(struct math *m, int x, int depth)
{
    const struct node a = *at(m, x);
    int out[64] = {0}, value = -1;
    if (depth > DEEP || a.n > 64) return x;
    if (a.op == OP_INT) value = integral_value(m, x);
    for (int i = 0; i < m->n_limits && a.op == OP_SYM; i++)
        if (m->limits[i].symbol == x) value = limit_value(m, &m->limits[i]);
    if (value >= 0) return value;
    if (a.op != OP_ADD && a.op != OP_MUL && a.op != OP_POW) return x;
    bool changed = false;
    for (int i = 0; i < a.n; i++) changed |= (out[i] = evaluate_all(m, kid(m, x, i), depth + 1)) != kid(m, x, i);
    if (!changed) return x;
    if (a.op == OP_POW) return mk_pow(m, out[0], out[1]);
    int r = out[0];
    for (int i = 1; i < a.n; i++) r = a.op == OP_ADD ? mk_add(m, r, out[i]) : mk_mul(m, r, out[i]);
    return r;
}

/* Splits x + C into x and the constant's symbol; -1: no constant is added. */
static int without_constant(struct math *m, int x, bool gold, int *constant)
{
    const char *letters = gold ? "C" : "CcKkD";
    if (at(m, x)->op != OP_ADD) return -1;
    for (int i = 0; i < at(m, x)->n; i++) {
        const struct node *k = at(m, kid(m, x, i));
        if (k->op != OP_SYM || m->symbol[k->aux].n_name != 1 || !strchr(letters, m->pool[m->symbol[k->aux].name])) continue;
        *constant = k->aux;
        const int rest = substitute(m, x, k->aux, mk_int(m, 0));
        return rest >= 0 && !depends_on(m, rest, k->aux) && at(m, rest)->flags & NODE_VAR ? rest : -1;
    }
    return -1;
}

bool same_antiderivatives(struct math *m, int gold, int pred)
{
    int c, k;
    const int x = without_constant(m, gold, true, &c), y = x < 0 ? -1 : without_constant(m, pred, false, &k);
    if (y < 0 || depends_on(m, x, k) || depends_on(m, y, c)) return false;
    if (decide(m, x, y)) return true;
    for (int s = 0; s < m->n_symbols; s++) { /* sin^2 x and -cos^2 x */
        if (!depends_on(m, x, s) || !depends_on(m, y, s)) continue;
        const int a = derivative(m, x, s), b = derivative(m, y, s);
        if (a < 0 || b < 0 || !decide(m, a, b)) return false;
    }
    for (int s = 0; s < m->n_symbols; s++)
        if (depends_on(m, x, s) != depends_on(m, y, s)) return false;
    return true;
}

bool calculus_values(struct math *m, int *gold, int *pred)
{
    if (!m->n_limits && !m->integrals) return false;
    const int x = evaluate_all(m, *gold, 0), y = evaluate_all(m, *pred, 0);
    if (x < 0 || y < 0 || (x == *gold && y == *pred)) return false;
    return *gold = x, *pred = y, true;
}
