/* Side conditions of an answer: 2k\pi (k \in Z), \sqrt{x} for x > 0, x \in R, x != 3. They are
 * OP_WHERE: the value, then its conditions. A condition that a letter is an integer, real, ... may
 * be omitted; a more restrictive one must be on both sides. */
#include "parser.h"

enum { MAX_CONDITIONS = 8, TOP_LEVEL = 4 /* depth of a product outside of all brackets */ };

static bool ends_item(int kind)
{
    return kind == T_END || kind == T_COMMA || kind == T_SEMI || kind == T_AND || kind == T_WHERE || kind == T_LPAREN;
}

/* Returns whether brackets after a value hold a relation and end the item, so they are not a
 * factor. Looks only outside of other brackets, so each token is checked once. */
bool at_condition(const struct parser *p)
{
    if (peek(p)->kind == T_PMOD) return true;
    if (peek(p)->kind != T_LPAREN || p->depth > TOP_LEVEL || !p->t) return false;
    bool relation = false;
    int depth = 0;
    for (int i = p->t; i < p->m->n_tokens; i++) {
        const int kind = p->m->tokens[i].kind;
        depth += kind == T_LPAREN || kind == T_LBRACK || kind == T_LBRACE || kind == T_LSET || kind == T_BEGIN;
        depth -= kind == T_RPAREN || kind == T_RBRACK || kind == T_RBRACE || kind == T_RSET || kind == T_ENDENV;
        relation |= depth == 1 && (kind == T_REL || (kind == T_MOD && i == p->t + 1)); /* (mod 7) */
        if (!depth) return relation && ends_item(p->m->tokens[i + 1].kind);
    }
    return false;
}

/* Returns true for a membership: k \in Z. */
static bool is_membership(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    if (a->op != OP_REL || a->n != 2 || relation_op(m, x, 0) != R_IN) return false;
    /* Z^+ */
    const int set = at(m, kid(m, x, 1))->op == OP_POW ? kid(m, kid(m, x, 1), 0) : kid(m, x, 1);
    return at(m, set)->op == OP_CONST && at(m, set)->aux >= C_REALS;
}

/* Returns true if the condition starts the index: n >= 1 for a_n. */
static bool starts_index(struct math *m, int x, int condition)
{
    int64_t first;
    if (at(m, x)->op != OP_REL || at(m, kid(m, x, 0))->op != OP_SYM || at(m, condition)->op != OP_REL || at(m, condition)->n != 2)
        return false;
    const int name = at(m, kid(m, x, 0))->aux, letter = kid(m, condition, 0), sign = relation_op(m, condition, 0);
    const char *s = m->pool + m->symbol[name].name;
    const int n = m->symbol[name].n_name;
    if (n != 3 || s[1] != '_' || at(m, letter)->op != OP_SYM || m->symbol[at(m, letter)->aux].n_name != 1) return false;
    return s[2] == m->pool[m->symbol[at(m, letter)->aux].name] && (sign == R_GE || sign == R_GT) &&
           small_int(m, kid(m, condition, 1), &first) && first >= 0 && first < 2;
}

static int with_conditions(struct parser *p, int x, const int *conditions, int n)
{
    int kids[1 + MAX_CONDITIONS] = {x};
    bool memberships = true;
    if (n > MAX_CONDITIONS) return parse_fail(p, "many conditions");
    for (int i = 0; i < n; i++)
        kids[1 + i] = conditions[i], memberships &= is_membership(p->m, conditions[i]) || starts_index(p->m, x, conditions[i]);
    return mk(p->m, OP_WHERE, memberships, kids, 1 + n);
}

/* Returns the least non-negative residue modulo an integer n: 10 (mod 7) is 3 (mod 7). */
static int least_residue(struct math *m, int x, int n)
{
    int64_t value, modulus;
    if (!small_int(m, x, &value) || !small_int(m, n, &modulus) || modulus < 1) return x;
    return mk_int(m, (value % modulus + modulus) % modulus);
}

/* Returns the value or relation x modulo n. */
static int reduce_congruence(struct parser *p, int x, int n)
{
    struct math *m = p->m;
    const struct node a = *at(m, x);
    if (a.op == OP_REL && a.n == 2 && (relation_op(m, x, 0) == R_EQUIV || relation_op(m, x, 0) == R_EQ))
        x = mk_rel(m, kid(m, x, 0), R_EQUIV, least_residue(m, kid(m, x, 1), n));
    else
        x = least_residue(m, x, n);
    if (x < 0) return -1;
    return with_conditions(p, x, (int[]){mk_named(m, "modulus", &n, 1)}, 1);
}

