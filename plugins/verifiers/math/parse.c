#include "parser.h"

#include <string.h>

int parse_fail(struct parser *p, const char *why)
{
    if (!p->m->parse_error) p->m->parse_error = why;
    return -1;
}

bool enter(struct parser *p)
{
    if (++p->depth <= MAX_DEPTH) return true;
    parse_fail(p, "nested too deeply");
    return false;
}

int number_of(struct parser *p, const struct token *t)
{
    struct math *m = p->m;
    if (!t->rep) return mk_num(m, false, m->pool + t->text, t->n_text, t->exp);
    /* a.b(c) with |c| repeating digits: (abc - ab) / (10^|b| (10^|c| - 1)) = ab 10^-|b| + c /
     * (10^|b| (10^|c| - 1)) */
    char nines[64];
    const int n = t->n_text - t->rep;
    if (t->rep > 60) return parse_fail(p, "a long period");
    memset(nines, '9', (size_t)t->rep);
    const int head = mk_num(m, false, m->pool + t->text, n, t->exp);
    const int period = mk_num(m, false, m->pool + t->text + n, t->rep, t->exp);
    return mk_add(m, head, mk_div(m, period, mk_num(m, false, nines, t->rep, 0)));
}

static bool plain_integer(const struct token *t)
{
    return t->kind == T_NUM && !(t->aux & (NUM_DECIMAL | NUM_ENOTATION));
}

/* Parses one digit of a number as an argument of \frac or \sqrt without braces: \frac12. */
static int digit_argument(struct parser *p)
{
    struct token *t = &p->m->tokens[p->t];
    if (!plain_integer(t) || t->n_text < 2) {
        p->t++;
        return number_of(p, t);
    }
    const int x = mk_num(p->m, false, p->m->pool + t->text, 1, 0);
    t->text++, t->n_text--, t->space = false;
    return x;
}

static int parse_group(struct parser *p) /* { sum } */
{
    if (!enter(p)) return -1;
    p->t++;
    const int x = parse_sum(p);
    p->depth--;
    return x < 0 ? -1 : accept(p, T_RBRACE) ? x : parse_fail(p, "a brace that is not closed");
}

int parse_argument(struct parser *p)
{
    if (peek(p)->kind == T_LBRACE) return parse_group(p);
    if (peek(p)->kind == T_NUM) return digit_argument(p);
    if (!enter(p)) return -1;
    const int x = parse_atom(p);
    p->depth--;
    return x;
}

int parse_exponent(struct parser *p)
{
    if (peek(p)->kind == T_LBRACE) return parse_group(p);
    if (accept(p, T_MINUS)) {
        if (!enter(p)) return -1;
        const int x = mk_neg(p->m, parse_exponent(p));
        p->depth--;
        return x;
    }
    accept(p, T_PLUS);
    if (!enter(p)) return -1;
    int x = parse_atom(p);
    if (x >= 0 && peek(p)->kind == T_CARET) { /* 2^3^4 */
        p->t++;
        x = mk_pow(p->m, x, parse_exponent(p));
    }
    p->depth--;
    return x;
}

/* ---------------------------------------------------------------- functions */

/* Returns true if a bar opens an inner pair, as in ||x||y||: it is inside an open bar, after an
 * inner pair, and enough bars remain to close both. */
static bool opens_inner(const struct parser *p)
{
    int left = 0;
    if (p->bars != 1 || !p->twin_bars || ahead(p, 1)->kind == T_BAR) return false;
    for (int i = p->t + 1; i < p->m->n_tokens; i++) left += p->m->tokens[i].kind == T_BAR;
    return left == 2 && (ahead(p, 1)->kind == T_SYM || ahead(p, 1)->kind == T_NUM);
}

bool starts_factor(const struct parser *p)
{
    switch (peek(p)->kind) {
    case T_NUM:
    case T_SYM:
    case T_CONST:
    case T_FUNC:
    case T_LOG:
    case T_LG:
    case T_FRAC:
    case T_SQRT:
    case T_CBRT:
    case T_BINOM:
    case T_SUM:
    case T_PROD:
    case T_INT:
    case T_LIM:
    case T_DET:
    case T_LBRACK:
    case T_LBRACE:
    case T_LSET:
    case T_LBAR:
    case T_LFLOOR:
    case T_LCEIL:
    case T_BEGIN:
        return true;
    case T_LPAREN:
        return !at_condition(p);
    case T_BAR:
        return ahead(p, 1)->kind != T_UNDER && !p->no_bar && (!p->bars || opens_inner(p));
    default:
        return false;
    }
}

