/* Equations and inequalities. Two equations are equal if their differences of sides are
 * proportional; for an inequality the sign of the factor matters too. Chains are compared member by
 * member, in either direction. */
#include "math.h"

#include <string.h>

static bool symbol_is(const struct math *m, int x, const char *name)
{
    const int s = at(m, x)->aux, n = (int)strlen(name);
    return m->symbol[s].n_name == n && !memcmp(m->pool + m->symbol[s].name, name, (size_t)n);
}

/* Splits the name f(x), with one letter in brackets, into the part before the brackets and the
 * letter; false: another name. */
static bool is_application(const struct math *m, int x, tare_text *name, tare_text *letter)
{
    enum { BRACKET = 4 }; /* a blank, and three bytes for a bracket: parse_label */
    const struct node *a = at(m, x);
    const tare_text t = {m->pool + a->digits, a->n_digits};
    if (a->op != OP_TEXT || a->aux != TEXT_NAME || t.size < 2 * BRACKET + 3) return false;
    const int64_t at_letter = t.size - BRACKET - 1, open = at_letter - BRACKET;
    if (t.data[open] != '.' || t.data[at_letter - 1] != ' ' || t.data[at_letter + 1] != ' ' || t.data[at_letter + 2] != '.')
        return false;
    *name = text_slice(t, 0, open - 1), *letter = text_slice(t, at_letter, at_letter + 1);
    return text_is_letter(letter->data[0]);
}

/* Returns true for a_n, and its name and its index as above. */
static bool is_indexed(const struct math *m, int x, tare_text *name, tare_text *letter)
{
    if (at(m, x)->op != OP_SYM) return false;
    const int s = at(m, x)->aux, n = m->symbol[s].n_name;
    const char *text = m->pool + m->symbol[s].name;
    if (n != 3 || text[1] != '_' || !text_is_letter(text[2])) return false;
    return *name = (tare_text){text, 1}, *letter = (tare_text){text + 2, 1}, true;
}

/* Returns pred with its letter renamed as in gold if they are f(x) = ... and f(t) = ...; else
 * pred. */
static int same_argument(struct math *m, int gold, int pred)
{
    tare_text f, g, x, t;
    if (at(m, gold)->n != 2 || at(m, pred)->n != 2 || relation_op(m, pred, 0) != R_EQ) return pred;
    const int left = kid(m, gold, 0), right = kid(m, pred, 0);
    if (!(is_application(m, left, &f, &x) && is_application(m, right, &g, &t)) &&
        !(is_indexed(m, left, &f, &x) && is_indexed(m, right, &g, &t)))
        return pred;
    if (!text_equal(f, g, false)) return pred;
    const int to = mk_sym(m, x.data, 1), from = mk_sym(m, t.data, 1);
    if (to < 0 || from < 0 || to == from) return pred;
    const int body = kid(m, pred, 1), value = substitute(m, body, at(m, from)->aux, to);
    /* f(t) = t + x; P(A) = 1 */
    if (substitute(m, body, at(m, to)->aux, mk_int(m, 0)) != body || value == body) return pred;
    return value < 0 ? pred : mk_rel(m, kid(m, gold, 0), R_EQ, value);
}

bool is_name(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    switch (a->op) {
    case OP_SYM:
    case OP_TEXT:
        return true;
    case OP_FUNC:
        if (a->aux == F_ABS || a->aux <= F_CSC) return is_name(m, kid(m, x, 0));
        if (a->aux != F_MAX && a->aux != F_MIN && a->aux != F_GCD && a->aux != F_LCM) return false;
        for (int i = 0; i < a->n; i++) /* gcd(a, b), max f */
            if (!is_name(m, kid(m, x, i))) return false;
        return true;
    case OP_INT:
        return true;
    case OP_SUM:
    case OP_PROD: /* computable expressions are compared */
        return a->flags & (NODE_VAR | NODE_OPAQUE);
    /* \sigma^2 */
    case OP_POW:
        /* \sec x */
        if (at(m, kid(m, x, 0))->op == OP_FUNC) return num_is(m, kid(m, x, 1), -1) && is_name(m, kid(m, x, 0));
        return num_is(m, kid(m, x, 1), 2) && at(m, kid(m, x, 0))->op == OP_SYM && symbol_is(m, kid(m, x, 0), "sigma");
    case OP_ADD: /* m + n: the requested quantity */
        for (int i = 0; i < a->n; i++)
            if (at(m, kid(m, x, i))->op != OP_SYM) return false;
        return a->n <= 8;
    case OP_TUPLE:
    case OP_RATIO:
    case OP_UNION:
    case OP_INTER:
    case OP_DIFF:
    case OP_MUL: /* (x, y); V_1 : V_2; A \cap B; AB or f(x) */
        if (a->n > 8) return false;
        for (int i = 0; i < a->n; i++) {
            const struct node *k = at(m, kid(m, x, i));
            if (k->op == OP_ADD) return false; /* a(b + c) */
            const bool letter = a->op == OP_MUL && k->op == OP_CONST && (k->aux == C_E || k->aux == C_I);
            if (!letter && !is_name(m, kid(m, x, i))) return false;
        }
        return true;
    default:
        return false;
    }
}

