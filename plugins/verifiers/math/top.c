/* Parses compounds of scalars: lists, relation chains, ratios, brackets, sets, matrices, texts,
 * values with units. */
#include "parser.h"
#include "units.h"

#include <string.h>

/* ---------------------------------------------------------------- brackets */

static bool is_shape(const struct parser *p, int x)
{
    return at(p->m, x)->op > OP_DEG || (at(p->m, x)->op == OP_CONST && at(p->m, x)->aux > C_UNDEFINED);
}

/* Returns the members of \{ x \in Z | -2 <= x < 2 \}; -1: another set, or a large one. */
static int whole_numbers(struct math *m, int element, int condition)
{
    enum { MOST = 60 };
    const struct node a = *at(m, element);
    if (condition < 0 || a.op != OP_REL || a.n != 2 || relation_op(m, element, 0) != R_IN || at(m, condition)->op != OP_REL)
        return -1;
    const int set = kid(m, element, 1), natural = at(m, set)->aux == C_NATURALS;
    if (at(m, set)->op != OP_CONST || !(natural || at(m, set)->aux == C_INTEGERS)) return -1;
    if (inequality_symbol(m, condition) != kid(m, element, 0)) return -1;
    const int range = relation_to_set(m, condition);
    int64_t low, high;
    int members[MOST], n = 0;
    if (range < 0 || at(m, range)->op != OP_TUPLE || at(m, range)->n != 2) return -1;
    if (!small_int(m, kid(m, range, 0), &low) || !small_int(m, kid(m, range, 1), &high) || (natural && low < 1)) return -1;
    low += !(at(m, range)->aux & 1), high -= !(at(m, range)->aux & 2);
    if (high - low >= MOST) return -1;
    for (int64_t i = low; i <= high; i++) members[n++] = mk_int(m, i);
    return n ? mk(m, OP_SET, 0, members, n) : mk_const(m, C_EMPTY);
}

/* Parses \{ x | condition \}: the condition if it is one relation; else a structure that equals
 * only itself. */
static int set_builder(struct parser *p, const int *items, int n)
{
    int conditions[16];
    bool semicolons;
    p->t++;
    const bool no_bar = p->no_bar;
    p->no_bar = false;
    const int k = parse_list(p, T_RSET, T_RSET, conditions, 16, &semicolons);
    p->no_bar = no_bar;
    if (k < 1 || n != 1) return parse_fail(p, "a set's condition");
    int element = items[0]; /* x \in R: x */
    if (at(p->m, element)->op == OP_REL && at(p->m, element)->n == 2 && p->m->pool[at(p->m, element)->digits] == R_IN &&
        at(p->m, kid(p->m, element, 1))->op == OP_CONST && at(p->m, kid(p->m, element, 1))->aux == C_REALS)
        element = kid(p->m, element, 0);
    const int list = k == 1 ? conditions[0] : mk(p->m, OP_LIST, p->joints, conditions, k);
    const int whole = whole_numbers(p->m, items[0], list);
    if (whole >= 0) return whole;
    if (list >= 0 && at(p->m, element)->op == OP_SYM &&
        (inequality_symbol(p->m, list) == element || (k == 1 && at(p->m, list)->op == OP_REL))) {
        const int set = k == 1 ? relation_to_set(p->m, list) : -1;
        return set < 0 ? list : set;
    }
    const int kids[2] = {element, k == 1 ? mk(p->m, OP_LIST, 0, conditions, 1) : list};
    return kids[1] < 0 ? -1 : mk_named(p->m, "builder", kids, 2);
}