static bool is_function(int kind)
{
    return kind == T_FUNC || kind == T_LOG || kind == T_LG || kind == T_SUM || kind == T_PROD;
}

/* Parses the argument of a function without brackets: adjacent factors, up to the next function.
 * sin 2x, log xy */
static int bare_argument(struct parser *p)
{
    if (!enter(p)) return -1;
    bool minus = false;
    while (peek(p)->kind == T_MINUS) p->t++, minus = !minus;
    int x = parse_power(p);
    while (x >= 0 && starts_factor(p) && !is_function(peek(p)->kind) && peek(p)->kind != T_LPAREN && peek(p)->kind != T_BAR) {
        if (peek(p)->kind == T_NUM) break;
        x = mk_mul(p->m, x, parse_power(p));
    }
    p->depth--;
    return minus ? mk_neg(p->m, x) : x;
}

/* Parses the base of a logarithm. In \log_10 x TeX uses one digit, but 1 is not a base. */
static int log_base(struct parser *p)
{
    const struct token *t = peek(p);
    if (!plain_integer(t) || t->n_text < 2 || p->m->pool[t->text] != '1') return parse_argument(p);
    p->t++;
    return number_of(p, t);
}

static int parse_function(struct parser *p)
{
    const struct token t = *peek(p);
    int f = t.kind == T_FUNC ? t.aux : F_LOG, base = -1, power = -1, args[64], n = 0;
    p->t++;
    if (t.kind == T_LG) base = mk_int(p->m, 10);
    for (int k = 0; k < 2; k++) {
        if (peek(p)->kind == T_UNDER && t.kind == T_LOG) {
            p->t++;
            if ((base = log_base(p)) < 0) return -1;
        } else if (peek(p)->kind == T_CARET) {
            p->t++;
            if ((power = parse_exponent(p)) < 0) return -1;
        }
    }
    if (power >= 0 && num_is(p->m, power, -1) && function_inverse(f)) f = function_inverse(f), power = -1;
    const int kind = peek(p)->kind;
    if (kind == T_LPAREN || kind == T_LSET || kind == T_LBRACK || kind == T_LBRACE) {
        const int saved = p->t, inside = kind == T_LBRACE && ahead(p, 1)->kind == T_LPAREN;
        if (!enter(p)) return -1;
        p->t += 1 + inside;
        bool semicolons;
        static const int closing[] = {[T_LPAREN] = T_RPAREN, [T_LSET] = T_RSET, [T_LBRACK] = T_RBRACK, [T_LBRACE] = T_RBRACE};
        const int stop = inside ? T_RPAREN : closing[kind];
        n = parse_list(p, stop, stop, args, 64, &semicolons);
        p->depth--;
        if (n < 1) return parse_fail(p, "a function of nothing");
        if (inside && !accept(p, T_RBRACE)) { /* sin{(a) b} */
            p->t = saved;
            n = 1;
            args[0] = parse_group(p);
        }
    } else {
        args[n++] = bare_argument(p);
    }
    for (int i = 0; i < n; i++)
        if ((args[i] = parse_unset(p->m, args[i])) < 0) return -1;
    const int x = parse_function_value(p, f, base, args, n);
    return power < 0 ? x : mk_pow(p->m, x, power);
}

/* ---------------------------------------------------------------- atoms, powers, products, sums */

static int parse_between(struct parser *p, int close, enum func f)
{
    if (!enter(p)) return -1;
    p->t++;
    const bool bar = close == T_BAR, twin = p->twin_bars;
    p->bars += bar;
    p->twin_bars = bar && peek(p)->kind == T_BAR && ahead(p, -2)->kind != T_BAR;
    const bool no_bar = p->no_bar;
    p->no_bar = false;
    const int x = parse_sum(p);
    p->twin_bars = twin;
    p->bars -= bar;
    p->no_bar = no_bar;
    p->depth--;
    if (x < 0 || !(accept(p, close) || (bar && accept(p, T_RBAR)) || (close == T_RBAR && accept(p, T_BAR))))
        return parse_fail(p, "a bracket that is not closed");
    const struct node *a = at(p->m, x);
    if (f == F_ABS && a->op == OP_MATRIX) {
        const int det = matrix_det(p->m, x);
        return det < 0 ? parse_fail(p, "a determinant of no small square matrix") : det;
    }
    return mk_func(p->m, f, x);
}