int relation_op(const struct math *m, int x, int i)
{
    return m->pool[at(m, x)->digits + i];
}

/* Returns true if members 0 .. last are equal for all values of their letters, as in x^2 - 4 = (x -
 * 2)(x + 2). */
static bool same_values(struct math *m, int x, int last)
{
    for (int i = 0; i <= last; i++)
        if (at(m, kid(m, x, i))->op > OP_DEG || at(m, kid(m, x, i))->flags & (NODE_SHAPE | NODE_PM | NODE_INF)) return false;
    for (int i = 0; i < last; i++)
        if (kid(m, x, i) != kid(m, x, i + 1) && identity_equal(m, kid(m, x, i), kid(m, x, i + 1)) != YES) return false;
    return true;
}

/* Returns true if two neighbours among the members first .. last are different numbers, as in 2 + 2
 * = 5. 2/3 = 0.667 counts as rounding. */
static bool is_refuted(struct math *m, int x, int first, int last)
{
    for (int i = first; i < last; i++) {
        const int a = kid(m, x, i), b = kid(m, x, i + 1);
        const int flags = at(m, a)->flags | at(m, b)->flags;
        if (at(m, a)->op > OP_DEG || at(m, b)->op > OP_DEG) continue;
        if (flags & (NODE_SHAPE | NODE_VAR | NODE_PM | NODE_INF | NODE_DEG | NODE_BOUND)) continue;
        if (flags & NODE_DECIMAL && numeric_close(m, a, b)) continue;
        const enum truth exact = a == b ? YES : exact_equal(m, a, b);
        bool undefined;
        if (exact == NO || (exact == UNKNOWN && numeric_refutes(m, a, b, &undefined) == NO)) return true;
    }
    return false;
}

/* Returns true for 4, -4 or 4/5. */
static bool is_numeral(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    if (a->op == OP_POW) return at(m, kid(m, x, 0))->op == OP_NUM && num_is(m, kid(m, x, 1), -1);
    for (int i = 0; i < a->n; i++)
        if (a->op != OP_MUL || at(m, kid(m, x, i))->op == OP_MUL || !is_numeral(m, kid(m, x, i))) return false;
    return a->op == OP_NUM || a->op == OP_MUL;
}

/* Returns the last member of a chain of equalities; also of x = 2 + 2 = 5, as in Math-Verify: an
 * error in the working. x = 4 = 5 has two values. */
