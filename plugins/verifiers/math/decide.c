/* Decides whether two scalars are equal. The cheapest decision comes first; each one either proves
 * something or passes on. */
#include "math.h"

#include <string.h>

static bool set_reason(struct math *m, bool verdict, const char *reason)
{
    m->reason = reason;
    return verdict;
}

/* Returns +1 or -1 for plus or minus infinity, 0 for finite, 2 for undefined (inf - inf, 0 inf, 1 /
 * 0). */
static int infinite_sign(struct math *m, int x)
{
    const struct node *a = at(m, x);
    if (!(a->flags & NODE_INF)) return 0;
    if (a->op == OP_CONST) return 1;
    if (a->op != OP_MUL && a->op != OP_ADD) return 2;
    int sum = 0, product = 1;
    for (int i = 0; i < a->n; i++) {
        const int k = infinite_sign(m, kid(m, x, i));
        int sign = 0;
        if (k == 2) return 2;
        if (k) {
            if (a->op == OP_ADD && sum && sum != k) return 2;
            sum = k, product *= k;
        } else if (a->op == OP_MUL) {
            if (exact_sign(m, kid(m, x, i), &sign) || !sign) return 2;
            product *= sign;
        }
    }
    return a->op == OP_ADD ? sum : product;
}

static bool same_letters(const struct math *m, int s, int t)
{
    /* f(x), F(x) */
    if (memchr(m->pool + m->symbol[s].name, '(', (size_t)m->symbol[s].n_name)) return false;
    for (int i = 0; i < m->symbol[s].n_name; i++)
        if (text_lower(m->pool[m->symbol[s].name + i]) != text_lower(m->pool[m->symbol[t].name + i])) return false;
    return true;
}

/* Finds letters in one case on one side and in the other case on the other side, and in both cases
 * on neither: T for t. */
static void find_aliases(struct math *m, int a, int b)
{
    bool in_a[MAX_SYMBOLS] = {false}, in_b[MAX_SYMBOLS] = {false};
    int stack[256], n;
    memset(m->alias, 0, sizeof m->alias);
    for (int side = 0; side < 2; side++) {
        n = 0;
        stack[n++] = side ? b : a;
        int visits = 0;
        while (n && visits++ < 2000) {
            const int x = stack[--n];
            const struct node *k = at(m, x);
            if (k->op == OP_SYM) (side ? in_b : in_a)[k->aux] = true;
            for (int i = 0; i < k->n && n < 256; i++) stack[n++] = kid(m, x, i);
        }
    }
    for (int s = 0; s < m->n_symbols; s++) {
        if (!in_a[s] || in_b[s]) continue;
        for (int t = 0; t < m->n_symbols; t++)
            if (t != s && in_b[t] && !in_a[t] && m->symbol[t].n_name == m->symbol[s].n_name && same_letters(m, s, t))
                m->alias[s] = t + 1;
    }
}

/* strict = false: renames symbols in the order of their first appearance. */
static void rename_all(struct math *m, int a, int b)
{
    int order[2][MAX_SYMBOLS], n[2] = {0, 0}, stack[256];
    for (int side = 0; side < 2; side++) {
        int k = 0;
        stack[k++] = side ? b : a;
        while (k) {
            const int x = stack[--k];
            if (at(m, x)->op == OP_SYM) {
                bool seen = false;
                for (int i = 0; i < n[side]; i++) seen |= order[side][i] == at(m, x)->aux;
                if (!seen) order[side][n[side]++] = at(m, x)->aux;
            }
            for (int i = at(m, x)->n - 1; i >= 0 && k < 256; i--) stack[k++] = kid(m, x, i);
        }
    }
    if (n[0] != n[1]) return;
    for (int i = 0; i < n[0]; i++)
        if (order[0][i] != order[1][i]) m->alias[order[0][i]] = order[1][i] + 1;
}

void math_alias(struct math *m, int a, int b)
{
    memset(m->alias, 0, sizeof m->alias);
    if (a < 0 || b < 0) return;
    if (!m->o.strict)
        rename_all(m, a, b);
    else if (m->o.letter_case)
        find_aliases(m, a, b);
}

