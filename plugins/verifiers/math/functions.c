/* Applies functions to their arguments: angles in radians, conjugates, exponentials and
 * logarithms. */
#include "parser.h"

int function_inverse(int f)
{
    static const uint8_t inverse[F_N] = {
        [F_SIN] = F_ASIN, [F_COS] = F_ACOS,   [F_TAN] = F_ATAN,   [F_COT] = F_ACOT,  [F_SEC] = F_ASEC,
        [F_CSC] = F_ACSC, [F_SINH] = F_ASINH, [F_COSH] = F_ACOSH, [F_TANH] = F_ATANH};
    return inverse[f];
}

/* Degrees in a trigonometric argument: x pi / 180. */
int in_radians(struct math *m, int x)
{
    if (x < 0 || !(at(m, x)->flags & NODE_DEG)) return x;
    const struct node a = *at(m, x);
    int out[64] = {0};
    if (a.n > 64) return -1;
    for (int i = 0; i < a.n; i++)
        if ((out[i] = in_radians(m, kid(m, x, i))) < 0) return -1;
    if (a.op == OP_DEG) return mk_mul(m, out[0], mk_div(m, mk_const(m, C_PI), mk_int(m, 180)));
    if (a.op == OP_ADD || a.op == OP_MUL) {
        int r = out[0];
        for (int i = 1; i < a.n; i++) r = a.op == OP_ADD ? mk_add(m, r, out[i]) : mk_mul(m, r, out[i]);
        return r;
    }
    return mk(m, (enum op)a.op, a.aux, out, a.n);
}

/* Conjugates sums, products and integer powers: -i for i. For anything else returns the function
 * itself. */
static int conjugate_of(struct math *m, int x)
{
    const struct node a = *at(m, x);
    int64_t power;
    int out[16] = {0};
    if (a.op == OP_NUM) return x;
    if (a.op == OP_CONST) return a.aux == C_I ? mk_neg(m, x) : x;
    if (a.op == OP_POW && small_int(m, kid(m, x, 1), &power)) return mk_pow(m, conjugate_of(m, kid(m, x, 0)), kid(m, x, 1));
    if ((a.op != OP_ADD && a.op != OP_MUL) || a.n > 16) return mk_func(m, F_CONJ, x);
    for (int i = 0; i < a.n; i++)
        if ((out[i] = conjugate_of(m, kid(m, x, i))) < 0) return -1;
    int r = out[0];
    for (int i = 1; i < a.n; i++) r = a.op == OP_ADD ? mk_add(m, r, out[i]) : mk_mul(m, r, out[i]);
    return r;
}

/* Sorts the arguments, whose order does not matter; returns n. */
static int in_order(int *args, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && args[k] < args[k - 1]; k--) {
            const int x = args[k];
            args[k] = args[k - 1], args[k - 1] = x;
        }
    return n;
}

/* Returns the matrix with these diagonal entries. */
static int diagonal_matrix(struct math *m, const int *entries, int n)
{
    enum { MOST = 12 };
    int all[MOST * MOST];
    if (n > MOST) return -1;
    for (int i = 0; i < n * n; i++) all[i] = i % (n + 1) ? mk_int(m, 0) : entries[i / n];
    return mk(m, OP_MATRIX, n, all, n * n);
}

int parse_function_value(struct parser *p, int f, int base, int *args, int n)
{
    struct math *m = p->m;
    if ((f <= F_CSC || f == F_CIS) && n && (args[0] = in_radians(m, args[0])) < 0) return -1;
    if (f == F_MAX || f == F_MIN || f == F_GCD || f == F_LCM) return mk(m, OP_FUNC, f, args, in_order(args, n));
    if (f == F_DIAG) return diagonal_matrix(m, args, n);
    if (n != 1) return parse_fail(p, "a function of one value with several");
    if (f == F_CONJ && !(at(m, args[0])->flags & NODE_VAR)) return conjugate_of(m, args[0]);
    if (f == F_EXP) return mk_pow(m, mk_const(m, C_E), args[0]);
    if (f == F_CIS) return mk_pow(m, mk_const(m, C_E), mk_mul(m, mk_const(m, C_I), args[0]));
    if (f == F_LOG) return base < 0 ? mk_func(m, F_LN, args[0]) : mk_func2(m, F_LOG, args[0], base);
    if (f == F_CSC) return mk_pow(m, mk_func(m, F_SIN, args[0]), mk_int(m, -1));
    if (f == F_SEC) return mk_pow(m, mk_func(m, F_COS, args[0]), mk_int(m, -1));
    return mk_func(m, (enum func)f, args[0]);
}