bool relation_value(struct math *m, int x, int *lhs, int *value)
{
    const struct node *a = at(m, x);
    if (a->op != OP_REL) return false;
    int last = 0; /* members joined by = */
    while (last < a->n - 1 && relation_op(m, x, last) == R_EQ) last++;
    const bool tends = a->n == 2 && relation_op(m, x, 0) == R_TO; /* x \to 3 */
    for (int i = last; i < a->n - 1 && !tends; i++)
        if (relation_op(m, x, i) != R_APPROX && !(relation_op(m, x, i) == R_IN && a->n == 2)) return false;
    const int first = kid(m, x, 0);
    *lhs = is_name(m, first) ? first : -1;
    if (tends) { /* p \to q is a statement */
        *value = kid(m, x, 1);
        return *lhs >= 0 && (at(m, first)->op == OP_SYM || at(m, first)->op == OP_TUPLE) && at(m, *value)->op != OP_SYM;
    }
    if (a->n == 2 && relation_op(m, x, 0) == R_IN) return *value = kid(m, x, 1), *lhs >= 0;
    /* x \approx 14.3 */
    if (!last && a->n == 2 && at(m, first)->op == OP_SYM && !(at(m, kid(m, x, 1))->flags & NODE_VAR))
        return *lhs = first, *value = kid(m, x, 1), true;
    /* only approximations: use the exact value before them if they do approximate it */
    if (!last) {
        *value = first;
        *lhs = -1;
        for (int i = 1; i < a->n; i++)
            if (at(m, kid(m, x, i))->flags & (NODE_SHAPE | NODE_VAR) || at(m, first)->flags & (NODE_SHAPE | NODE_VAR) ||
                !numeric_close(m, first, kid(m, x, i)))
                return false;
        return true;
    }
    if (*lhs < 0 ? is_refuted(m, x, 0, last) : is_numeral(m, kid(m, x, 1)) && is_refuted(m, x, 1, last)) return false;
    *value = kid(m, x, last);
    /* 2x = f(x) */
    if (last == 1 && at(m, *value)->op == OP_TEXT && at(m, *value)->aux && at(m, first)->op != OP_TEXT) {
        *lhs = *value, *value = first;
        return true;
    }
    if (*lhs >= 0) return true;
    const bool open = at(m, *value)->flags & NODE_VAR;
    if (last == 1 && !(at(m, first)->flags & NODE_VAR) && is_name(m, *value)) { /* 5 = x */
        *lhs = *value, *value = first;
        return true;
    }
    if (!(at(m, first)->flags & NODE_VAR)) return !open; /* 55 + 55 = 110 */
    return last == a->n - 1 && same_values(m, x, last);
}

static int is_scalar(struct math *m, int x)
{
    if (x < 0) return -1;
    if (at(m, x)->op == OP_RATIO && at(m, x)->n == 2) return mk_div(m, kid(m, x, 0), kid(m, x, 1));
    if (at(m, x)->op == OP_UNIT || at(m, x)->op == OP_BASE) return kid(m, x, 0);
    return at(m, x)->op > OP_DEG || at(m, x)->flags & (NODE_SHAPE | NODE_PM | NODE_INF) ? -1 : x;
}

static enum truth set_truth_reason(struct math *m, enum truth t, const char *yes, const char *no)
{
    m->reason = t == YES ? yes : no;
    return t;
}

/* Multiplies x, a difference of sides, by the powers of letters in the denominators of its terms: y
 * - 1/x becomes x y - 1. */
static int without_denominators(struct math *m, int x)
{
    const struct node a = *at(m, x);
    int bases[4], n = 0;
    int64_t powers[4];
    for (int i = 0; i < (a.op == OP_ADD ? a.n : 1); i++) {
        const int term = a.op == OP_ADD ? kid(m, x, i) : x;
        const bool product = at(m, term)->op == OP_MUL;
        for (int j = 0; j < (product ? at(m, term)->n : 1); j++) {
            const int f = product ? kid(m, term, j) : term;
            int64_t power;
            int k = 0;
            if (at(m, f)->op != OP_POW || !(at(m, f)->flags & NODE_VAR) || !small_int(m, kid(m, f, 1), &power) || power >= 0)
                continue;
            while (k < n && bases[k] != kid(m, f, 0)) k++;
            if (k == 4) return x;
            if (k == n) bases[n] = kid(m, f, 0), powers[n++] = 0;
            if (-power > powers[k]) powers[k] = -power;
        }
    }
    for (int k = 0; k < n && x >= 0; k++) x = mk_mul(m, x, mk_pow(m, bases[k], mk_int(m, powers[k])));
    return x;
}

