/* Products of vectors and matrices that are only named keep their order: \vec u \times \vec v,
 * \mathbf{A}\mathbf{B}, and the capitals of an answer that transposes or inverts some of them. A
 * product of such letters is a word, represented by one symbol named after its factors, so the same
 * word is the same symbol on both sides. Everything else commutes with it. Sums are expanded, and
 *   (AB)^T = B^T A^T,   (AB)^{-1} = B^{-1} A^{-1},   u . v = v . u,   u x v = -(v x u).
 */
#include "parser.h"

#include <string.h>

enum { MOST_POWER = 9, MOST_SUM_POWER = 3, MOST_VISITS = 500 };

static const char *name_of(const struct math *m, int symbol)
{
    return m->pool + m->symbol[symbol].name;
}

static bool is_letter(const struct token *t, const struct math *m, bool capital)
{
    return t->kind == T_SYM && t->n_text == 1 && (!capital || (m->pool[t->text] >= 'A' && m->pool[t->text] <= 'Z'));
}

/* Matches a ^ at i with T or \top, or -1; returns 0 for others. *end: the position after it. */
static char read_superscript(const struct math *m, int i, int *end)
{
    const struct token *t = m->tokens + i + 1;
    const int brace = t->kind == T_LBRACE, minus = t[brace].kind == T_MINUS;
    const struct token *last = t + brace + minus;
    *end = i + 1 + brace + minus + 1 + brace;
    if (brace && (last->kind == T_END || last[1].kind != T_RBRACE)) return 0;
    if (minus) return last->kind == T_NUM && last->n_text == 1 && m->pool[last->text] == '1' ? '-' : 0;
    if (last->kind != T_SYM) return 0;
    const char *s = m->pool + last->text;
    return (last->n_text == 1 && *s == 'T') || (last->n_text == 3 && !memcmp(s, "top", 3)) ? 'T' : 0;
}

static bool mark_ordered(struct parser *p, const struct token *t, bool matrix)
{
    const int x = mk_sym(p->m, p->m->pool + t->text, t->n_text);
    if (x < 0) return false;
    const uint64_t bit = 1ULL << at(p->m, x)->aux;
    p->ordered.letters |= bit;
    if (matrix) p->ordered.matrices |= bit;
    return true;
}

/* Finds the letters that keep their order: bold letters and those with an arrow; if anything is
 * transposed, these and all capitals; if all letters are capitals, at least two, and anything is
 * inverted, all of them. */
void find_ordered(struct parser *p)
{
    const struct math *m = p->m;
    bool transposed = false, inverted = false, capitals = true;
    int first = -1, second = -1, end = 0;
    for (int i = 0; i < m->n_tokens; i++) {
        const struct token *t = &m->tokens[i];
        if (t->kind == T_SYM && t->aux == SYM_ORDERED && !mark_ordered(p, t, false)) return;
        if (t->kind == T_CARET && i) {
            const char power = read_superscript(m, i, &end);
            const bool base = is_letter(t - 1, m, false) || t[-1].kind == T_RPAREN;
            transposed |= base && power == 'T', inverted |= base && power == '-';
            if (power) i = end - 1;
        } else if (is_letter(t, m, true)) {
            const char c = m->pool[t->text];
            if (first < 0)
                first = c;
            else if (c != first)
                second = c;
        } else {
            capitals &= t->kind != T_SYM && t->kind != T_CONST && t->kind != T_FUNC && t->kind != T_UNIT;
        }
    }
    if (!(transposed && first >= 0) && !(inverted && capitals && second >= 0)) return;
    for (int i = 0; i < m->n_tokens; i++) {
        const struct token *t = &m->tokens[i];
        const char power = t->kind == T_CARET ? read_superscript(m, i, &end) : 0;
        const struct token *letter = power == 'T' && i && is_letter(t - 1, m, false) ? t - 1 : is_letter(t, m, true) ? t : NULL;
        if (power) i = end - 1;
        if (letter && !mark_ordered(p, letter, true)) return;
    }
}

static bool has_letters(const struct parser *p, int x, int *visits)
{
    const struct node *a = at(p->m, x);
    if (!(a->flags & NODE_VAR)) return false;
    if (++*visits > MOST_VISITS) return true;
    if (a->op == OP_SYM) return p->ordered.letters >> a->aux & 1;
    for (int i = 0; i < a->n; i++)
        if (has_letters(p, kid(p->m, x, i), visits)) return true;
    return false;
}