static int parse_fraction(struct parser *p, bool binomial)
{
    struct math *m = p->m;
    const bool ordered = peek(p)->aux; /* {}_n P_r */
    p->t++;
    const int derivative = binomial ? -2 : parse_derivative(p);
    if (derivative != -2) return derivative;
    const int a = parse_argument(p);
    if (a < 0) return -1;
    const int b = parse_argument(p);
    if (b < 0) return -1;
    if (!binomial) return mk_div(m, a, b);
    const int chosen = mk(m, OP_BINOM, 0, (int[]){a, b}, 2);
    return ordered ? mk_mul(m, chosen, mk(m, OP_FACT, 0, &b, 1)) : chosen;
}

static int parse_root(struct parser *p)
{
    int64_t index = 2;
    int symbolic = -1;
    if (accept(p, T_CBRT)) {
        index = 3;
    } else {
        p->t++;
        if (accept(p, T_LBRACK)) {
            const int n = parse_sum(p);
            if (n < 0 || !accept(p, T_RBRACK)) return parse_fail(p, "a root's index");
            if (!small_int(p->m, n, &index))
                symbolic = n;
            else if (index < 2 || index > 1000)
                return parse_fail(p, "a root's index");
        }
    }
    int x;
    if (peek(p)->kind == T_NUM)
        x = number_of(p, peek(p)), p->t++;
    else
        x = parse_argument(p);
    if (x < 0) return -1;
    return symbolic >= 0 ? mk_pow(p->m, x, mk_pow(p->m, symbolic, mk_int(p->m, -1))) : mk_root(p->m, x, index);
}

/* Returns the token k after the cursor, skipping braces; *k: its position. */
static const struct token *past_braces(const struct parser *p, int *k, int brace)
{
    while (ahead(p, *k)->kind == brace) ++*k;
    return ahead(p, *k);
}

/* Parses a mixed number: an integer next to a proper fraction of integers, either in braces, as in
 * 137 \frac{1}{2} or 137 1/2. -2: none. */
static int mixed_number(struct parser *p, const struct token *t, int first)
{
    struct math *m = p->m;
    int k = first, a, b, braces = 0;
    const struct token *u = ahead(p, k);
    while (u->kind == T_LBRACE) braces++, u = ahead(p, ++k);
    if (u->kind == T_FRAC) {
        const struct token *v = ahead(p, ++k);
        if (v->kind == T_LBRACE) {
            const struct token *num = past_braces(p, &k, T_LBRACE);
            k++;
            past_braces(p, &k, T_RBRACE);
            const struct token *den = past_braces(p, &k, T_LBRACE);
            if (!plain_integer(num) || !plain_integer(den) || ahead(p, ++k)->kind != T_RBRACE) return -2;
            k++;
            a = number_of(p, num), b = number_of(p, den);
        } else if (plain_integer(v) && v->n_text == 2) {
            a = mk_num(m, false, m->pool + v->text, 1, 0), b = mk_num(m, false, m->pool + v->text + 1, 1, 0);
            k++;
        } else {
            return -2;
        }
    } else if (plain_integer(u) && u->space && ahead(p, k + 1)->kind == T_DIV && plain_integer(ahead(p, k + 2))) {
        a = number_of(p, u), b = number_of(p, ahead(p, k + 2));
        k += 3;
    } else {
        return -2;
    }
    for (; braces; braces--, k++)
        if (ahead(p, k)->kind != T_RBRACE) return -2;
    int64_t x, y;
    if (a < 0 || b < 0 || !small_int(m, a, &x) || !small_int(m, b, &y) || x >= y) return -2;
    const int whole = number_of(p, t);
    p->t += k;
    return mk_add(m, whole, mk_div(m, a, b));
}

/* Parses the numeral t in base b, whose digits were read as decimal. */
static int in_base(struct parser *p, const struct token *t, int b)
{
    struct math *m = p->m;
    if ((t->aux & ~NUM_GROUPED) || t->n_text > 200) return parse_fail(p, "a numeral's base");
    /* 36^11 < 2^63; longer numerals become sums and products of nodes */
    const bool small = t->n_text <= 11;
    const int radix = mk_int(m, b);
    int x = mk_int(m, 0);
    int64_t v = 0;
    for (int i = 0; i < t->n_text && x >= 0; i++) {
        const int d = m->pool[t->text + i] - '0';
        if (d >= b) return parse_fail(p, "a digit that the base does not have");
        if (small)
            v = v * b + d;
        else
            x = mk_add(m, mk_mul(m, x, radix), mk_int(m, d));
    }
    if (small) x = mk_int(m, v);
    return x < 0 ? -1 : mk(m, OP_BASE, b, &x, 1);
}