/* Handles opening and closing ends of an interval: (a, b] and similar, also with \rbrack. */
int parse_brackets(struct parser *p)
{
    struct math *m = p->m;
    const int open = peek(p)->kind;
    int items[MAX_ITEMS / 8];
    bool semicolons = false;
    if (!enter(p)) return -1;
    p->t++;
    const int bars = p->bars;
    const bool no_bar = p->no_bar;
    p->bars = 0;
    p->no_bar = open == T_LSET;
    int stop1 = T_RPAREN, stop2 = T_RBRACK;
    if (open == T_LBRACE) stop1 = stop2 = T_RBRACE;
    if (open == T_LSET) stop1 = stop2 = T_RSET;
    if (open == T_LANGLE) stop1 = stop2 = T_RANGLE;
    if (open == T_LSET && accept(p, T_RSET)) {
        p->bars = bars, p->no_bar = no_bar, p->depth--;
        return mk_const(m, C_EMPTY);
    }
    int x = -1;
    const int n = parse_list(p, stop1, stop2, items, MAX_ITEMS / 8, &semicolons);
    const int close = ahead(p, -1)->kind;
    p->bars = bars;
    p->no_bar = no_bar;
    p->depth--;
    if (n == -2) return open == T_LSET ? set_builder(p, items, 1) : parse_fail(p, "a bar between brackets");
    if (n < 1) return parse_fail(p, "empty brackets");
    if (open == T_LSET)
        x = mk(m, OP_SET, 0, items, n);
    else if (open == T_LBRACE)
        x = n == 1 ? items[0] : mk(m, OP_SET, 0, items, n);
    else if (n == 1)
        x = (open == T_LPAREN) == (close == T_RPAREN) || open == T_LANGLE ? items[0]
                                                                          : parse_fail(p, "brackets of two kinds around one value");
    else
        x = mk(m, OP_TUPLE, open == T_LANGLE ? 0 : (open == T_LBRACK) | (close == T_RBRACK) << 1, items, n);
    return x;
}

/* Rows of one column of equations, or of values with conditions: a list. */
static int lines_of(struct parser *p, int *items, int n, int columns)
{
    int k = 0;
    for (int i = 0; i < n; i += columns, k++) items[k] = columns == 1 ? items[i] : mk(p->m, OP_TUPLE, 8, items + i, columns);
    for (int i = 0; i < k; i++)
        if (items[i] < 0) return -1;
    return k == 1 ? items[0] : mk(p->m, OP_LIST, JOINT_AND, items, k);
}

int parse_matrix(struct parser *p)
{
    struct math *m = p->m;
    const bool det = peek(p)->aux == ENV_DET, cases = peek(p)->aux == ENV_CASES;
    bool relations = false;
    int items[256], n = 0, columns = 0, row = 0;
    if (!enter(p)) return -1;
    if (det && p->determinant) return parse_fail(p, "a determinant inside a determinant");
    p->determinant |= det;
    p->t++;
    while (peek(p)->kind != T_ENDENV) {
        if (peek(p)->kind == T_ROW) { /* also a last \\ */
            p->t++;
            if (!row) continue;
            if (columns && row != columns) return parse_fail(p, "rows of different lengths");
            columns = row, row = 0;
            continue;
        }
        if (row && !accept(p, T_AMP) && (cases || ahead(p, -1)->kind != T_COMMA)) return parse_fail(p, "a matrix without &");
        if (n == 256) return parse_fail(p, "a large matrix");
        if ((items[n++] = parse_element(p)) < 0) return -1;
        relations |= at(p->m, items[n - 1])->op == OP_REL;
        row++;
        while (peek(p)->kind == T_COMMA || peek(p)->kind == T_SEMI || peek(p)->kind == T_AND) p->t++;
    }
    p->t++;
    p->depth--;
    if (row && columns && row != columns) return parse_fail(p, "rows of different lengths");
    if (!columns) columns = row;
    if (!n) return parse_fail(p, "an empty matrix");
    if (det) p->determinant = false;
    if (cases || (relations && !det)) return lines_of(p, items, n, columns);
    if (!det) return n == 1 ? items[0] : mk(m, OP_MATRIX, columns, items, n);
    if (n != columns * columns) return parse_fail(p, "a determinant that is not square");
    const int x = matrix_determinant(m, items, columns);
    return x < 0 ? parse_fail(p, "a large determinant") : x;
}

/* ---------------------------------------------------------------- values, chains, lists */

int parse_set_expr(struct parser *p)
{
    struct math *m = p->m;
    if (!enter(p)) return -1;
    int x = parse_sum(p);
    for (int kind; x >= 0 && ((kind = peek(p)->kind) == T_CUP || kind == T_CAP || kind == T_SETMINUS || kind == T_MINUS);) {
        p->t++;
        const int y = parse_sum(p);
        x = y < 0 ? -1 : mk(m, kind == T_CUP ? OP_UNION : kind == T_CAP ? OP_INTER : OP_DIFF, 0, (int[]){x, y}, 2);
    }
    p->depth--;
    return x;
}