static bool is_ordered(const struct parser *p, int x)
{
    int visits = 0;
    return p->ordered.letters && x >= 0 && has_letters(p, x, &visits);
}

/* Splits x into coefficient * word; false: another form. */
static bool split_word(const struct parser *p, int x, int *coefficient, struct word_of_letters *w)
{
    struct math *m = p->m;
    const struct node a = *at(m, x);
    int64_t power = 1;
    if (a.op == OP_MUL) {
        int c = mk_int(m, 1), inner = -1;
        for (int i = 0; i < a.n; i++) {
            const int k = kid(m, x, i);
            if (!is_ordered(p, k))
                c = mk_mul(m, c, k);
            else if (inner >= 0)
                return false;
            else
                inner = k;
        }
        if (inner < 0 || at(m, inner)->op == OP_MUL || !split_word(p, inner, coefficient, w)) return false;
        *coefficient = mk_mul(m, c, *coefficient);
        return *coefficient >= 0;
    }
    const int base = a.op == OP_POW ? kid(m, x, 0) : x;
    if (at(m, base)->op != OP_SYM) return false;
    if (base != x && (!small_int(m, kid(m, x, 1), &power) || !power || power > MOST_POWER || power < -MOST_POWER)) return false;
    const int symbol = at(m, base)->aux;
    *coefficient = mk_int(m, 1);
    *w = (struct word_of_letters){.n = 1, .f = {{.symbol = symbol, .power = (int8_t)power}}};
    for (int i = 0; i < p->ordered.n_words && base == x; i++)
        if (p->ordered.words[i].symbol == symbol) *w = p->ordered.words[i];
    return true;
}

/* Appends a factor: A A is A^2, and A A^{-1} cancels. */
static bool append_factor(struct word_of_letters *w, struct factor f)
{
    struct factor *last = w->n ? &w->f[w->n - 1] : NULL;
    if (last && last->symbol == f.symbol && last->transposed == f.transposed) {
        const int power = last->power + f.power;
        if (power > MOST_POWER || power < -MOST_POWER) return false;
        last->power = (int8_t)power;
        w->n -= !power;
        return true;
    }
    if (w->n == WORD_FACTORS) return false;
    w->f[w->n++] = f;
    return true;
}

static int too_long(struct parser *p)
{
    return parse_fail(p, "a product of vectors or matrices that cannot be read");
}

/* Returns the node of a word. */
static int word_node(struct parser *p, struct word_of_letters *w)
{
    struct math *m = p->m;
    char name[200];
    int n = 0;
    if (!w->n) return mk_int(m, 1);
    if (w->n == 1 && !w->f[0].transposed) return mk_pow(m, mk(m, OP_SYM, w->f[0].symbol, NULL, 0), mk_int(m, w->f[0].power));
    for (int i = 0; i < w->n; i++) {
        const struct factor f = w->f[i];
        const int size = m->symbol[f.symbol].n_name;
        if (n + size + 6 > (int)sizeof name) return too_long(p);
        name[n++] = i ? ' ' : '<';
        memcpy(name + n, name_of(m, f.symbol), (size_t)size);
        n += size;
        name[n++] = f.power < 0 ? '-' : '^', name[n++] = (char)('0' + (f.power < 0 ? -f.power : f.power));
        if (f.transposed) name[n++] = 'T';
    }
    name[n++] = '>';
    const int x = mk_sym(m, name, n);
    if (x < 0) return -1;
    const int symbol = at(m, x)->aux;
    for (int i = 0; i < p->ordered.n_words; i++)
        if (p->ordered.words[i].symbol == symbol) return x;
    if (p->ordered.n_words == MAX_WORDS) return too_long(p);
    w->symbol = symbol;
    p->ordered.words[p->ordered.n_words++] = *w;
    p->ordered.letters |= 1ULL << symbol;
    return x;
}

/* Returns u . v, a number, or u x v, a vector whose sign records the order. */
static int vector_product(struct parser *p, int u, int v, char sign)
{
    struct math *m = p->m;
    char name[140];
    const int a = m->symbol[u].n_name, b = m->symbol[v].n_name;
    const int order = memcmp(name_of(m, u), name_of(m, v), (size_t)(a < b ? a : b));
    const bool swap = order ? order > 0 : a > b;
    if (u == v) return sign == 'x' ? mk_int(m, 0) : mk_pow(m, mk(m, OP_SYM, u, NULL, 0), mk_int(m, 2));
    if (a + b + 3 > (int)sizeof name) return too_long(p);
    const int first = swap ? v : u, second = swap ? u : v, n = m->symbol[first].n_name;
    name[0] = '<';
    memcpy(name + 1, name_of(m, first), (size_t)n);
    name[1 + n] = sign;
    memcpy(name + 2 + n, name_of(m, second), (size_t)(a + b - n));
    name[a + b + 2] = '>';
    const int x = mk_sym(m, name, a + b + 3);
    if (x < 0 || sign == '.') return x;
    p->ordered.letters |= 1ULL << at(m, x)->aux;
    return swap ? mk_neg(m, x) : x;
}

