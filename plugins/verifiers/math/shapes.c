/* One vector or matrix in several notations: rows in brackets, a column and a tuple, unit vectors
 * i, j, k. */
#include "math.h"

enum { MAX_ENTRIES = 256 };

/* Returns [[1, 2], [3, 4]] or [1, 2; 3, 4] as a matrix; -1: not such a list of rows. */
static int rows_in_brackets(struct math *m, int x)
{
    const struct node *a = at(m, x);
    int entries[MAX_ENTRIES], n = 0;
    if (a->op != OP_TUPLE || a->aux != 3 || !a->n) return -1;
    const int columns = at(m, kid(m, x, 0))->n;
    for (int i = 0; i < a->n; i++) {
        const int row = kid(m, x, i);
        if (at(m, row)->op != OP_TUPLE || at(m, row)->n != columns || n + columns > MAX_ENTRIES) return -1;
        for (int k = 0; k < columns; k++) entries[n++] = kid(m, row, k);
    }
    return mk(m, OP_MATRIX, columns, entries, n);
}

/* Returns x as a matrix of one column if it is a tuple and not a half-open interval. */
static int as_column(struct math *m, int x)
{
    const struct node *a = at(m, x);
    int entries[MAX_ENTRIES];
    if (a->op != OP_TUPLE || (a->aux && a->aux != 3) || a->n > MAX_ENTRIES) return -1;
    for (int i = 0; i < a->n; i++) entries[i] = kid(m, x, i);
    return mk(m, OP_MATRIX, 1, entries, a->n);
}

/* Returns i + 2j as (1, 2) with n entries, from the unit vectors' symbols; -1: it has none, or is
 * not a sum of their multiples. */
static int in_entries(struct math *m, int x, int n)
{
    static const char *const names[] = {"\\hat{i}", "\\hat{j}", "\\hat{k}"};
    int entries[3], sum = mk_int(m, 0), symbols[3];
    bool any = false;
    if (n < 2 || n > 3 || at(m, x)->op > OP_DEG || !(at(m, x)->flags & NODE_VAR)) return -1;
    for (int k = 0; k < 3; k++) {
        int y = x;
        for (int l = 0; l < 3; l++) {
            symbols[l] = mk_sym(m, names[l], 7);
            if (symbols[l] < 0 || (y = substitute(m, y, at(m, symbols[l])->aux, mk_int(m, k == l))) < 0) return -1;
        }
        entries[k] = y;
    }
    for (int k = 0; k < 3; k++) {
        any |= !num_is(m, entries[k], 0);
        sum = mk_add(m, sum, mk_mul(m, entries[k], symbols[k]));
    }
    if (!any || sum < 0 || (n == 2 && !decide(m, entries[2], mk_int(m, 0))) || !decide(m, x, sum)) return -1;
    return mk(m, OP_TUPLE, 0, entries, n);
}

/* Returns true for I or I_n. */
static bool is_identity_name(const struct math *m, int x, int n)
{
    const int s = at(m, x)->aux, size = m->symbol[s].n_name;
    const char *name = m->pool + m->symbol[s].name;
    return name[0] == 'I' && (size == 1 || (size == 3 && name[1] == '_' && name[2] == '0' + n));
}

static int identity_matrix(struct math *m, int n)
{
    int entries[MAX_ENTRIES];
    if (n * n > MAX_ENTRIES) return -1;
    for (int i = 0; i < n * n; i++) entries[i] = mk_int(m, i % (n + 1) == 0);
    return mk(m, OP_MATRIX, n, entries, n * n);
}

/* Rewrites gold or pred in the notation of the other; false: no change. */
bool same_notation(struct math *m, int *gold, int *pred)
{
    int *sides[2] = {gold, pred};
    /* [[1, 2], [3, 4]] and [1, 2; 3, 4] */
    if (at(m, *gold)->op == OP_TUPLE && at(m, *pred)->op == OP_TUPLE) {
        const int x = rows_in_brackets(m, *gold), y = x < 0 ? -1 : rows_in_brackets(m, *pred);
        return y >= 0 && (*gold = x, *pred = y, true);
    }
    for (int k = 0; k < 2; k++) {
        const struct node a = *at(m, *sides[k]), b = *at(m, *sides[!k]);
        int x = -1;
        if (k == 0 && b.op == OP_BINOM && a.op == OP_MATRIX && a.aux == 1 && a.n == 2)
            x = mk(m, OP_MATRIX, 1, (int[]){kid(m, *sides[!k], 0), kid(m, *sides[!k], 1)}, 2);
        else if (a.op == OP_MATRIX && b.op == OP_SYM && is_identity_name(m, *sides[!k], a.aux))
            x = identity_matrix(m, a.aux);
        else if (a.op == OP_MATRIX && b.op == OP_TUPLE)
            x = a.aux == 1 && a.n > 1 ? as_column(m, *sides[!k]) : rows_in_brackets(m, *sides[!k]);
        else if ((a.op == OP_TUPLE || (a.op == OP_MATRIX && a.aux == 1)) && b.op <= OP_DEG)
            x = in_entries(m, *sides[!k], a.n);
        if (x >= 0 && a.op == OP_MATRIX && at(m, x)->op == OP_TUPLE) x = as_column(m, x);
        if (x >= 0) return *sides[!k] = x, true;
    }
    return false;
}
