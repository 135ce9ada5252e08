/* Names before an equals sign that are not expressions: P(X = 3), f(13), \angle ABC, \text{Area},
 * \# S, E[X]. "Name = value" means the value; otherwise they would be parsed as products. */
#include "parser.h"

#include <string.h>

static bool opens_bracket(int kind)
{
    return kind == T_LPAREN || kind == T_LBRACK || kind == T_LBRACE || kind == T_LSET;
}

static bool closes_bracket(int kind)
{
    return kind == T_RPAREN || kind == T_RBRACK || kind == T_RBRACE || kind == T_RSET;
}

/* Returns where the name at the cursor would end: at "=" if it precedes one, else at the end of the
 * chain; -1: neither. */
static int name_end(const struct parser *p, bool front)
{
    int depth = 0;
    for (int i = p->t; i < p->m->n_tokens && i < p->t + 64; i++) {
        const struct token *t = &p->m->tokens[i];
        depth += opens_bracket(t->kind);
        depth -= closes_bracket(t->kind);
        if (depth < 0 || t->kind == T_ROW || t->kind == T_AMP) return -1;
        if (depth) continue;
        if (t->kind == T_REL) return front && t->aux == R_EQ ? i : -1;
        if (t->kind == T_END || t->kind == T_COMMA || t->kind == T_SEMI || t->kind == T_AND || t->kind == T_COLON)
            return front ? -1 : i;
    }
    return -1;
}

/* Returns whether f(...) up to the token `end` is an application: its argument is a number or
 * cannot be a product, or f is a usual function name. A product like x(x + 1) or a(b + c) is
 * not. */
static bool is_application(const struct parser *p, int end)
{
    const struct token *t = p->m->tokens;
    int open = p->t + 1, depth = 0;
    while (open < end && t[open].kind == T_CARET) { /* f^{-1}(x) */
        int level = 0;
        do {
            open++;
            level += t[open].kind == T_LBRACE;
            level -= t[open].kind == T_RBRACE;
        } while (open < end && level > 0);
        open++;
    }
    if (open >= end || (t[open].kind != T_LPAREN && t[open].kind != T_LBRACK)) return false;
    int k = open;
    for (; k < end; k++) {
        depth += opens_bracket(t[k].kind);
        depth -= closes_bracket(t[k].kind);
        if (!depth) break;
    }
    if (k != end - 1 || k == open + 1) return false;
    bool words = false, closed = true;
    for (int i = open + 1; i < k; i++) {
        words |= t[i].kind == T_REL || t[i].kind == T_TEXT || t[i].kind == T_CAP || t[i].kind == T_CUP || t[i].kind == T_COMMA ||
                 t[i].kind == T_BAR;
        closed &= t[i].kind != T_SYM;
        if (t[i].kind == T_SYM && t[i].n_text == t[p->t].n_text &&
            !memcmp(p->m->pool + t[i].text, p->m->pool + t[p->t].text, (size_t)t[i].n_text))
            return words; /* x(x + 1) */
    }
    const char *name = p->m->pool + t[p->t].text;
    return words || (closed && t[open].kind == T_LPAREN) || strchr("fghFGHPE", *name) || t[p->t].n_text > 3 ||
           t[open].kind == T_LBRACK;
}

static bool is_label(const struct parser *p, int end, bool front)
{
    const struct token *t = p->m->tokens + p->t;
    bool words = false;
    for (int i = p->t; i < end; i++) words |= p->m->tokens[i].kind == T_TEXT || p->m->tokens[i].kind == T_MARK;
    if (words) return front;
    /* (f \circ g)(x) */
    if (t[0].kind == T_LPAREN) return front && end - p->t > 5 && t[2].kind == T_DEGREE;
    /* \max = 4 */
    if (t[0].kind == T_FUNC) return front && end == p->t + 1;
    /* |A \cup B|, a number of elements */
    if (t[0].kind == T_BAR || t[0].kind == T_LBAR) {
        bool sets = false;
        for (int i = p->t; i < end; i++) sets |= p->m->tokens[i].kind == T_CUP || p->m->tokens[i].kind == T_CAP;
        return front && sets;
    }
    return t[0].kind == T_SYM && end - p->t >= 4 && is_application(p, end);
}

