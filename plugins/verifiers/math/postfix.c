/* Parses operators after a value: powers, factorials, degrees with minutes and seconds, the limits
 * of a difference. */
#include "parser.h"

/* Returns the only letter in x; -1: none or several. */
static int only_letter(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    int found = -1;
    if (a->op == OP_SYM) return a->aux;
    for (int i = 0; i < a->n; i++) {
        const int s = at(m, kid(m, x, i))->flags & NODE_VAR ? only_letter(m, kid(m, x, i)) : found;
        if (found >= 0 && s != found) return -1;
        found = s;
    }
    return found;
}

/* Parses limits after a value: _{x=2} substitutes, _0^1 is the difference between both. */
int between_limits(struct parser *p, int x)
{
    struct math *m = p->m;
    p->t++;
    const bool named =
        peek(p)->kind == T_LBRACE && ahead(p, 1)->kind == T_SYM && ahead(p, 2)->kind == T_REL && ahead(p, 2)->aux == R_EQ;
    int s = -1;
    if (named) {
        const int letter = mk_sym(m, m->pool + ahead(p, 1)->text, ahead(p, 1)->n_text);
        if (letter < 0) return -1;
        s = at(m, letter)->aux, p->t += 3;
    }
    p->limits = true;
    const int low = named ? parse_sum(p) : parse_argument(p);
    if (low < 0 || (named && !accept(p, T_RBRACE))) return parse_fail(p, "where a value is taken");
    const int high = accept(p, T_CARET) ? parse_exponent(p) : -1;
    p->limits = false;
    if (s < 0) s = only_letter(m, x);
    if (s < 0) return parse_fail(p, "limits of an expression without one letter");
    const int at_low = substitute(m, x, s, low);
    return high < 0 ? at_low : mk_add(m, substitute(m, x, s, high), mk_neg(m, at_low));
}

/* Consumes the sign of a one-sided limit (3^{+}, 0^-) and returns T_PLUS or T_MINUS; 0: none. */
static int one_sided(struct parser *p)
{
    const bool brace = peek(p)->kind == T_LBRACE;
    const int sign = ahead(p, brace)->kind, next = ahead(p, 1 + brace)->kind;
    if ((sign != T_PLUS && sign != T_MINUS) || (next != T_RBRACE && (brace || next != T_END))) return 0;
    p->t += brace ? 3 : 1;
    return sign;
}

/* Parses x degrees and the minutes and seconds of arc that follow: 37^\circ 15' 20''. */
static int parse_degrees(struct parser *p, int x)
{
    struct math *m = p->m;
    static const char *const units[] = {"min", "s"};
    for (int k = 0, of = 60; k < 2 && x >= 0; k++, of *= 60) {
        const struct token *number = peek(p), *mark = ahead(p, 1);
        const bool unit = mark->kind == T_UNIT && text_equal(token_text(m, mark), text_of(units[k]), false);
        if (number->kind != T_NUM || !(unit || (mark->kind == T_ARC && mark->aux == k + 1))) continue;
        x = mk_add(m, x, mk_div(m, number_of(p, number), mk_int(m, of)));
        p->t += 2;
    }
    return mk(m, OP_DEG, 0, &x, 1);
}

/* Computes a double factorial, 7!! = 7 5 3 1; that of an expression becomes a separate name. */
static int double_factorial(struct parser *p, int x)
{
    enum { MOST = 100 };
    struct math *m = p->m;
    int64_t n;
    if (!small_int(m, x, &n)) return named_value(p, "(", x, ")!!");
    if (n < 0 || n > MOST) return parse_fail(p, "a large double factorial");
    int product = mk_int(m, 1);
    for (; n > 1; n -= 2) product = mk_mul(m, product, mk_int(m, n));
    return product;
}

int parse_power(struct parser *p)
{
    struct math *m = p->m;
    if (!enter(p)) return -1;
    int x = parse_atom(p);
    for (int posts = 0; x >= 0; posts++) {
        if (posts == 64) {
            x = parse_fail(p, "too many marks after a value");
        } else if (peek(p)->kind == T_CARET) {
            p->t++;
            const int side = one_sided(p);
            if (side)
                x = mk_add(m, x, mk_sym(m, side == T_PLUS ? "^+" : "^-", 2)); /* 0^+ is not 0 */
            else if (accept(p, T_DEGREE))
                x = parse_degrees(p, x);
            else if (peek(p)->kind == T_LBRACE && ahead(p, 1)->kind == T_DEGREE && ahead(p, 2)->kind == T_RBRACE)
                p->t += 3, x = parse_degrees(p, x);
            else
                x = ordered_pow(p, parse_unset(m, x), parse_unset(m, parse_exponent(p)));
        } else if (peek(p)->kind == T_DEGREE && peek(p)->aux) {
            x = parse_fail(p, "a composition of functions");
        } else if (accept(p, T_DEGREE)) {
            x = parse_degrees(p, x);
        } else if (ahead(p, -1)->kind == T_RBRACK && peek(p)->kind == T_UNDER) { /* [x^2]_0^1 */
            x = between_limits(p, x);
        } else if (accept(p, T_FACT)) {
            x = ahead(p, -1)->aux ? double_factorial(p, x) : mk(m, OP_FACT, 0, &x, 1);
        } else {
            break;
        }
    }
    p->depth--;
    return x;
}