/* Compares a op b of one relation each by the differences of their sides. */
static enum truth compare_single(struct math *m, int gold, int pred)
{
    const int g = relation_op(m, gold, 0), p = relation_op(m, pred, 0);
    const int a = is_scalar(m, kid(m, gold, 0)), b = is_scalar(m, kid(m, gold, 1)), c = is_scalar(m, kid(m, pred, 0)),
              d = is_scalar(m, kid(m, pred, 1));
    const bool ordered = g >= R_LT && g <= R_GE;
    if (a < 0 || b < 0 || c < 0 || d < 0) return UNKNOWN;
    if (ordered != (p >= R_LT && p <= R_GE) || (!ordered && g != p)) return NO;
    if (ordered && (g == R_LE || g == R_GE) != (p == R_LE || p == R_GE)) return NO;
    if (!ordered && g != R_EQ && g != R_NE) return UNKNOWN;
    int G = mk_add(m, a, mk_neg(m, b)), P = mk_add(m, c, mk_neg(m, d)), sign;
    if (ordered && (g == R_LT || g == R_LE)) G = mk_neg(m, G);
    if (ordered && (p == R_LT || p == R_LE)) P = mk_neg(m, P);
    if (G < 0 || P < 0) return UNKNOWN;
    if (!((at(m, G)->flags & at(m, P)->flags) & NODE_VAR)) return UNKNOWN;
    math_alias(m, G, P);
    enum truth t = identity_proportional(m, P, G, &sign);
    if (t != YES && g == R_EQ) {
        const int whole = without_denominators(m, G), other = without_denominators(m, P);
        if (whole >= 0 && other >= 0 && (whole != G || other != P)) t = identity_proportional(m, other, whole, &sign);
    }
    math_alias(m, -1, -1);
    return t == YES && ordered ? (sign > 0 ? YES : NO) : t;
}

/* Orders members from the least to the greatest; false: mixed directions or other relations. */
bool relation_ascending(const struct math *m, int x, int *members, int *ops)
{
    const int n = at(m, x)->n;
    const int first = relation_op(m, x, 0);
    const bool down = first == R_GT || first == R_GE;
    for (int i = 0; i < n - 1; i++) {
        const int o = relation_op(m, x, i);
        if (down ? o != R_GT && o != R_GE : o != R_LT && o != R_LE) return false;
        ops[down ? n - 2 - i : i] = o == R_LE || o == R_GE;
    }
    for (int i = 0; i < n; i++) members[down ? n - 1 - i : i] = kid(m, x, i);
    return true;
}

static enum truth compare_chains(struct math *m, int gold, int pred)
{
    int a[32], b[32], oa[32], ob[32];
    const int n = at(m, gold)->n;
    if (!relation_ascending(m, gold, a, oa) || !relation_ascending(m, pred, b, ob)) {
        if (n != at(m, pred)->n) return NO;
        for (int i = 0; i < n; i++)
            if ((i < n - 1 && relation_op(m, gold, i) != relation_op(m, pred, i)) || !compare(m, kid(m, gold, i), kid(m, pred, i)))
                return NO;
        return YES;
    }
    bool same = n == at(m, pred)->n;
    for (int i = 0; i < n && same; i++) same = (i == n - 1 || oa[i] == ob[i]) && compare(m, a[i], b[i]);
    if (same) return YES;
    const int s = inequality_symbol(m, gold), t = inequality_symbol(m, pred);
    if (m->o.strict && s != t) return NO;
    const int x = relation_to_set(m, gold), y = relation_to_set(m, pred);
    return x >= 0 && y >= 0 ? compare_intervals(m, x, y) : NO;
}

/* Returns true for x_1 and x: one side numbers the solutions, the other does not. */
static bool same_unknown(const struct math *m, int a, int b)
{
    if (at(m, a)->op != OP_SYM || at(m, b)->op != OP_SYM || a == b) return false;
    const char *name[2];
    int base[2], size[2];
    for (int k = 0; k < 2; k++) {
        const int s = at(m, k ? b : a)->aux;
        name[k] = m->pool + m->symbol[s].name;
        base[k] = size[k] = m->symbol[s].n_name;
        for (int i = 0; i < size[k]; i++)
            if (name[k][i] == '_') base[k] = i;
        for (int i = base[k] + 1; i < size[k]; i++)
            if (!text_is_digit(name[k][i]) && name[k][i] != ',') return false;
    }
    return base[0] == base[1] && (base[0] == size[0]) != (base[1] == size[1]) && !memcmp(name[0], name[1], (size_t)base[0]);
}

