#include "math.h"

#include <stdlib.h>
#include <string.h>

bool math_alloc(struct math *m)
{
    m->nodes = malloc(MAX_NODES * sizeof *m->nodes);
    m->kids = malloc(MAX_KIDS * sizeof *m->kids);
    m->table = calloc(TABLE, sizeof *m->table);
    m->pool = malloc(MAX_POOL);
    m->tokens = malloc(MAX_TOKENS * sizeof *m->tokens);
    m->buffer = malloc(4 * MAX_ANSWER + 64);
    m->scratch = malloc(8 * MAX_ANSWER + 64);
    return m->nodes && m->kids && m->table && m->pool && m->tokens && m->buffer && m->scratch;
}

void math_release(struct math *m)
{
    values_release(m);
    free(m->nodes), free(m->kids), free(m->table), free(m->pool), free(m->tokens), free(m->buffer), free(m->scratch),
        free(m->clean);
}

void math_reset(struct math *m)
{
    values_reset(m);
    for (int i = 0; i < m->n_nodes; i++) { /* only the slots in use: most answers have few nodes */
        uint32_t slot = m->nodes[i].hash % TABLE;
        while (m->table[slot]) {
            m->table[slot] = 0;
            slot = (slot + 1) % TABLE;
        }
    }
    m->n_nodes = m->n_kids = m->n_pool = m->n_symbols = m->n_limits = 0;
    m->integrals = false;
    m->steps = MAX_STEPS;
    memset(m->alias, 0, sizeof m->alias);
}

int pool_add(struct math *m, const char *s, int64_t n)
{
    if (n > MAX_POOL - m->n_pool) return -1;
    if (n) memcpy(m->pool + m->n_pool, s, (size_t)n);
    m->n_pool += (int32_t)n;
    return m->n_pool - (int32_t)n;
}

static uint32_t mix_hash(uint32_t h, uint32_t x)
{
    h = (h ^ x) * 0x9E3779B1U;
    return h ^ h >> 15;
}

static uint16_t own_flags(int op, int aux)
{
    switch (op) {
    case OP_SYM:
        return NODE_VAR;
    case OP_CONST:
        return aux == C_PI || aux == C_E ? NODE_TRANS : aux == C_INF ? NODE_INF : aux > C_UNDEFINED ? NODE_SHAPE : 0;
    case OP_FUNC:
        if (aux == F_GCD || aux == F_LCM) return NODE_DISCRETE | NODE_OPAQUE;
        return (uint16_t)(aux < F_ABS ? NODE_TRANS : aux == F_ABS ? 0 : NODE_DISCRETE);
    case OP_FACT:
    case OP_BINOM:
    case OP_MOD:
    case OP_SUM:
    case OP_PROD:
        return NODE_DISCRETE;
    case OP_PM:
        return NODE_PM;
    case OP_DEG:
        return NODE_DEG;
    default:
        return op > OP_DEG ? NODE_SHAPE : 0;
    }
}

static int intern_node(struct math *m, const struct node *key, const int *kids, const char *text)
{
    uint32_t h = mix_hash(mix_hash((uint32_t)key->op, (uint32_t)key->aux), (uint32_t)key->exp ^ (uint32_t)(key->exp >> 32));
    for (int i = 0; i < key->n; i++) h = mix_hash(h, (uint32_t)kids[i]);
    for (int i = 0; i < key->n_digits; i++) h = mix_hash(h, (unsigned char)text[i]);
    uint32_t slot = h % TABLE;
    for (; m->table[slot]; slot = (slot + 1) % TABLE) {
        const int i = m->table[slot] - 1;
        const struct node *x = &m->nodes[i];
        if (x->hash == h && x->op == key->op && x->aux == key->aux && x->exp == key->exp && x->n == key->n &&
            x->n_digits == key->n_digits && (!x->n || !memcmp(m->kids + x->first, kids, (size_t)x->n * sizeof *kids)) &&
            (!x->n_digits || !memcmp(m->pool + x->digits, text, (size_t)x->n_digits)))
            return i;
    }
    if (m->n_nodes == MAX_NODES || key->n > MAX_KIDS - m->n_kids) return -1;
    struct node x = *key;
    x.hash = h;
    x.first = m->n_kids;
    x.digits = x.n_digits ? pool_add(m, text, x.n_digits) : 0;
    if (x.digits < 0) return -1;
    x.flags |= own_flags(x.op, x.aux);
    for (int i = 0; i < x.n; i++) {
        m->kids[m->n_kids++] = kids[i];
        x.flags |= m->nodes[kids[i]].flags;
    }
    if (x.op > OP_DEG) x.flags |= NODE_SHAPE;
    /* in a limit: infinite values are not allowed */
    if ((x.op == OP_SUM || x.op == OP_PROD) && x.flags & NODE_INF) x.flags = (uint16_t)((x.flags & ~NODE_INF) | NODE_OPAQUE);
    if (x.op == OP_SYM && m->pool[m->symbol[x.aux].name] == '#') x.flags = NODE_BOUND;
    if ((x.op == OP_SUM || x.op == OP_PROD) && m->pool[m->symbol[at(m, kids[0])->aux].name + 1] == '1')
        x.flags &= (uint16_t)~NODE_BOUND; /* the outermost sum */
    m->nodes[m->n_nodes] = x;
    m->table[slot] = m->n_nodes + 1;
    return m->n_nodes++;
}

