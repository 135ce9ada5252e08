/* Parses sums, products, integrals and limits. */
#include "parser.h"

#include <string.h>

/* Renames the bound letter in the index of a name: a_k, a_{k+1}. */
static bool rename_index(struct parser *p, struct token *t, struct token bound, char to)
{
    char *pool = p->m->pool;
    if (t->kind != T_SYM || t->n_text < 3) return true;
    const char letter = bound.kind == T_CONST ? 'i' : bound.n_text == 1 ? pool[bound.text] : 0;
    const char *under = memchr(pool + t->text, '_', (size_t)t->n_text);
    if (!under || !letter) return true;
    const int text = pool_add(p->m, pool + t->text, t->n_text);
    if (text < 0) return false;
    for (int i = (int)(under - (pool + t->text)) + 1; i < t->n_text; i++) {
        const bool inside = text_is_letter(pool[t->text + i - 1]) || (i + 1 < t->n_text && text_is_letter(pool[t->text + i + 1]));
        if (pool[t->text + i] == letter && !inside) pool[text + i] = (char)(to - '1' + 'A');
    }
    if (memcmp(pool + text, pool + t->text, (size_t)t->n_text))
        pool[text + (under - (pool + t->text))] = '~'; /* not in a letter's own index */
    t->text = text;
    return true;
}

/* Parses \sum_{k=a}^{b} body. The bound name becomes "#1", so the name does not matter. */
int parse_big(struct parser *p)
{
    struct math *m = p->m;
    const bool product = peek(p)->kind == T_PROD;
    int from = -1, to = -1;
    struct token bound = {0};
    p->t++;
    for (int k = 0; k < 2; k++) {
        if (peek(p)->kind == T_UNDER && ahead(p, 1)->kind == T_LBRACE) {
            p->t += 2;
            bound = *peek(p);
            if (!(bound.kind == T_SYM || (bound.kind == T_CONST && bound.aux == C_I)))
                return parse_fail(p, "a sum without an index");
            p->t++;
            if (!(peek(p)->kind == T_REL && peek(p)->aux == R_EQ)) return parse_fail(p, "a sum without its first index");
            p->t++;
            if ((from = parse_sum(p)) < 0 || !accept(p, T_RBRACE)) return parse_fail(p, "a sum's first index");
        } else if (peek(p)->kind == T_CARET) {
            p->t++;
            p->limits = true;
            to = parse_exponent(p);
            p->limits = false;
            if (to < 0) return -1;
        }
    }
    if (from < 0 || to < 0) return parse_fail(p, "a sum without limits");
    char name[8] = "#1";
    name[1] = (char)('1' + p->bound % 9);
    for (int i = p->t; i < m->n_tokens; i++) { /* rename in the tokens that follow */
        struct token *t = &m->tokens[i];
        if (!rename_index(p, t, bound, name[1])) return parse_fail(p, "too long to parse");
        if (t->kind != bound.kind || t->aux != bound.aux) continue;
        if (bound.kind == T_SYM &&
            !(t->n_text == bound.n_text && !memcmp(m->pool + t->text, m->pool + bound.text, (size_t)t->n_text)))
            continue;
        const int text = pool_add(m, name, 2);
        if (text < 0) return parse_fail(p, "too long to parse");
        t->kind = T_SYM, t->aux = 0, t->text = text, t->n_text = 2;
    }
    if (!enter(p)) return -1;
    p->bound++;
    int body = parse_power(p);
    while (body >= 0 && (starts_factor(p) || peek(p)->kind == T_TIMES || peek(p)->kind == T_DIV)) {
        const bool over = peek(p)->kind == T_DIV;
        if (over || peek(p)->kind == T_TIMES) p->t++;
        const int next = parse_power(p);
        body = over ? mk_div(m, body, next) : mk_mul(m, body, next);
    }
    p->bound--;
    p->depth--;
    const int index = mk_sym(m, name, 2), kids[4] = {index, from, to, body};
    for (int k = 0; k < 4; k++)
        if (kids[k] < 0) return -1;
    return mk(m, product ? OP_PROD : OP_SUM, 0, kids, 4);
}