static int parse_number(struct parser *p)
{
    const struct token t = *peek(p);
    if (plain_integer(&t)) {
        const int mixed = mixed_number(p, &t, 1);
        if (mixed != -2) return mixed;
    }
    p->t++;
    int x = number_of(p, &t);
    if (t.aux & NUM_DECIMAL && x >= 0 && !t.rep) p->m->nodes[x].flags |= NODE_DECIMAL;
    if (peek(p)->kind == T_BASE) return p->t++, in_base(p, &t, ahead(p, -1)->aux);
    if (peek(p)->kind == T_SCALE) {
        x = mk_mul(p->m, x, mk_num(p->m, false, "1", 1, peek(p)->aux));
        p->t++;
    }
    return x;
}

static int parse_determinant(struct parser *p)
{
    p->t++;
    const int a = parse_argument(p), x = a < 0 ? -1 : matrix_det(p->m, a);
    return x < 0 ? parse_fail(p, "a determinant of no small square matrix") : x;
}

/* Parses a letter, or a function value; \Gamma(x) is (x - 1)!. */
static int parse_symbol(struct parser *p)
{
    struct math *m = p->m;
    const struct token t = *peek(p);
    const int value = parse_application(p);
    if (value != -2) return value;
    p->t++;
    if (peek(p)->kind != T_LPAREN || t.n_text != 5 || memcmp(m->pool + t.text, "Gamma", 5) != 0)
        return mk_sym(m, m->pool + t.text, t.n_text);
    const int less = mk_add(m, parse_brackets(p), mk_int(m, -1));
    return less < 0 ? -1 : mk(m, OP_FACT, 0, &less, 1);
}

/* Parses a parenthesis; (3)_8 is 3_8. */
static int parse_parenthesis(struct parser *p)
{
    if (ahead(p, 1)->kind != T_NUM || ahead(p, 2)->kind != T_RPAREN || ahead(p, 3)->kind != T_BASE) return parse_brackets(p);
    p->t += 4;
    return in_base(p, ahead(p, -3), ahead(p, -1)->aux);
}

/* Parses a group, or the mixed number {2}\frac{1}{3}. */
static int parse_brace(struct parser *p)
{
    if (plain_integer(ahead(p, 1)) && ahead(p, 2)->kind == T_RBRACE && ahead(p, 3)->kind == T_FRAC) {
        const struct token whole = *ahead(p, 1);
        const int mixed = mixed_number(p, &whole, 3);
        if (mixed != -2) return mixed;
    }
    return parse_brackets(p);
}

static int parse_currency(struct parser *p)
{
    p->currency = peek(p)->text;
    p->n_currency = peek(p)->n_text;
    p->t++;
    return parse_atom(p);
}

/* parsers by the kind of the first token */
static int (*const ATOMS[])(struct parser *) = {
    [T_NUM] = parse_number,        [T_SYM] = parse_symbol,         [T_FUNC] = parse_function,
    [T_LOG] = parse_function,      [T_LG] = parse_function,        [T_SUM] = parse_big,
    [T_PROD] = parse_big,          [T_LIM] = parse_limit,          [T_DET] = parse_determinant,
    [T_CURRENCY] = parse_currency, [T_INT] = parse_integral,       [T_SQRT] = parse_root,
    [T_CBRT] = parse_root,         [T_LPAREN] = parse_parenthesis, [T_LBRACE] = parse_brace,
    [T_LBRACK] = parse_brackets,   [T_LSET] = parse_brackets,      [T_LANGLE] = parse_brackets,
    [T_BEGIN] = parse_matrix,
};

int parse_atom(struct parser *p)
{
    const struct token *t = peek(p);
    if ((size_t)t->kind < sizeof ATOMS / sizeof *ATOMS && ATOMS[t->kind]) return ATOMS[t->kind](p);
    switch (t->kind) {
    case T_CONST:
        p->t++;
        return mk_const(p->m, (enum constant)t->aux);
    case T_FRAC:
        return parse_fraction(p, false);
    case T_BINOM:
        return parse_fraction(p, true);
    case T_BAR:
        return parse_between(p, T_BAR, F_ABS);
    case T_LBAR:
        return parse_between(p, T_RBAR, F_ABS);
    case T_LFLOOR:
        return parse_between(p, T_RFLOOR, F_FLOOR);
    case T_LCEIL:
        return parse_between(p, T_RCEIL, F_CEIL);
    case T_END:
        return parse_fail(p, "it ends where a value should be");
    default:
        return parse_fail(p, "something else where a value should be");
    }
}

static int signed_factor(struct parser *p)
{
    bool minus = false;
    while (peek(p)->kind == T_MINUS || peek(p)->kind == T_PLUS) minus ^= peek(p)->kind == T_MINUS, p->t++;
    const int x = parse_power(p);
    return minus ? mk_neg(p->m, x) : x;
}