/* Parses the units at the cursor as one: \text{m}^2 / \text{s}, kg \cdot m. Returns the length of
 * its text, or -1. */
static int parse_unit(struct parser *p, char *text)
{
    const struct math *m = p->m;
    struct unit u = {.n = 0};
    int sign = 1;
    const struct token first = *peek(p);
    const bool known = m->pool[first.text] != '?';
    while (peek(p)->kind == T_UNIT && (known == (m->pool[peek(p)->text] != '?'))) {
        struct unit more;
        const struct token t = *peek(p);
        int64_t power = 1;
        p->t++;
        if (accept(p, T_CARET)) {
            const int e = parse_exponent(p);
            if (e < 0) return -1;
            if (!small_int(m, e, &power) || power < -9 || power > 9) power = 1;
        }
        if (unit_read(m->pool + t.text, t.n_text, true, &more)) {
            unit_raise_last(&more, (int)power); /* \text{m/s}^2 is m/s^2 */
            for (int i = 0; i < more.n; i++) unit_multiply(&u, more.part[i].name, more.part[i].power * sign);
        }
        sign = peek(p)->kind == T_DIV ? -1 : 1;
        if ((peek(p)->kind == T_DIV || peek(p)->kind == T_TIMES) && ahead(p, 1)->kind == T_UNIT) p->t++;
    }
    if (known && u.n) return unit_print(&u, text);
    const int n = first.n_text < UNIT_TEXT ? first.n_text : UNIT_TEXT;
    memcpy(text, m->pool + first.text, (size_t)n);
    return n;
}

/* Parses x with the words at the cursor, which follow its unit, percent or degree sign: 5 km
 * north. */
static int parse_said(struct parser *p, int x)
{
    for (; x >= 0 && peek(p)->kind == T_UNIT && p->m->pool[peek(p)->text] == '?'; p->t++)
        x = mk_text(p->m, OP_SAID, 0, &x, 1, token_text(p->m, peek(p)));
    return x;
}

/* Parses a value and the percent sign, unit or text after it. */
static int parse_measure(struct parser *p)
{
    struct math *m = p->m;
    char unit[UNIT_TEXT];
    if (peek(p)->kind == T_TEXT) {
        const struct token t = *peek(p);
        p->t++;
        const int words = mk_text(m, OP_TEXT, 0, NULL, 0, token_text(m, &t));
        if (!starts_factor(p) && peek(p)->kind != T_MINUS) return words;
        const int value = parse_element(p); /* amplitude 3, period \pi */
        return words < 0 || value < 0 ? -1 : mk_named(m, "named", (int[]){words, value}, 2);
    }
    p->n_currency = 0;
    int x = parse_set_expr(p);
    if (x < 0) return -1;
    if (accept(p, T_PERCENT)) {
        x = mk(m, OP_PCT, 0, &x, 1);
        return parse_said(p, x); /* 4% increase */
    }
    if (x < 0 || is_shape(p, x)) return x;
    if (at(m, x)->flags & NODE_DEG) x = parse_said(p, x); /* 30 degrees east of north */
    if (x >= 0 && peek(p)->kind == T_UNIT) {
        const bool counted = p->n_currency && m->pool[peek(p)->text] == '?'; /* \$4 per ticket */
        const int n = counted ? 0 : parse_unit(p, unit);
        if (counted) x = mk_unit(m, x, (tare_text){m->pool + p->currency, p->n_currency});
        x = n < 0 ? -1 : n ? mk_unit(m, x, (tare_text){unit, n}) : x;
        return parse_said(p, x);
    }
    return p->n_currency ? mk_unit(m, x, (tare_text){m->pool + p->currency, p->n_currency}) : x;
}

/* Parses 5 hours 30 minutes: several adjacent measures, each with its unit. */
static int parse_value(struct parser *p)
{
    int parts[4], n = 0;
    do {
        if ((parts[n++] = parse_measure(p)) < 0) return -1;
    } while (n < 4 && at(p->m, parts[n - 1])->op == OP_UNIT && ahead(p, -1)->kind == T_UNIT && peek(p)->kind == T_NUM);
    return n == 1 ? parts[0] : mk_named(p->m, "measures", parts, n);
}