/* Returns the greatest or least argument; -1: unknown. */
static int extreme_argument(struct math *m, int x)
{
    int best = kid(m, x, 0);
    for (int i = 1; i < at(m, x)->n; i++) {
        const enum truth less = numeric_less(m, best, kid(m, x, i));
        if (less == UNKNOWN) return -1;
        if ((less == YES) == (at(m, x)->aux == F_MAX)) best = kid(m, x, i);
    }
    return best;
}

/* Replaces every maximum, minimum and remainder in x, which has no letters, by its value: max(3,
 * pi) by pi, 10 mod pi by 10 - 3 pi. */
static int settle_functions(struct math *m, int x)
{
    const struct node a = *at(m, x);
    int out[64] = {0};
    if (!(a.flags & NODE_DISCRETE) || a.n > 64) return x;
    for (int i = 0; i < a.n; i++) out[i] = settle_functions(m, kid(m, x, i));
    int r = a.op == OP_MOD ? mk_add(m, out[0], mk_neg(m, mk_mul(m, out[1], mk_func(m, F_FLOOR, mk_div(m, out[0], out[1])))))
                           : mk_again(m, &a, out);
    if (r >= 0 && a.op == OP_FUNC && (a.aux == F_MAX || a.aux == F_MIN)) r = extreme_argument(m, r);
    return r < 0 ? x : r;
}

static bool decide_closed(struct math *m, int a, int b)
{
    bool undefined;
    const enum truth exact = exact_equal(m, a, b);
    if (exact != UNKNOWN)
        return set_reason(m, exact == YES, exact == YES ? "equal rational numbers" : "different rational numbers");
    if (numeric_refutes(m, a, b, &undefined) == NO) return set_reason(m, false, "different numbers (disjoint balls)");
    if (undefined) return set_reason(m, false, "a value that is undefined or beyond the limits");
    if ((at(m, a)->flags | at(m, b)->flags) & NODE_DISCRETE) {
        a = settle_functions(m, a), b = settle_functions(m, b);
        if (a == b) return set_reason(m, true, "the same expression");
    }
    const enum truth proved = algebraic_equal(m, a, b);
    if (proved != UNKNOWN) return m->precision = 0, proved == YES;
    const enum truth numeric = numeric_equal(m, a, b);
    if (numeric == YES) return set_reason(m, true, "equal to 1,000 digits");
    return set_reason(m, false,
                      numeric == NO ? "different numbers (disjoint balls)" : "equality could not be shown within the limits");
}

bool decide(struct math *m, int a, int b)
{
    const int flags = at(m, a)->flags | at(m, b)->flags;
    if (flags & NODE_SHAPE) return set_reason(m, false, "not comparable");
    if (flags & NODE_INF) {
        const int x = infinite_sign(m, a), y = infinite_sign(m, b);
        return set_reason(m, x == y && x && x != 2, x == y && x && x != 2 ? "the same infinity" : "not the same infinity");
    }
    if (!(flags & NODE_VAR)) {
        if (a == b) {
            const int op = at(m, a)->op;
            if (op == OP_NUM || op == OP_CONST)
                return set_reason(m, at(m, a)->aux != C_UNDEFINED || op == OP_NUM, "the same number");
            int sign;
            const enum value v = exact_sign(m, a, &sign);
            if (v == V_OK) return set_reason(m, true, "the same number");
            if (v == V_UNDEFINED) return set_reason(m, false, "an undefined value");
            if (v == V_NOT_RATIONAL && !(flags & NODE_OPAQUE) && numeric_is_undefined(m, a))
                return set_reason(m, false, "a value that is undefined or beyond the limits");
            return set_reason(m, true, "the same expression");
        }
        if (at(m, a)->op == OP_NUM && at(m, b)->op == OP_NUM && !((flags & NODE_DECIMAL) && m->o.rounding >= 0))
            return set_reason(m, false, "different numbers as written"); /* nodes are unique */
        if (decide_closed(m, a, b)) return true;
        if (m->o.rounding >= 0 && flags & NODE_DECIMAL && numeric_rounded(m, a, b, m->o.rounding) == YES)
            return set_reason(m, true, "equal when rounded (policy)");
        return false;
    }
    if (a == b) return set_reason(m, true, "the same expression");
    math_alias(m, a, b);
    const enum truth same = identity_equal(m, a, b);
    math_alias(m, -1, -1);
    return set_reason(m, same == YES,
                      same == YES  ? "equal as expressions in their letters"
                      : same == NO ? "different expressions"
                                   : "equality could not be shown within the limits");
}