static int multiply_words(struct parser *p, int a, int b, char sign)
{
    struct math *m = p->m;
    struct word_of_letters u, v;
    int c, d;
    if (!split_word(p, a, &c, &u) || !split_word(p, b, &d, &v)) return too_long(p);
    const bool letters = u.n == 1 && v.n == 1 && u.f[0].power == 1 && v.f[0].power == 1 && !u.f[0].transposed && !v.f[0].transposed;
    const bool matrix = letters && p->ordered.matrices >> u.f[0].symbol & p->ordered.matrices >> v.f[0].symbol & 1;
    if (sign != ' ' && letters && !matrix) return mk_mul(m, mk_mul(m, c, d), vector_product(p, u.f[0].symbol, v.f[0].symbol, sign));
    for (int i = 0; i < v.n; i++)
        if (!append_factor(&u, v.f[i])) return too_long(p);
    return mk_mul(m, mk_mul(m, c, d), word_node(p, &u));
}

int ordered_mul(struct parser *p, int a, int b, char sign)
{
    struct math *m = p->m;
    if (a < 0 || b < 0) return -1;
    if (!is_ordered(p, a) || !is_ordered(p, b)) return mk_mul(m, a, b);
    const bool left = at(m, a)->op == OP_ADD;
    if (!left && at(m, b)->op != OP_ADD) return multiply_words(p, a, b, sign);
    const int sum = left ? a : b, n = at(m, sum)->n;
    if (!enter(p)) return -1;
    int x = mk_int(m, 0);
    for (int i = 0; i < n && x >= 0; i++) {
        const int k = kid(m, sum, i);
        x = mk_add(m, x, left ? ordered_mul(p, k, b, sign) : ordered_mul(p, a, k, sign));
    }
    p->depth--;
    return x;
}

static int transpose_word(struct parser *p, int x)
{
    struct math *m = p->m;
    struct word_of_letters w, r = {.n = 0};
    int c;
    if (!is_ordered(p, x)) return x; /* a number */
    if (at(m, x)->op == OP_ADD) {
        int sum = mk_int(m, 0);
        if (!enter(p)) return -1;
        for (int i = 0; i < at(m, x)->n && sum >= 0; i++) sum = mk_add(m, sum, transpose_word(p, kid(m, x, i)));
        p->depth--;
        return sum;
    }
    if (!split_word(p, x, &c, &w)) return too_long(p);
    for (int i = w.n - 1; i >= 0; i--) r.f[r.n] = w.f[i], r.f[r.n++].transposed = !w.f[i].transposed;
    return mk_mul(m, c, word_node(p, &r));
}

int ordered_pow(struct parser *p, int x, int exponent)
{
    struct math *m = p->m;
    struct word_of_letters w, one, r = {.n = 0};
    int64_t k;
    int c;
    if (x < 0 || exponent < 0) return -1;
    if (!is_ordered(p, x)) return mk_pow(m, x, exponent);
    if (is_transpose(m, exponent)) return transpose_word(p, x);
    if (!small_int(m, exponent, &k) || !k || k > MOST_POWER || k < -MOST_POWER) return mk_pow(m, x, exponent);
    if (at(m, x)->op == OP_ADD && k > 0 && k <= MOST_SUM_POWER) {
        int product = x;
        for (int64_t i = 1; i < k; i++) product = ordered_mul(p, product, x, ' ');
        return product;
    }
    if (!split_word(p, x, &c, &w)) return mk_pow(m, x, exponent);
    one = w;
    for (int i = 0; i < w.n && k < 0; i++) one.f[i] = w.f[w.n - 1 - i], one.f[i].power = (int8_t)-one.f[i].power;
    for (int64_t i = 0; i < (k < 0 ? -k : k); i++)
        for (int j = 0; j < one.n; j++)
            if (!append_factor(&r, one.f[j])) return too_long(p);
    return mk_mul(m, mk_pow(m, c, exponent), word_node(p, &r));
}