int parse_label(struct parser *p, bool front)
{
    struct math *m = p->m;
    char text[512];
    int n = 0;
    switch (peek(p)->kind) {
    case T_SYM:
    case T_TEXT:
    case T_MARK:
    case T_CONST:
    case T_BAR:
    case T_LBAR:
    case T_FUNC:
        break;
    case T_LPAREN:
        if (ahead(p, 2)->kind == T_DEGREE) break;
        return -2;
    default:
        return -2;
    }
    const int end = name_end(p, front);
    if (end <= p->t || !is_label(p, end, front)) return -2;
    for (int i = p->t; i < end; i++) {
        const struct token *t = &m->tokens[i];
        if (n + t->n_text + 8 > (int)sizeof text) return parse_fail(p, "a long name");
        if (i > p->t) text[n++] = ' ';
        if (t->n_text)
            memcpy(text + n, m->pool + t->text, (size_t)t->n_text), n += t->n_text;
        else
            text[n++] = '.', text[n++] = (char)('!' + t->kind), text[n++] = (char)('!' + t->aux % 64);
    }
    p->t = end;
    return mk_text(m, OP_TEXT, TEXT_NAME, NULL, 0, (tare_text){text, n});
}

static bool is_name_of(const struct parser *p, int k, const char *name)
{
    const struct token *t = ahead(p, k);
    return t->kind == T_SYM && t->n_text == (int32_t)strlen(name) && !memcmp(p->m->pool + t->text, name, (size_t)t->n_text);
}

/* Returns the order of the differential d, d^2 or d^{2} at ahead(k), and moves *k behind it; 0:
 * none. */
static int read_differential(const struct parser *p, int *k, const char *d)
{
    int64_t order = 1;
    if (d && !is_name_of(p, *k, d)) return 0;
    ++*k;
    if (ahead(p, *k)->kind != T_CARET) return 1;
    const bool brace = ahead(p, *k + 1)->kind == T_LBRACE;
    const struct token *t = ahead(p, *k + 1 + brace);
    if (t->kind != T_NUM || t->n_text != 1 || (brace && ahead(p, *k + 3)->kind != T_RBRACE)) return 0;
    order = p->m->pool[t->text] - '0';
    *k += brace ? 4 : 2;
    return (int)order;
}

/* Parses the derivative of the factors at the cursor, after \frac{d}{dx}; -2, with nothing
 * consumed: they are not a function of x. */
static int parse_derived(struct parser *p, const struct token *by, int order)
{
    struct math *m = p->m;
    const int saved = p->t, v = mk_sym(m, m->pool + by->text, by->n_text);
    const char *error = m->parse_error;
    if (v < 0 || !enter(p)) return -1;
    int x = parse_power(p);
    while (x >= 0 && (starts_factor(p) || peek(p)->kind == T_TIMES)) {
        accept(p, T_TIMES);
        x = mk_mul(m, x, parse_power(p));
    }
    p->depth--;
    const int s = at(m, v)->aux;
    if (x >= 0 && (!only_constants(m, x, s) || at(m, x)->op > OP_DEG || substitute(m, x, s, mk_int(m, 0)) == x)) x = -1;
    for (int k = 0; k < order && x >= 0; k++) x = derivative(m, x, s);
    if (x >= 0) return x;
    return p->t = saved, m->parse_error = error, -2;
}

/* Parses \frac{dy}{dx} and \frac{d}{dx}, which are not quotients in which d cancels. By x it is y',
 * by another letter a separate name. */
int parse_derivative(struct parser *p)
{
    char name[100];
    int k = 1, n = 0;
    if (peek(p)->kind != T_LBRACE) return -2;
    const char *d = is_name_of(p, 1, "partial") ? "partial" : "d";
    int order = read_differential(p, &k, d);
    const struct token *f = ahead(p, k);
    if (!order || order > 4 || (f->kind != T_RBRACE && f->kind != T_SYM) || f->n_text > 60) return -2;
    if (f->kind == T_SYM) k++;
    if (ahead(p, k)->kind != T_RBRACE || ahead(p, k + 1)->kind != T_LBRACE) return -2;
    k += 2;
    if (!is_name_of(p, k, d) || ahead(p, k + 1)->kind != T_SYM) return -2;
    const struct token *by = ahead(p, ++k);
    if (by->n_text > 20 || read_differential(p, &k, NULL) != order || ahead(p, k)->kind != T_RBRACE) return -2;
    if (f->kind == T_SYM)
        memcpy(name, p->m->pool + f->text, (size_t)f->n_text), n = f->n_text;
    else
        name[n++] = 'd';
    for (int i = 0; i < order; i++) name[n++] = '\'';
    if (f->kind != T_SYM || by->n_text != 1 || p->m->pool[by->text] != 'x' || *d == 'p') {
        name[n++] = *d == 'p' ? '|' : '/';
        memcpy(name + n, p->m->pool + by->text, (size_t)by->n_text), n += by->n_text;
    }
    p->t += k + 1;
    if (f->kind != T_SYM && starts_factor(p)) {
        const int x = parse_derived(p, by, order);
        if (x != -2) return x;
    }
    return mk_sym(p->m, name, n);
}
