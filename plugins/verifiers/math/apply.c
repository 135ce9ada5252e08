/* Functions that are only named: f(x), g(f(2)), f^{-1}(x). The function is unknown, so each of its
 * values is a separate letter: f(g(x)) is not g(f(x)), and f^{-1}(x) is not 1 / f(x). Other letters
 * before brackets are factors, as in x(x + 1) or h(a + b) / 2. */
#include "parser.h"

#include <string.h>

enum { NAME = 400, MOST_ARGUMENTS = 8 };

static bool is_function_letter(const struct parser *p, const struct token *t)
{
    return t->kind == T_SYM && t->n_text && strchr("fghFGH", p->m->pool[t->text]) &&
           (t->n_text == 1 || strchr("'_", p->m->pool[t->text + 1]));
}

/* Returns where the exponent after the cursor's letter ends, a sign and a numeral, relative to the
 * cursor; 0: none. */
static int exponent_end(const struct parser *p)
{
    int k = 2;
    if (ahead(p, 1)->kind != T_CARET) return 0;
    const bool brace = ahead(p, k)->kind == T_LBRACE;
    k += brace;
    k += ahead(p, k)->kind == T_MINUS;
    if (ahead(p, k)->kind != T_NUM || (brace && ahead(p, k + 1)->kind != T_RBRACE)) return 0;
    return k + 1 + brace;
}

/* Returns whether the tokens are one letter or numeral, or a function's value. */
static bool is_argument(const struct parser *p, int k)
{
    const int kind = ahead(p, k)->kind;
    if (kind != T_SYM && kind != T_NUM && kind != T_CONST) return false;
    return ahead(p, k + 1)->kind == T_RPAREN || (is_function_letter(p, ahead(p, k)) && ahead(p, k + 1)->kind == T_LPAREN);
}

/* Makes a letter named by x as printed between front and after. */
int named_value(struct parser *p, const char *front, int x, const char *after)
{
    char name[NAME];
    const int64_t n = (int64_t)strlen(front), more = (int64_t)strlen(after), capacity = NAME - more - 1;
    if (x < 0) return -1;
    if (n >= capacity) return parse_fail(p, "a long name");
    memcpy(name, front, (size_t)n);
    const int64_t size = n + print_node(p->m, x, name + n, capacity - n);
    if (size >= capacity) return parse_fail(p, "a long name");
    memcpy(name + size, after, (size_t)more);
    return mk_sym(p->m, name, size + more);
}

/* Parses f^{-1} without an argument, which names the inverse and is not a quotient. */
static int inverse_alone(struct parser *p, int end)
{
    const int sign = 2 + (ahead(p, 2)->kind == T_LBRACE);
    const struct token *one = ahead(p, sign + 1);
    if (p->t || ahead(p, end)->kind != T_END || ahead(p, sign)->kind != T_MINUS) return -2;
    if (one->n_text != 1 || p->m->pool[one->text] != '1') return -2;
    const char name[4] = {p->m->pool[peek(p)->text], '^', '-', '1'};
    p->t += end;
    return mk_sym(p->m, name, sizeof name);
}

int parse_application(struct parser *p)
{
    struct math *m = p->m;
    const struct token t = *peek(p);
    char name[NAME];
    int n = 0, args[MOST_ARGUMENTS], end = exponent_end(p);
    if (!is_function_letter(p, &t) || t.n_text > 60) return -2;
    if (end && ahead(p, end)->kind != T_LPAREN) return t.n_text == 1 ? inverse_alone(p, end) : -2;
    int open = end ? end : 1;
    /* f{\left(x \right)} */
    const bool braces = ahead(p, open)->kind == T_LBRACE && ahead(p, open + 1)->kind == T_LPAREN;
    open += braces;
    const bool surely = m->pool[t.text] == 'f' && (t.n_text == 1 || m->pool[t.text + 1] == '\'');
    if (ahead(p, open)->kind != T_LPAREN || !(surely || is_argument(p, open + 1))) return -2;
    memcpy(name, m->pool + t.text, (size_t)t.n_text), n = t.n_text;
    for (int k = 1; k < end; k++) { /* the exponent */
        const struct token *u = ahead(p, k);
        if (u->kind == T_CARET || u->kind == T_MINUS) name[n++] = u->kind == T_CARET ? '^' : '-';
        if (u->kind == T_NUM && u->n_text < 20) memcpy(name + n, m->pool + u->text, (size_t)u->n_text), n += u->n_text;
    }
    name[n++] = '(', name[n] = 0;
    if (!enter(p)) return -1;
    bool semicolons;
    const int bars = p->bars;
    const bool no_bar = p->no_bar;
    p->bars = 0, p->no_bar = false;
    p->t += open + 1;
    const int count = parse_list(p, T_RPAREN, T_RPAREN, args, MOST_ARGUMENTS, &semicolons);
    p->bars = bars, p->no_bar = no_bar;
    p->depth--;
    if (count < 1 || (braces && !accept(p, T_RBRACE))) return parse_fail(p, "a function of nothing");
    return named_value(p, name, count == 1 ? args[0] : mk(m, OP_LIST, 0, args, count), ")");
}