/* Returns the omitted side of "\ge 5": a letter that occurs nowhere else. */
static int unused_letter(struct math *m)
{
    return mk_sym(m, "\\nobody", 7);
}

static bool is_ordering(int rel)
{
    return rel >= R_LT && rel <= R_GE;
}

static bool ends_element(int kind)
{
    return kind == T_END || kind == T_COMMA || kind == T_SEMI || kind == T_AND || kind == T_RPAREN;
}

static int one_sided_set(struct parser *p, const int *kids, enum rel sign)
{
    const int relation = mk_rel(p->m, kids[0], sign, kids[1]), set = relation < 0 ? -1 : relation_to_set(p->m, relation);
    return set < 0 ? parse_fail(p, "a relation with one side") : set;
}

/* Returns true if the colon names an equation, as in E: x^2/9 + y^2/4 = 1: a ratio would not have a
 * sum or power of letters. */
static bool names_equation(const struct parser *p, const int *items)
{
    const struct node *a = at(p->m, items[0]), *b = at(p->m, items[1]);
    const bool sum = b->op == OP_ADD || b->op == OP_POW || (b->op == OP_MUL && b->flags & NODE_VAR && peek(p)->kind == T_REL);
    return a->op == OP_SYM && (b->op == OP_REL || (peek(p)->kind == T_REL && peek(p)->aux == R_EQ && b->flags & NODE_VAR && sum));
}

/* Returns the set of k \in Z, although its letter is not in blackboard bold. */
static int named_set(struct math *m, int x)
{
    static const struct {
        char letter;
        enum constant set;
    } sets[] = {{'Z', C_INTEGERS}, {'N', C_NATURALS}, {'R', C_REALS}, {'Q', C_RATIONALS}};
    const struct node *a = at(m, x);
    for (size_t i = 0; a->op == OP_SYM && m->symbol[a->aux].n_name == 1 && i < sizeof sets / sizeof *sets; i++)
        if (m->pool[m->symbol[a->aux].name] == sets[i].letter) return mk_const(m, sets[i].set);
    return x;
}

/* Parses a ratio a : b : c. The unit of the last member applies to all: 7:30 pm. */
static int parse_ratio(struct parser *p, int *items, int n)
{
    struct math *m = p->m;
    const struct node last = *at(m, items[n - 1]);
    if (last.op != OP_UNIT || n != 2) return mk(m, OP_RATIO, 0, items, n);
    items[n - 1] = kid(m, items[n - 1], 0);
    const int ratio = mk(m, OP_RATIO, 0, items, n);
    return ratio < 0 ? -1 : mk_unit(m, ratio, (tare_text){m->pool + last.digits, last.n_digits});
}

/* Parses values joined by relations, or a ratio a : b : c. */
int parse_element(struct parser *p)
{
    struct math *m = p->m;
    int kids[32], n = 0;
    char ops[32];
    if (!enter(p)) return -1;
    const int sign = peek(p)->kind == T_REL ? peek(p)->aux : 0;
    const bool unnamed = sign == R_EQ || sign == R_APPROX || sign == R_SIM; /* "= 5" */
    p->t += unnamed;
    if (is_ordering(sign)) { /* \ge 5 */
        kids[n++] = unused_letter(m), ops[0] = (char)sign;
        p->t++;
    }
    for (;;) {
        int ratio[16], k = 0;
        do {
            if (k == 16) return parse_fail(p, "a long ratio");
            const int label = k || (n && ops[n - 1] != R_EQ) ? -2 : parse_label(p, !n);
            if ((ratio[k++] = label != -2 ? label : parse_value(p)) < 0) return -1;
        } while (!p->no_bar && accept(p, T_COLON));
        if (n == 32) return parse_fail(p, "a long chain");
        kids[n++] = k == 1 ? ratio[0] : k == 2 && names_equation(p, ratio) ? ratio[1] : parse_ratio(p, ratio, k);
        if (kids[n - 1] < 0) return -1;
        if (n > 1 && ops[n - 2] == R_IN) kids[n - 1] = named_set(m, kids[n - 1]);
        if (peek(p)->kind != T_REL) break;
        ops[n - 1] = (char)peek(p)->aux;
        p->t++;
        if (n == 1 && is_ordering(ops[0]) && ends_element(peek(p)->kind)) { /* 5 or more: 5 \le */
            kids[n++] = unused_letter(m);
            break;
        }
    }
    p->depth--;
    if (n == 2 && (kids[0] == unused_letter(m) || kids[1] == unused_letter(m))) return one_sided_set(p, kids, (enum rel)ops[0]);
    if (n == 2 && ops[0] == R_SUPSET) return mk_rel(m, kids[1], R_SUBSET, kids[0]);
    /* = a b = 6 */
    if (unnamed && n > 1 && ops[0] == R_EQ && ops[n - 2] == R_EQ) return kids[n - 1];
    if (n == 1) return kids[0];
    const int relation = mk_text(m, OP_REL, 0, kids, n, (tare_text){ops, n - 1});
    return relation < 0 ? -1 : parse_congruence(p, relation);
}

