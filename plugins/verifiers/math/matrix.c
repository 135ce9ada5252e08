/* Arithmetic of matrices of expressions while parsing: sums, products, powers, transposes,
 * inverses, determinants. */
#include "parser.h"

enum { MAX_ENTRIES = 256, MAX_INVERSE = 4 };

static bool is_matrix(const struct math *m, int x)
{
    return x >= 0 && at(m, x)->op == OP_MATRIX;
}

static int row_count(const struct math *m, int x)
{
    return at(m, x)->n / at(m, x)->aux;
}

static int multiply_matrices(struct math *m, int a, int b)
{
    const int n = row_count(m, a), k = at(m, a)->aux, c = at(m, b)->aux;
    int out[MAX_ENTRIES];
    if (k != row_count(m, b) || n * c > MAX_ENTRIES) return -1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < c; j++) {
            int sum = mk_int(m, 0);
            for (int t = 0; t < k; t++) sum = mk_add(m, sum, mk_mul(m, kid(m, a, i * k + t), kid(m, b, t * c + j)));
            out[i * c + j] = sum;
        }
    return n * c == 1 ? out[0] : mk(m, OP_MATRIX, c, out, n * c);
}

static int transpose_matrix(struct math *m, int a)
{
    const int n = row_count(m, a), c = at(m, a)->aux;
    int out[MAX_ENTRIES];
    if (n * c > MAX_ENTRIES) return -1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < c; j++) out[j * n + i] = kid(m, a, i * c + j);
    return mk(m, OP_MATRIX, n, out, n * c);
}

int matrix_determinant(struct math *m, const int *a, int n)
{
    if (n == 1) return a[0];
    if (n > MAX_INVERSE) return -1;
    int sum = mk_int(m, 0), minor[(MAX_INVERSE - 1) * (MAX_INVERSE - 1)];
    for (int c = 0; c < n; c++) {
        int k = 0;
        for (int i = 1; i < n; i++)
            for (int j = 0; j < n; j++)
                if (j != c) minor[k++] = a[i * n + j];
        const int term = mk_mul(m, a[c], matrix_determinant(m, minor, n - 1));
        sum = mk_add(m, sum, c % 2 ? mk_neg(m, term) : term);
    }
    return sum;
}

int matrix_det(struct math *m, int a)
{
    int entries[MAX_INVERSE * MAX_INVERSE];
    if (!is_matrix(m, a) || at(m, a)->n > MAX_INVERSE * MAX_INVERSE || at(m, a)->aux != row_count(m, a)) return -1;
    for (int i = 0; i < at(m, a)->n; i++) entries[i] = kid(m, a, i);
    return matrix_determinant(m, entries, at(m, a)->aux);
}

/* Computes the adjugate over the determinant. */
static int inverse_matrix(struct math *m, int a)
{
    const int n = at(m, a)->aux, det = matrix_det(m, a);
    int out[MAX_INVERSE * MAX_INVERSE], minor[MAX_INVERSE * MAX_INVERSE];
    if (det < 0 || n < 2) return -1;
    for (int r = 0; r < n; r++)
        for (int c = 0; c < n; c++) {
            int k = 0;
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++)
                    if (i != r && j != c) minor[k++] = kid(m, a, i * n + j);
            const int cofactor = matrix_determinant(m, minor, n - 1);
            out[c * n + r] = mk_div(m, (r + c) % 2 ? mk_neg(m, cofactor) : cofactor, det);
        }
    return mk(m, OP_MATRIX, n, out, n * n);
}

int matrix_product(struct math *m, int a, int b)
{
    return is_matrix(m, a) && is_matrix(m, b) ? multiply_matrices(m, a, b) : -1;
}

bool is_transpose(const struct math *m, int exponent)
{
    const struct node *e = at(m, exponent);
    if (e->op != OP_SYM) return false;
    const char *name = m->pool + m->symbol[e->aux].name;
    const int n = m->symbol[e->aux].n_name;
    return (n == 1 && (*name == 'T' || *name == 't')) || (n == 3 && name[0] == 't' && name[1] == 'o');
}

/* Returns a tuple as a column: (1, 2)^T. */
static int column_of(struct math *m, int a)
{
    int out[MAX_ENTRIES];
    const int n = at(m, a)->n;
    if (n > MAX_ENTRIES) return -1;
    for (int i = 0; i < n; i++) out[i] = kid(m, a, i);
    return mk(m, OP_MATRIX, 1, out, n);
}

int matrix_power(struct math *m, int a, int exponent)
{
    int64_t k;
    if (is_transpose(m, exponent))
        return at(m, a)->op == OP_TUPLE ? column_of(m, a) : is_matrix(m, a) ? transpose_matrix(m, a) : -1;
    if (!is_matrix(m, a)) return -1;
    if (!small_int(m, exponent, &k) || at(m, a)->aux != row_count(m, a) || k < -8 || k > 16 || !k) return -1;
    const int base = k < 0 ? inverse_matrix(m, a) : a;
    int x = base;
    for (int64_t i = 1; i < (k < 0 ? -k : k) && x >= 0; i++) x = multiply_matrices(m, x, base);
    return x;
}