/* Returns the member of a set with one member, whose braces only group: \{a\}\{b\}. */
int parse_unset(const struct math *m, int x)
{
    return x >= 0 && at(m, x)->op == OP_SET && at(m, x)->n == 1 ? kid(m, x, 0) : x;
}

/* Returns true at a percent sign inside an expression, where it means a hundredth. */
static bool at_hundredth(const struct parser *p)
{
    static const int after[] = {T_END, T_COMMA, T_AND, T_RBRACE, T_RPAREN, T_SEMI, T_REL, T_UNIT};
    for (size_t i = 0; i < sizeof after / sizeof *after; i++)
        if (ahead(p, 1)->kind == after[i]) return false;
    return peek(p)->kind == T_PERCENT;
}

/* Returns true for a point with its name: P(2, 5). */
static bool is_point(const struct parser *p, int name, int x)
{
    if (x < 0 || at(p->m, x)->op != OP_TUPLE || at(p->m, x)->aux || at(p->m, name)->op != OP_SYM) return false;
    const struct node *a = at(p->m, name);
    const char c = p->m->pool[p->m->symbol[a->aux].name];
    return p->m->symbol[a->aux].n_name == 1 && c >= 'A' && c <= 'Z';
}

static int parse_product(struct parser *p)
{
    struct math *m = p->m;
    if (!enter(p)) return -1;
    const int start = p->t;
    bool number = peek(p)->kind == T_NUM; /* x so far is only a numeral */
    int x = parse_power(p);
    number &= p->t == start + 1;
    while (x >= 0) {
        const int kind = peek(p)->kind;
        if (kind == T_TIMES) {
            const char sign = peek(p)->aux == TIMES_CROSS ? 'x' : '.';
            p->t++, number = false;
            x = ordered_mul(p, x, signed_factor(p), sign);
        } else if (kind == T_DIV) {
            p->t++, number = false;
            x = mk_div(m, x, signed_factor(p));
        } else if (starts_factor(p)) {
            if (kind == T_NUM && number) x = parse_fail(p, "two numbers side by side");
            const int first = p->t;
            const int factor = parse_unset(m, parse_power(p));
            x = is_point(p, x, factor) ? factor : ordered_mul(p, parse_unset(m, x), factor, ' ');
            number = kind == T_NUM && p->t == first + 1;
        } else if (at_hundredth(p)) {
            p->t++;
            x = mk_div(m, x, mk_int(m, 100));
        } else {
            break;
        }
    }
    p->depth--;
    return x;
}

int parse_sum(struct parser *p)
{
    struct math *m = p->m;
    if (!enter(p)) return -1;
    int x = -1;
    bool minus = false, first = true;
    int pm = 0; /* T_PM or T_MP before the term */
    for (;;) {
        while (peek(p)->kind == T_MINUS || peek(p)->kind == T_PLUS) minus ^= peek(p)->kind == T_MINUS, p->t++;
        if (first && (peek(p)->kind == T_PM || peek(p)->kind == T_MP)) pm = peek(p)->kind, p->t++, x = mk_int(m, 0), first = false;
        int term = parse_product(p);
        if (minus) term = mk_neg(m, term);
        if (pm)
            x = term < 0 ? -1 : mk(m, OP_PM, pm == T_MP, (int[]){x, term}, 2);
        else
            x = first ? term : mk_add(m, x, term);
        if (x < 0) break;
        first = false, minus = false, pm = 0;
        const int kind = peek(p)->kind;
        if (kind == T_MINUS && ahead(p, 1)->kind == T_LSET && at(m, x)->op == OP_CONST && at(m, x)->aux >= C_REALS) break;
        if (kind == T_PLUS || kind == T_MINUS) continue;
        if (kind != T_PM && kind != T_MP) break;
        pm = kind;
        p->t++;
    }
    if (x >= 0 && accept(p, T_OVER)) x = mk_div(m, x, parse_sum(p)); /* {a + b \over c} */
    while (x >= 0 && (peek(p)->kind == T_MOD || peek(p)->kind == T_CHOOSE)) {
        const bool mod = peek(p)->kind == T_MOD;
        p->t++;
        const int y = mod ? signed_factor(p) : parse_product(p);
        x = y < 0 ? -1 : mk(m, mod ? OP_MOD : OP_BINOM, 0, (int[]){x, y}, 2);
    }
    if (x >= 0 && !p->bars && (peek(p)->kind == T_BAR || peek(p)->kind == T_RBAR) && ahead(p, 1)->kind == T_UNDER)
        p->t++, x = between_limits(p, x);
    p->depth--;
    return x < 0 ? parse_fail(p, "too large to parse") : x;
}