/* Joins p \land q into one statement, unlike x > 1 \land x < 4, whose members are conditions on
 * numbers. Returns the number of remaining items. */
static int join_connected(struct parser *p, int *items, int n, int joints)
{
    enum { BOTH = 16, EITHER = 32 };
    for (int i = 0; i < n; i++)
        if (at(p->m, items[i])->op == OP_REL) return n;
    if (joints == (JOINT_AND | JOINT_SIGN))
        items[0] = mk(p->m, OP_TUPLE, 8 | BOTH, items, n);
    else if (joints == (JOINT_OR | JOINT_SIGN))
        items[0] = mk(p->m, OP_TUPLE, 8 | EITHER, items, n);
    else
        return parse_fail(p, "two kinds of connectives without brackets");
    return items[0] < 0 ? -1 : 1;
}

/* Groups assignments of the same names before each "or", as in x = 1, y = 2 or x = 2, y = 1.
 * Returns the number of remaining items. */
static int group_alternatives(struct parser *p, int *items, int n, uint64_t ors)
{
    struct math *m = p->m;
    int size = 1, out = 0;
    while (size < n && !(ors >> size & 1)) size++;
    if (size < 2 || n % size || n > 63) return n;
    for (int i = 0; i < n; i++) {
        int lhs, value;
        if ((i % size == 0) != (i == 0 || ors >> i & 1) || at(m, items[i])->op != OP_REL ||
            !relation_value(m, items[i], &lhs, &value))
            return n;
        if (lhs < 0 || (i >= size && kid(m, items[i], 0) != kid(m, items[i - size], 0))) return n;
        for (int k = i - i % size; k < i; k++)
            if (kid(m, items[k], 0) == kid(m, items[i], 0)) return n;
    }
    for (int i = 0; i < n; i += size) items[out++] = mk(m, OP_LIST, JOINT_COMMA, items + i, size);
    return out;
}

/* Parses elements between commas (or semicolons, or and/or) up to a closing token, which is
 * consumed. -2: a bar or colon instead (set builder). */
int parse_list(struct parser *p, int stop1, int stop2, int *items, int max, bool *semicolons)
{
    int n = 0, group = 0; /* group: first item since the last semicolon */
    bool commas = false;
    int joints = 0;
    uint64_t ors = 0; /* bit i: "or" precedes item i */
    *semicolons = false;
    for (;;) {
        if (n == max) return parse_fail(p, "a long list");
        if ((items[n++] = parse_element(p)) < 0) return -1;
        int kind = peek(p)->kind;
        if (p->no_bar && n == 1 && (kind == T_BAR || kind == T_COLON)) return -2;
        if (stop1 == T_END && at_condition(p)) {
            if ((items[n - 1] = parse_conditions(p, items[n - 1])) < 0) return -1;
            kind = peek(p)->kind;
        }
        if (kind == stop1 || kind == stop2 || kind == T_END || (kind == T_WHERE && stop1 == T_END)) {
            if (kind == T_WHERE) break;
            if (kind == T_END && stop1 != T_END) return parse_fail(p, "a bracket that is not closed");
            p->t++;
            break;
        }
        if (kind == T_SEMI)
            *semicolons = true;
        else if (kind == T_COMMA || kind == T_AND)
            commas |= kind == T_COMMA, joints |= kind == T_COMMA ? JOINT_COMMA : peek(p)->aux;
        else
            return parse_fail(p, "something that does not belong after a value");
        if (kind == T_SEMI && n - group > 1) { /* 1,2;3,4 : pairs */
            items[group] = mk(p->m, OP_TUPLE, 0, items + group, n - group);
            n = group + 1;
        }
        p->t++;
        if (kind == T_SEMI) group = n;
        if (kind == T_AND && ahead(p, -1)->aux == JOINT_OR && n < 64) ors |= 1ULL << n;
        /* ", and" */
        while (peek(p)->kind == T_AND || peek(p)->kind == T_COMMA || (peek(p)->kind == T_SEMI && kind != T_SEMI)) {
            joints |= peek(p)->kind == T_AND ? peek(p)->aux : JOINT_COMMA;
            if (peek(p)->kind == T_AND && peek(p)->aux == JOINT_OR && n < 64) ors |= 1ULL << n;
            p->t++;
        }
        if (peek(p)->kind == stop1 || peek(p)->kind == stop2) { /* a last comma */
            p->t++;
            break;
        }
    }
    if (*semicolons && commas && n - group > 1) {
        items[group] = mk(p->m, OP_TUPLE, 0, items + group, n - group);
        n = group + 1;
    }
    for (int i = 0; i < n; i++)
        if (items[i] < 0) return -1;
    if (joints == (JOINT_COMMA | JOINT_OR) || joints == (JOINT_AND | JOINT_OR)) n = group_alternatives(p, items, n, ors);
    p->joints = joints & ~JOINT_SIGN;
    return joints & JOINT_SIGN ? join_connected(p, items, n, joints) : n;
}

