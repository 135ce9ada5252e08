/* Inequalities in one symbol as sets of numbers: a < x <= b, 2x - 1 > 5, -x <= 3, |x - 2| < 5, x !=
 * 1, and lists of them. */
#include "math.h"

static bool is_inequality(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    if (a->op != OP_REL) return false;
    for (int i = 0; i < a->n_digits; i++)
        if (relation_op(m, x, i) < R_NE || relation_op(m, x, i) > R_GE) return false;
    return true;
}

/* Returns the only symbol of x; -1: none, -2: several. */
static int only_symbol(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    int found = -1;
    if (!(a->flags & NODE_VAR)) return -1;
    if (a->op == OP_SYM) return x;
    for (int i = 0; i < a->n; i++) {
        const int s = only_symbol(m, kid(m, x, i));
        if (s == -2 || (s >= 0 && found >= 0 && s != found)) return -2;
        if (s >= 0) found = s;
    }
    return found;
}

int inequality_symbol(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    const bool list = a->op == OP_LIST;
    int found = -1;
    for (int i = 0; i < (list ? a->n : 1); i++) {
        const int k = list ? kid(m, x, i) : x, s = is_inequality(m, k) ? only_symbol(m, k) : -2;
        if (s < 0 || (found >= 0 && s != found)) return -1;
        found = s;
    }
    return found;
}

static bool is_constant(const struct math *m, int x)
{
    return !(at(m, x)->flags & (NODE_VAR | NODE_SHAPE | NODE_PM));
}

/* Writes x as slope * s + offset with rational numbers, and the slope's sign to *sign. false: not
 * linear. */
static bool split_linear(struct math *m, int x, int s, int *slope, int *offset, int *sign)
{
    if (x == s) return *slope = mk_int(m, 1), *offset = mk_int(m, 0), *sign = 1, true;
    if (at(m, x)->op > OP_DEG || at(m, x)->flags & (NODE_SHAPE | NODE_PM | NODE_INF)) return false;
    const int symbol = at(m, s)->aux;
    *offset = substitute(m, x, symbol, mk_int(m, 0));
    const int one = substitute(m, x, symbol, mk_int(m, 1));
    *slope = mk_add(m, one, mk_neg(m, *offset));
    const int line = mk_add(m, *offset, mk_mul(m, *slope, s));
    return line >= 0 && !exact_sign(m, *slope, sign) && *sign && identity_equal(m, x, line) == YES;
}

/* Returns where slope * s + offset equals v. An infinity remains one, with its sign flipped if the
 * slope is negative. */
static int solve_linear(struct math *m, int v, int slope, int offset, int sign)
{
    if (v < 0) return -1;
    if (at(m, v)->flags & NODE_INF) return sign < 0 ? mk_neg(m, v) : v;
    if (num_is(m, slope, 1) && num_is(m, offset, 0)) return v;
    return mk_div(m, mk_add(m, v, mk_neg(m, offset)), slope);
}

/* Solves low (<, <=) middle (<, <=) high with a middle that is linear in s; closed: bit 0 at low,
 * bit 1 at high. */
static int solve_between(struct math *m, int low, int middle, int high, int s, int closed)
{
    int slope, offset, sign;
    if (!split_linear(m, middle, s, &slope, &offset, &sign)) return -1;
    const int a = solve_linear(m, low, slope, offset, sign), b = solve_linear(m, high, slope, offset, sign);
    if (a < 0 || b < 0) return -1;
    if (sign > 0) return mk(m, OP_TUPLE, closed, (int[]){a, b}, 2);
    return mk(m, OP_TUPLE, closed >> 1 | (closed & 1) << 1, (int[]){b, a}, 2);
}

/* Solves f > 0 or f >= 0 for a quadratic f of the symbol s: between its roots, or outside of them;
 * -1: not a supported quadratic. */