/* Writes the capitals of AB or \overline{AB} in alphabetical order to out; 0: another name. */
static int segment_letters(const struct math *m, int x, char out[4])
{
    static const char bar[] = "\\overline{";
    const struct node *a = at(m, x);
    int n = 0;
    if (a->op == OP_SYM) {
        const char *name = m->pool + m->symbol[a->aux].name;
        const int front = (int)sizeof bar - 1, letters = m->symbol[a->aux].n_name - front;
        if (letters < 2 || letters > 3 || memcmp(name, bar, sizeof bar - 1)) return 0;
        for (; n < letters; n++) out[n] = name[front + n];
    } else if (a->op == OP_MUL && a->n <= 3) {
        for (; n < a->n; n++) {
            const struct node *k = at(m, kid(m, x, n));
            if (k->op != OP_SYM || m->symbol[k->aux].n_name != 1) return 0;
            out[n] = m->pool[m->symbol[k->aux].name];
        }
    }
    for (int i = 0; i < n; i++)
        for (int k = i; k > 0 && out[k] < out[k - 1]; k--) {
            const char c = out[k];
            out[k] = out[k - 1], out[k - 1] = c;
        }
    for (int i = 0; i < n; i++)
        if (out[i] < 'A' || out[i] > 'Z') return 0;
    return n;
}

/* Returns true for a name and its application: P and P(A), f and f(2). */
static bool applied_name(const struct math *m, int name, int application)
{
    const struct node *a = at(m, name), *b = at(m, application);
    if (a->op != OP_SYM || b->op != OP_TEXT || b->aux != TEXT_NAME) return false;
    const int n = m->symbol[a->aux].n_name;
    return b->n_digits > n && m->pool[b->digits + n] == ' ' &&
           !memcmp(m->pool + b->digits, m->pool + m->symbol[a->aux].name, (size_t)n);
}

bool same_segment(const struct math *m, int a, int b)
{
    char x[4], y[4];
    const int n = segment_letters(m, a, x);
    return n == 2 && segment_letters(m, b, y) == n && !memcmp(x, y, (size_t)n);
}

/* Returns true for y and f(x): the equation of a curve, and its function. */
static bool is_curve(const struct math *m, int y, int application)
{
    const struct node *a = at(m, y), *b = at(m, application);
    if (a->op != OP_SYM || m->symbol[a->aux].n_name != 1 || m->pool[m->symbol[a->aux].name] != 'y') return false;
    tare_text name, letter;
    return b->op == OP_TEXT && is_application(m, application, &name, &letter) && letter.data[0] == 'x';
}

static bool same_name(const struct math *m, int a, int b)
{
    const int op = at(m, a)->op;
    if ((op == OP_UNION || op == OP_INTER) && at(m, b)->op == op && kid(m, a, 0) == kid(m, b, 1) && kid(m, a, 1) == kid(m, b, 0))
        return true;
    char x[4], y[4];
    const int n = segment_letters(m, a, x);
    if (n && n == segment_letters(m, b, y) && !memcmp(x, y, (size_t)n)) return true;
    if (is_curve(m, a, b) || is_curve(m, b, a)) return true;
    return applied_name(m, a, b) || applied_name(m, b, a);
}

enum truth compare_relations(struct math *m, int gold, int pred)
{
    int la, va, lb, vb;
    pred = same_argument(m, gold, pred);
    if (pred < 0) return UNKNOWN;
    const bool a = relation_value(m, gold, &la, &va), b = relation_value(m, pred, &lb, &vb);
    if (a && b) {
        if (la < 0 || lb < 0 || same_unknown(m, la, lb) || same_name(m, la, lb))
            return set_truth_reason(m, compare(m, va, vb) ? YES : NO, "equal values", "different values");
        if (la == lb || (at(m, la)->op <= OP_DEG && at(m, lb)->op <= OP_DEG && decide(m, la, lb)) ||
            (at(m, la)->op > OP_DEG && at(m, la)->op == at(m, lb)->op && compare(m, la, lb)))
            return set_truth_reason(m, compare(m, va, vb) ? YES : NO, "the same assignment", "different values assigned");
    }
    enum truth t = UNKNOWN;
    if (at(m, gold)->n == 2 && at(m, pred)->n == 2) t = compare_single(m, gold, pred);
    if (t == UNKNOWN) t = compare_chains(m, gold, pred);
    return set_truth_reason(m, t, "equivalent relations", "relations that are not equivalent");
}