static bool contains_symbol(const struct math *m, int x, int part)
{
    if (x == part) return true;
    for (int i = 0; i < at(m, x)->n; i++)
        if (contains_symbol(m, kid(m, x, i), part)) return true;
    return false;
}

static bool is_symbol(const struct parser *p, const struct token *t, const char *name)
{
    return t->kind == T_SYM && t->n_text == 1 && p->m->pool[t->text] == name[0];
}

/* Renames the variable of a definite integral, whose name does not matter either. */
static void rename_bound(struct parser *p, int from, int to, struct token bound)
{
    struct math *m = p->m;
    /* different from the enclosing ones */
    const int text = pool_add(m, &"@~?:;!%&|"[p->bound % 9], 1);
    for (int i = from; i < to && text >= 0; i++) {
        struct token *t = &m->tokens[i];
        if (t->kind == T_SYM && t->n_text == bound.n_text && !memcmp(m->pool + t->text, m->pool + bound.text, (size_t)t->n_text))
            t->text = text, t->n_text = 1;
    }
}

/* Returns the x of a dx inside a fraction, as in \frac{dx}{1 + x^2}; -1: none. */
static int inner_variable(const struct parser *p, int start)
{
    for (int i = start; i + 1 < p->t && i < start + 40; i++) {
        const struct token *t = &p->m->tokens[i + 1];
        if (is_symbol(p, t - 1, "d") && t->kind == T_SYM) return mk_sym(p->m, p->m->pool + t->text, t->n_text);
    }
    return -1;
}

/* Returns the product x without one factor a and one factor b; -1: it does not have them. */
static int without_factors(struct math *m, int x, int a, int b)
{
    int rest = mk_int(m, 1), left[2] = {a, b};
    for (int i = 0; at(m, x)->op == OP_MUL && i < at(m, x)->n; i++) {
        const int k = kid(m, x, i);
        if (k == left[0])
            left[0] = -1;
        else if (k == left[1])
            left[1] = -1;
        else
            rest = mk_mul(m, rest, k);
    }
    return left[0] < 0 && left[1] < 0 ? rest : -1;
}

/* Parses \int_a^b f dx as an opaque structure: equal when the limits and f dx are. Without a
 * differential the variable is x. */
int parse_integral(struct parser *p)
{
    struct math *m = p->m;
    int kids[5] = {-1, -1, -1, -1, -1}, last = -1, depth = 0;
    p->t++;
    for (int k = 0; k < 2; k++) {
        const int kind = peek(p)->kind;
        if (kind != T_UNDER && kind != T_CARET) break;
        p->t++;
        if (peek(p)->kind == T_LBRACE && ahead(p, 1)->kind == T_RBRACE) {
            p->t += 2;
            continue;
        }
        p->limits = true;
        const int limit = kind == T_UNDER ? parse_argument(p) : parse_exponent(p);
        p->limits = false;
        if ((kids[kind == T_CARET] = limit) < 0) return -1;
    }
    /* the last "d x" outside of brackets */
    for (int i = p->t; i < m->n_tokens && depth >= 0; i++) {
        const int kind = m->tokens[i].kind;
        depth += kind == T_LBRACE || kind == T_LPAREN || kind == T_LBRACK || kind == T_LSET;
        depth -= kind == T_RBRACE || kind == T_RPAREN || kind == T_RBRACK || kind == T_RSET;
        if (kind == T_REL || kind == T_COMMA || kind == T_INT || kind == T_END) break;
        if (!depth && is_symbol(p, &m->tokens[i], "d") && m->tokens[i + 1].kind == T_SYM) last = i;
    }
    const int start = p->t;
    if (!enter(p)) return -1;
    if (last >= 0 && kids[0] >= 0 && kids[1] >= 0) rename_bound(p, p->t, last + 2, m->tokens[last + 1]);
    int body = mk_int(m, 1);
    if (last != p->t) {
        if (last >= 0) m->tokens[last].kind = T_END;
        body = parse_unset(m, parse_sum(p));
        if (last >= 0) m->tokens[last].kind = T_SYM;
    }
    p->depth--;
    if (body < 0 || (last >= 0 && p->t != last)) return parse_fail(p, "an integral");
    const int d = mk_sym(m, "d", 1);
    if (last < 0 && (kids[4] = inner_variable(p, start)) >= 0) kids[3] = without_factors(m, body, d, kids[4]);
    bool known = last < 0 && kids[4] >= 0 && kids[3] >= 0; /* the integrand and its variable */
    if (last >= 0) {
        const struct token *t = &m->tokens[last + 1];
        kids[3] = body, kids[4] = mk_sym(m, m->pool + t->text, t->n_text), known = true;
        body = mk_mul(m, body, mk_mul(m, d, kids[4]));
        p->t = last + 2;
    } else if (!contains_symbol(m, body, d)) {
        body = mk_mul(m, body, mk_mul(m, d, mk_sym(m, "x", 1)));
    }
    const bool limits = kids[0] >= 0 && kids[1] >= 0;
    kids[2] = body;
    m->integrals |= limits && known;
    return mk(m, OP_INT, limits, limits ? kids : kids + 2, !limits ? 1 : known ? 5 : 3);
}