static int solve_quadratic(struct math *m, int f, bool closed, int s)
{
    int c[MAX_TAYLOR + 1], sign;
    const int inf = mk_const(m, C_INF), zero = mk_int(m, 0), two = mk_int(m, 2);
    if (f < 0 || at(m, f)->op > OP_DEG || at(m, f)->flags & (NODE_SHAPE | NODE_PM | NODE_INF)) return -1;
    if (coefficients(m, f, at(m, s)->aux, c) != 3 || !is_constant(m, c[0]) || !is_constant(m, c[1]) || exact_sign(m, c[2], &sign))
        return -1;
    const int square = mk_mul(m, c[1], c[1]), product = mk_mul(m, mk_int(m, 4), mk_mul(m, c[0], c[2]));
    const int discriminant = mk_add(m, square, mk_neg(m, product));
    if (discriminant < 0 || !sign) return -1;
    const bool none = numeric_less(m, discriminant, zero) == YES;
    if (none) return sign > 0 ? mk_const(m, C_REALS) : mk_const(m, C_EMPTY);
    if (numeric_less(m, zero, discriminant) != YES) return -1;
    const int root = mk_root(m, discriminant, 2), middle = mk_neg(m, c[1]), twice = mk_mul(m, two, c[2]);
    const int one = mk_div(m, mk_add(m, middle, mk_neg(m, root)), twice), other = mk_div(m, mk_add(m, middle, root), twice);
    const int low = sign > 0 ? one : other, high = sign > 0 ? other : one;
    if (sign < 0) return mk(m, OP_TUPLE, closed ? 3 : 0, (int[]){low, high}, 2);
    const int below = mk(m, OP_TUPLE, closed ? 2 : 0, (int[]){mk_neg(m, inf), low}, 2),
              above = mk(m, OP_TUPLE, closed ? 1 : 0, (int[]){high, inf}, 2);
    return below < 0 || above < 0 ? -1 : mk(m, OP_UNION, 0, (int[]){below, above}, 2);
}

/* Solves low (<, <=) high, with the symbol on either side. */
static int solve_single(struct math *m, int low, int high, bool closed, int s)
{
    const int inf = mk_const(m, C_INF), minus_inf = mk_neg(m, inf);
    const bool left = at(m, low)->flags & NODE_VAR, right = at(m, high)->flags & NODE_VAR;
    const int bars = left && !right ? low : right && !left ? high : -1;
    if (bars >= 0 && at(m, bars)->op == OP_FUNC && at(m, bars)->aux == F_ABS && is_constant(m, left ? high : low)) {
        const int inside = kid(m, bars, 0), bound = left ? high : low, minus = mk_neg(m, bound);
        if (left) return solve_between(m, minus, inside, bound, s, closed ? 3 : 0);
        const int below = solve_between(m, minus_inf, inside, minus, s, closed ? 2 : 0),
                  above = solve_between(m, bound, inside, inf, s, closed ? 1 : 0);
        return below < 0 || above < 0 ? -1 : mk(m, OP_UNION, 0, (int[]){below, above}, 2);
    }
    const int curve = left || right ? solve_quadratic(m, mk_add(m, high, mk_neg(m, low)), closed, s) : -1;
    if (curve >= 0) return curve;
    if (left && !right && is_constant(m, high)) return solve_between(m, minus_inf, low, high, s, closed << 1);
    if (right && !left && is_constant(m, low)) return solve_between(m, low, high, inf, s, closed);
    if (!left || !right) return -1;
    return solve_between(m, mk_int(m, 0), mk_add(m, high, mk_neg(m, low)), inf, s, closed);
}

int relation_to_set(struct math *m, int x)
{
    int a[32], ops[32];
    const int n = at(m, x)->n, s = is_inequality(m, x) ? only_symbol(m, x) : -1;
    if (s < 0) return -1;
    if (n == 2 && relation_op(m, x, 0) == R_NE) {
        const int v = at(m, kid(m, x, 0))->op == OP_SYM ? kid(m, x, 1) : kid(m, x, 0);
        const int points[2] = {pm_expand(m, v, 0), pm_expand(m, v, 1)}; /* x != +-1 */
        if (points[0] < 0 || points[1] < 0 || !is_constant(m, points[0])) return -1;
        const int set = mk(m, OP_SET, 0, points, 2);
        return set < 0 ? -1 : mk(m, OP_DIFF, 0, (int[]){mk_const(m, C_REALS), set}, 2);
    }
    if (n > 3 || !relation_ascending(m, x, a, ops)) return -1;
    if (n == 2) return solve_single(m, a[0], a[1], ops[0], s);
    if (!is_constant(m, a[0]) || !is_constant(m, a[2])) return -1;
    return solve_between(m, a[0], a[1], a[2], s, ops[0] | ops[1] << 1);
}