/* Parses the modulus of x (mod n) or \pmod{n}. */
static int parse_modulus(struct parser *p, int x)
{
    const bool brackets = accept(p, T_LPAREN);
    p->t++;
    const int n = brackets ? parse_sum(p) : parse_argument(p);
    if (n < 0 || (brackets && !accept(p, T_RPAREN))) return parse_fail(p, "a modulus");
    return reduce_congruence(p, x, n);
}

/* Parses a congruence, whose modulus belongs to the relation: x \equiv 3 \bmod 7. */
int parse_congruence(struct parser *p, int x)
{
    struct math *m = p->m;
    const struct node a = *at(m, x);
    const int last = a.op == OP_REL ? kid(m, x, a.n - 1) : -1;
    /* n mod 7 = 2 */
    if (a.op == OP_REL && a.n == 2 && relation_op(m, x, 0) == R_EQ && at(m, kid(m, x, 0))->op == OP_MOD) {
        const int left = kid(m, x, 0), same = mk_rel(m, kid(m, left, 0), R_EQUIV, last);
        if (at(m, kid(m, left, 0))->op == OP_SYM) return same < 0 ? -1 : reduce_congruence(p, same, kid(m, left, 1));
    }
    if (last < 0 || at(m, last)->op != OP_MOD || a.n != 2 || relation_op(m, x, 0) != R_EQUIV) return x;
    const int n = kid(m, last, 1), relation = mk_rel(m, kid(m, x, 0), R_EQUIV, kid(m, last, 0));
    return relation < 0 ? -1 : reduce_congruence(p, relation, n);
}

static bool accept_sign(struct parser *p, int sign)
{
    return peek(p)->kind == T_REL && peek(p)->aux == sign && (p->t++, true);
}

/* Parses the conditions after the value x: (k \in Z) or "where k \in Z". "For any integer k" has
 * only the letters. */
int parse_conditions(struct parser *p, int x)
{
    int items[MAX_CONDITIONS];
    bool semicolons;
    const struct token t = *peek(p);
    if (t.kind == T_PMOD || ahead(p, 1)->kind == T_MOD) return parse_modulus(p, x);
    p->t++;
    if (t.kind == T_LPAREN && accept_sign(p, R_APPROX)) { /* 7/12 (\approx 0.583) */
        const int y = parse_sum(p);
        return y >= 0 && at(p->m, x)->op <= OP_DEG && accept(p, T_RPAREN) && numeric_close(p->m, x, y) ? x
                                                                                                       : parse_fail(p, "a remark");
    }
    const int stop = t.kind == T_LPAREN ? T_RPAREN : T_END;
    if (!enter(p)) return -1;
    const int n = parse_list(p, stop, stop, items, MAX_CONDITIONS, &semicolons);
    p->depth--;
    if (n < 1) return parse_fail(p, "a condition");
    if (stop == T_END) p->t--; /* the end also ends the list */
    for (int i = 0; i < n; i++) {
        if (at(p->m, items[i])->op == OP_SYM) /* for all x, for any integer k */
            items[i] = mk_rel(p->m, items[i], R_IN, mk_const(p->m, t.aux ? (enum constant)t.aux : C_REALS));
        if (items[i] < 0 || at(p->m, items[i])->op != OP_REL) return parse_fail(p, "words after a value");
    }
    return with_conditions(p, x, items, n);
}

/* Adds the following values to the relation, as in x != 1, -1. */
static void spread_not_equal(struct parser *p, int *items, int n)
{
    struct math *m = p->m;
    const struct node *a = at(m, items[0]);
    if (a->op != OP_REL || a->n != 2 || relation_op(m, items[0], 0) != R_NE || at(m, kid(m, items[0], 0))->op != OP_SYM) return;
    for (int i = 1; i < n; i++)
        if (at(m, items[i])->op > OP_DEG || at(m, items[i])->flags & NODE_VAR) return;
    for (int i = 1; i < n; i++) {
        const int x = mk_rel(m, kid(m, items[0], 0), R_NE, items[i]);
        if (x >= 0) items[i] = x;
    }
}

static bool contains_node(const struct math *m, int x, int part)
{
    if (x == part) return true;
    for (int i = 0; i < at(m, x)->n; i++)
        if (contains_node(m, kid(m, x, i), part)) return true;
    return false;
}