int mk_text(struct math *m, enum op op, int aux, const int *kids, int n, tare_text text)
{
    for (int i = 0; i < n; i++)
        if (kids[i] < 0) return -1;
    const struct node key = {.op = (uint8_t)op, .aux = aux, .n = n, .n_digits = (int32_t)text.size};
    return intern_node(m, &key, kids, text.data);
}

int mk(struct math *m, enum op op, int aux, const int *kids, int n)
{
    return mk_text(m, op, aux, kids, n, (tare_text){0});
}

int mk_rel(struct math *m, int left, enum rel sign, int right)
{
    return mk_text(m, OP_REL, 0, (int[]){left, right}, 2, (tare_text){&(char){(char)sign}, 1});
}

int mk_named(struct math *m, const char *name, const int *kids, int n)
{
    return mk_text(m, OP_TUPLE, 8, kids, n, (tare_text){name, (int64_t)strlen(name)});
}

int mk_unit(struct math *m, int x, tare_text unit)
{
    return mk_text(m, OP_UNIT, 0, &x, 1, unit);
}

int mk_again(struct math *m, const struct node *a, const int *kids)
{
    if (a->op != OP_ADD && a->op != OP_MUL)
        return mk_text(m, (enum op)a->op, a->aux, kids, a->n, (tare_text){m->pool + a->digits, a->n_digits});
    int r = kids[0];
    for (int i = 1; i < a->n; i++) r = a->op == OP_ADD ? mk_add(m, r, kids[i]) : mk_mul(m, r, kids[i]);
    return r;
}

int mk_num(struct math *m, bool negative, const char *digits, int64_t n, int64_t exp)
{
    while (n && digits[0] == '0') digits++, n--;
    while (n && digits[n - 1] == '0') n--, exp++;
    if (!n) exp = 0, negative = false;
    const struct node key = {.op = OP_NUM, .aux = negative, .n_digits = (int32_t)n, .exp = exp};
    return intern_node(m, &key, NULL, digits);
}

int mk_int(struct math *m, int64_t x)
{
    char digits[24];
    int n = 24;
    for (uint64_t v = x < 0 ? 0 - (uint64_t)x : (uint64_t)x; v; v /= 10) digits[--n] = (char)('0' + v % 10);
    return mk_num(m, x < 0, digits + n, 24 - n, 0);
}

int mk_sym(struct math *m, const char *name, int64_t n)
{
    int s = 0;
    while (s < m->n_symbols && !(m->symbol[s].n_name == n && !memcmp(m->pool + m->symbol[s].name, name, (size_t)n))) s++;
    if (s == m->n_symbols) {
        if (s == MAX_SYMBOLS) return -1;
        const int offset = pool_add(m, name, n);
        if (offset < 0) return -1;
        m->symbol[s].name = offset;
        m->symbol[s].n_name = (int32_t)n;
        m->n_symbols++;
    }
    return mk(m, OP_SYM, s, NULL, 0);
}

int mk_const(struct math *m, enum constant c)
{
    return mk(m, OP_CONST, (int)c, NULL, 0);
}

bool small_int(const struct math *m, int x, int64_t *out)
{
    const struct node *a = at(m, x);
    if (a->op != OP_NUM || a->exp < 0 || a->n_digits + a->exp > 18) return false;
    int64_t v = 0;
    for (int i = 0; i < a->n_digits; i++) v = v * 10 + (m->pool[a->digits + i] - '0');
    for (int64_t i = 0; i < a->exp; i++) v *= 10;
    *out = a->aux ? -v : v;
    return true;
}

bool num_is(const struct math *m, int x, int64_t value)
{
    int64_t v;
    return x >= 0 && small_int(m, x, &v) && v == value;
}

/* ---------------------------------------------------------------- sums and products: flat, in one
 * order */

static int matrix_map(struct math *m, int a, int b, bool add)
{
    const struct node x = *at(m, a);
    int out[256];
    if (x.n > 256) return -1;
    for (int i = 0; i < x.n; i++) out[i] = add ? mk_add(m, kid(m, a, i), kid(m, b, i)) : mk_mul(m, kid(m, a, i), b);
    return mk(m, OP_MATRIX, x.aux, out, x.n);
}