/* Returns true for only letters and connectives, as in p \implies q and p \iff \neg q: there the
 * sign is part of the statement. */
static bool is_statement(const struct parser *p)
{
    bool sign = false;
    for (int i = 0; i < p->m->n_tokens; i++) {
        const struct token *t = &p->m->tokens[i];
        if (t->kind == T_IMPLIES && (!i || i + 2 >= p->m->n_tokens)) return false;
        sign |= t->kind == T_IMPLIES;
        if (t->kind != T_IMPLIES && t->kind != T_SYM && t->kind != T_LPAREN && t->kind != T_RPAREN && t->kind != T_END &&
            !(t->kind == T_AND && t->aux & JOINT_SIGN))
            return false;
    }
    return sign;
}

/* Skips to the text after the last sign of consequence outside of brackets. */
static void skip_premises(struct parser *p)
{
    int depth = 0, start = 0;
    for (int i = 0; i < p->m->n_tokens; i++) {
        const int kind = p->m->tokens[i].kind;
        depth += kind == T_LPAREN || kind == T_LBRACK || kind == T_LBRACE || kind == T_LSET || kind == T_BEGIN;
        depth -= kind == T_RPAREN || kind == T_RBRACK || kind == T_RBRACE || kind == T_RSET || kind == T_ENDENV;
        if (kind == T_IMPLIES && depth <= 0 && i + 2 < p->m->n_tokens) start = i + 1;
    }
    p->t = start;
}

static bool is_named(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    return a->op == OP_TUPLE && text_equal((tare_text){m->pool + a->digits, a->n_digits}, text_of("named"), false);
}

int parse_answer(struct math *m)
{
    struct parser p = {.m = m};
    int items[MAX_ITEMS];
    bool semicolons;
    if (peek(&p)->kind == T_END) return parse_fail(&p, "nothing is there");
    if (is_statement(&p)) return parse_fail(&p, "a statement of logic");
    find_ordered(&p);
    skip_premises(&p);
    while (peek(&p)->kind == T_COMMA || peek(&p)->kind == T_AND) p.t++;
    const int option = accept(&p, T_OPTION) ? ahead(&p, -1)->aux : 0;
    const int n = parse_list(&p, T_END, T_END, items, MAX_ITEMS, &semicolons);
    if (n < 1) return parse_fail(&p, "nothing is there");
    /* read in words */
    if (n == 1 && is_named(m, items[0])) return parse_fail(&p, "words in front of a value");
    int x = lift_memberships(&p, items, n, p.joints);
    if (x >= 0 && p.t < m->n_tokens && peek(&p)->kind == T_WHERE) x = parse_conditions(&p, x);
    if (x >= 0 && option) x = mk(m, OP_OPTION, option, &x, 1);
    return x < 0 ? parse_fail(&p, "too large to parse") : x;
}