/* Returns where the limit at the cursor ends: at a comma or relation outside of its brackets. */
static int limit_end(const struct parser *p)
{
    int i = p->t, depth = 0;
    for (; p->m->tokens[i].kind != T_END; i++) {
        const int kind = p->m->tokens[i].kind;
        depth += kind == T_LBRACE || kind == T_LPAREN || kind == T_LBRACK || kind == T_LSET || kind == T_BEGIN;
        depth -= kind == T_RBRACE || kind == T_RPAREN || kind == T_RBRACK || kind == T_RSET || kind == T_ENDENV;
        if (depth < 0 || (!depth && (kind == T_REL || kind == T_COMMA || kind == T_SEMI || kind == T_AND))) break;
    }
    return i;
}

/* Parses \lim_{x \to a} f. Nothing is computed: the limit becomes a symbol named after its parts,
 * so two limits are equal when their parts are, and sums and products of limits are parsed as such.
 * The parts are nodes, and nodes are unique. */
int parse_limit(struct parser *p)
{
    struct math *m = p->m;
    char name[60] = "lim";
    int under = 0, n = 3;
    const struct token t = *peek(p);
    p->t++;
    if (accept(p, T_UNDER)) {
        const struct token bound = *ahead(p, 1);
        if (p->bound < 9 && bound.kind == T_SYM && ahead(p, 2)->kind == T_REL && ahead(p, 2)->aux == R_TO)
            rename_bound(p, p->t, limit_end(p), bound);
        if (accept(p, T_LBRACE)) {
            int items[8];
            bool semicolons;
            const int k = parse_list(p, T_RBRACE, T_RBRACE, items, 8, &semicolons);
            under = k < 1 ? -1 : k == 1 ? items[0] : mk(m, OP_LIST, 0, items, k);
        } else {
            under = parse_argument(p);
        }
    }
    if (under < 0 || !enter(p)) return parse_fail(p, "a limit");
    p->bound++;
    int body = parse_power(p);
    while (body >= 0 && (starts_factor(p) || peek(p)->kind == T_TIMES || peek(p)->kind == T_DIV)) {
        const bool over = peek(p)->kind == T_DIV;
        if (over || peek(p)->kind == T_TIMES) p->t++;
        const int next = parse_power(p);
        body = over ? mk_div(m, body, next) : mk_mul(m, body, next);
    }
    p->bound--;
    p->depth--;
    if (body < 0) return -1;
    for (int64_t i = 0; i < t.n_text && n < 20; i++) name[n++] = m->pool[t.text + i];
    for (int k = 0; k < 2; k++) {
        name[n++] = ' ';
        for (int v = k ? body : under; n < 56; v /= 10) {
            name[n++] = (char)('0' + v % 10);
            if (v < 10) break;
        }
    }
    const int symbol = mk_sym(m, name, n);
    if (symbol >= 0 && t.n_text == 3 && m->n_limits < MAX_LIMITS) m->limits[m->n_limits++] = (struct limit){symbol, under, body};
    return symbol;
}