/* Returns true for an expression and an inequality in some of its letters: sqrt(x), x > 0. */
static bool is_restriction(struct math *m, int x, int condition)
{
    const struct node *a = at(m, x);
    int lhs, value;
    if (a->op == OP_REL && relation_value(m, x, &lhs, &value) && lhs >= 0) x = value, a = at(m, x);
    const int s = inequality_symbol(m, condition);
    return s >= 0 && a->op <= OP_DEG && a->op != OP_SYM && at(m, condition)->op == OP_REL && contains_node(m, x, s);
}

/* Turns items of a list that only give the kind of number of a letter into conditions of the
 * others. */
int lift_memberships(struct parser *p, int *items, int n, int joints)
{
    int conditions[MAX_CONDITIONS], k = 0, rest = 0;
    spread_not_equal(p, items, n);
    if (n == 2 && joints == JOINT_COMMA && is_restriction(p->m, items[0], items[1]))
        return with_conditions(p, items[0], items + 1, 1);
    for (int i = 0; i < n; i++) k += is_membership(p->m, items[i]);
    if (!k || k == n || k > MAX_CONDITIONS) return n == 1 ? items[0] : mk(p->m, OP_LIST, joints, items, n);
    k = 0;
    for (int i = 0; i < n; i++) {
        if (is_membership(p->m, items[i]))
            conditions[k++] = items[i];
        else
            items[rest++] = items[i];
    }
    const int x = rest == 1 ? items[0] : mk(p->m, OP_LIST, joints, items, rest);
    return x < 0 ? -1 : with_conditions(p, x, conditions, k);
}

/* Returns the letter of the only condition, k \in Z; -1: another one. */
static int whole_letter(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    if (a->op != OP_WHERE || !a->aux || a->n != 2) return -1;
    const int letter = kid(m, kid(m, x, 1), 0), set = kid(m, kid(m, x, 1), 1);
    return at(m, letter)->op == OP_SYM && at(m, set)->op == OP_CONST && at(m, set)->aux == C_INTEGERS ? letter : -1;
}

/* Returns the value y with its letter renamed as in x, so that 2k\pi, k \in Z equals 2n\pi, n \in
 * Z, and 2n\pi. */
static int renamed_value(struct math *m, int gold, int pred, int y)
{
    static const char letters[] = "knmljt";
    const int from = whole_letter(m, pred), to = whole_letter(m, gold);
    if (to < 0 || from == to || contains_node(m, y, to)) return y;
    if (from >= 0) return substitute(m, y, at(m, from)->aux, to);
    if (at(m, pred)->op == OP_WHERE) return y;
    for (const char *c = letters; *c; c++) {
        const int other = mk_sym(m, c, 1);
        if (other >= 0 && contains_node(m, y, other) && !contains_node(m, gold, other))
            return substitute(m, y, at(m, other)->aux, to);
    }
    return y;
}

static bool is_congruence(const struct math *m, int x)
{
    return at(m, x)->op == OP_REL && at(m, x)->n == 2 && relation_op(m, x, 0) == R_EQUIV && is_name(m, kid(m, x, 0));
}

bool compare_where(struct math *m, int gold, int pred)
{
    const bool a = at(m, gold)->op == OP_WHERE, b = at(m, pred)->op == OP_WHERE;
    int x = a ? kid(m, gold, 0) : gold, y = b ? kid(m, pred, 0) : pred;
    const int same_y = renamed_value(m, gold, pred, y), same_x = renamed_value(m, pred, gold, x);
    if (same_y >= 0 && same_y != y) return compare(m, x, same_y);
    if (same_x >= 0 && same_x != x) return compare(m, same_x, y);
    if (a && b) {
        const int n = at(m, gold)->n;
        bool same = n == at(m, pred)->n;
        for (int i = 1; i < n && same; i++) {
            bool found = false;
            for (int k = 1; k < n && !found; k++) found = compare(m, kid(m, gold, i), kid(m, pred, k));
            same = found;
        }
        if (!same) return m->reason = "different conditions", false;
    } else if (!at(m, a ? gold : pred)->aux) {
        return m->reason = "a condition on one side only", false;
    }
    const bool left = is_congruence(m, x), right = is_congruence(m, y);
    /* 3 (mod 7) */
    if (left != right) return compare(m, left ? kid(m, x, 1) : x, right ? kid(m, y, 1) : y);
    return compare(m, x, y);
}