static int flatten_kids(struct math *m, enum op op, int a, int b)
{
    int small[64];
    const int na = at(m, a)->op == op ? at(m, a)->n : 1, nb = at(m, b)->op == op ? at(m, b)->n : 1, n = na + nb;
    int *all = n <= 64 ? small : malloc((size_t)n * sizeof *all);
    if (!all) return -1;
    for (int i = 0; i < na; i++) all[i] = at(m, a)->op == op ? kid(m, a, i) : a;
    for (int i = 0; i < nb; i++) all[na + i] = at(m, b)->op == op ? kid(m, b, i) : b;
    for (int i = na > 1 && nb == 1 ? na : 1; i < n; i++) { /* nested kids are already sorted */
        const int x = all[i];
        int k = i;
        while (k > 0 && all[k - 1] > x) all[k] = all[k - 1], k--;
        all[k] = x;
    }
    const int out = mk(m, op, 0, all, n);
    if (all != small) free(all);
    return out;
}

int mk_add(struct math *m, int a, int b)
{
    if (a < 0 || b < 0) return -1;
    const struct node *x = at(m, a), *y = at(m, b);
    if (x->op == OP_MATRIX && y->op == OP_MATRIX) return x->n == y->n && x->aux == y->aux ? matrix_map(m, a, b, true) : -1;
    if (x->op == OP_NUM && !x->n_digits) return b;
    if (y->op == OP_NUM && !y->n_digits) return a;
    return flatten_kids(m, OP_ADD, a, b);
}

int mk_mul(struct math *m, int a, int b)
{
    if (a < 0 || b < 0) return -1;
    if (at(m, a)->op == OP_MATRIX && at(m, b)->op == OP_MATRIX) return matrix_product(m, a, b);
    if (at(m, a)->op == OP_MATRIX && !(at(m, b)->flags & NODE_SHAPE)) return matrix_map(m, a, b, false);
    if (at(m, b)->op == OP_MATRIX && !(at(m, a)->flags & NODE_SHAPE)) return matrix_map(m, b, a, false);
    if (num_is(m, a, 1)) return b;
    if (num_is(m, b, 1)) return a;
    if (num_is(m, a, -1) && at(m, b)->op == OP_NUM) return mk_neg(m, b);
    return flatten_kids(m, OP_MUL, a, b);
}

int mk_neg(struct math *m, int a)
{
    if (a < 0) return -1;
    const struct node x = *at(m, a);
    if (x.op == OP_NUM) {
        const struct node key = {.op = OP_NUM, .aux = x.n_digits && !x.aux, .n_digits = x.n_digits, .exp = x.exp};
        return intern_node(m, &key, NULL, m->pool + x.digits);
    }
    return mk_mul(m, mk_int(m, -1), a);
}

int mk_pow(struct math *m, int a, int b)
{
    if (a < 0 || b < 0) return -1;
    if (num_is(m, b, 1)) return a;
    if (at(m, a)->op == OP_MATRIX || (at(m, a)->op == OP_TUPLE && !(at(m, a)->aux & 8) && is_transpose(m, b)))
        return matrix_power(m, a, b);
    return mk(m, OP_POW, 0, (int[]){a, b}, 2);
}

int mk_div(struct math *m, int a, int b)
{
    if (a < 0 || b < 0) return -1;
    return num_is(m, b, 1) ? a : mk_mul(m, a, mk_pow(m, b, mk_int(m, -1)));
}

int mk_root(struct math *m, int a, int64_t index)
{
    if (a < 0) return -1;
    if (index % 2 && index > 2) return mk(m, OP_ROOT, 0, (int[]){a, mk_int(m, index)}, 2);
    return mk_pow(m, a, mk_pow(m, mk_int(m, index), mk_int(m, -1)));
}

int substitute(struct math *m, int x, int s, int value)
{
    if (x < 0 || value < 0) return -1;
    const struct node a = *at(m, x);
    if (a.op == OP_SYM) return a.aux == s ? value : x;
    if (!(a.flags & NODE_VAR)) return x;
    int out[64] = {0};
    if (a.n > 64) return -1;
    for (int i = 0; i < a.n; i++)
        if ((out[i] = substitute(m, kid(m, x, i), s, value)) < 0) return -1;
    return mk_again(m, &a, out);
}

int mk_func(struct math *m, enum func f, int a)
{
    return mk(m, OP_FUNC, (int)f, &a, 1);
}

int mk_func2(struct math *m, enum func f, int a, int b)
{
    return mk(m, OP_FUNC, (int)f, (int[]){a, b}, 2);
}

int pm_expand(struct math *m, int x, int sign)
{
    if (x < 0 || !(at(m, x)->flags & NODE_PM)) return x;
    const struct node a = *at(m, x);
    int out[128] = {0};
    if (a.n > 128) return -1;
    for (int i = 0; i < a.n; i++)
        if ((out[i] = pm_expand(m, kid(m, x, i), sign)) < 0) return -1;
    if (a.op == OP_PM) return mk_add(m, out[0], sign == a.aux ? out[1] : mk_neg(m, out[1]));
    return mk_again(m, &a, out);
}
