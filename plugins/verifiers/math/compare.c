/* Equality by type. A list is a set; a tuple is ordered, and may be an open interval; a unit on
 * only one side is dropped (unit_missing); n% is n or n/100; x = v is v, and a chain of equalities
 * is its last member. */
#include "units.h"

#include <string.h>

enum { MAX_MATCHES = 4000, CONNECTED = 48 /* of a tuple: statements joined by "and" or "or" */ };

static bool set_reason(struct math *m, bool verdict, const char *reason)
{
    m->reason = reason;
    return verdict;
}

static bool is_list(const struct math *m, int x)
{
    return at(m, x)->op == OP_LIST || at(m, x)->op == OP_SET;
}

/* Collects the members of a list or set, a +- b as two; a scalar is a list of one. */
static int items_of(struct math *m, int x, int *items, int max)
{
    int n = 0;
    const int count = is_list(m, x) ? at(m, x)->n : 1;
    for (int i = 0; i < count; i++) {
        const int k = is_list(m, x) ? kid(m, x, i) : x;
        if (n + 2 > max) return -1;
        if (at(m, k)->flags & NODE_PM) {
            const int plus = pm_expand(m, k, 0), minus = pm_expand(m, k, 1);
            if (plus < 0 || minus < 0) return -1;
            items[n++] = plus, items[n++] = minus;
        } else {
            items[n++] = k;
        }
    }
    return n;
}

static bool contains_all(struct math *m, const int *a, int na, const int *b, int nb, bool swapped)
{
    for (int i = 0; i < na; i++) {
        bool found = false;
        for (int k = 0; k < nb && !found; k++) {
            const int j = (i + k) % nb; /* most lists have the same order */
            found = swapped ? compare(m, b[j], a[i]) : compare(m, a[i], b[j]);
        }
        if (!found) return false;
    }
    return true;
}

/* Removes the members' braces if all members are sets and the other side has no sets, as in
 * {{1},{2}} against 1, 2: there the braces only group. */
static void ungroup_sets(const struct math *m, int *a, int na, const int *b, int nb)
{
    for (int i = 0; i < na; i++)
        if (at(m, a[i])->op != OP_SET) return;
    for (int i = 0; i < nb; i++)
        if (at(m, b[i])->op == OP_SET) return;
    for (int i = 0; i < na; i++)
        if (at(m, a[i])->n == 1) a[i] = kid(m, a[i], 0);
}

static bool compare_members(struct math *m, int gold, int pred, int *a, int *b, int max)
{
    const int na = items_of(m, gold, a, max), nb = items_of(m, pred, b, max);
    if (na < 0 || nb < 0) return set_reason(m, false, "a list that is too long");
    bool equal;
    ungroup_sets(m, a, na, b, nb), ungroup_sets(m, b, nb, a, na);
    if ((int64_t)na * nb > MAX_MATCHES) { /* too many to search: compare in order only */
        equal = na == nb;
        for (int i = 0; i < na && equal; i++) equal = compare(m, a[i], b[i]);
    } else {
        equal = contains_all(m, a, na, b, nb, false) && contains_all(m, b, nb, a, na, true);
    }
    return set_reason(m, equal, equal ? "the same members" : "different members");
}

/* Returns which of the letters A to H are the factors of a product or the members of a list; 0:
 * anything else is. */
static unsigned options_of(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    unsigned letters = 0;
    if (a->op != OP_MUL && a->op != OP_SYM && !is_list(m, x)) return 0;
    for (int i = 0; i < (a->op == OP_SYM ? 1 : a->n); i++) {
        const struct node *k = a->op == OP_SYM ? a : at(m, kid(m, x, i));
        const char c = k->op == OP_SYM && m->symbol[k->aux].n_name == 1 ? m->pool[m->symbol[k->aux].name] : 0;
        if (c < 'A' || c > 'H') return 0;
        letters |= 1U << (c - 'A');
    }
    return letters;
}

/* Returns true for a word written without \text, such as blue. */
static bool is_word(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    if (a->op != OP_SYM || m->symbol[a->aux].n_name < 4) return false;
    for (int i = 0; i < m->symbol[a->aux].n_name; i++)
        if (!text_is_letter(m->pool[m->symbol[a->aux].name + i])) return false;
    return true;
}

/* Returns whether "and" and "or" matter: for words, options and equations in several letters.
 * Values are members of a set with either. */
static bool joins_statements(const struct math *m, int x)
{
    int letter = -1;
    for (int i = 0; i < at(m, x)->n; i++) {
        const int k = kid(m, x, i), lhs = at(m, k)->op == OP_REL ? kid(m, k, 0) : -1;
        if (at(m, k)->op == OP_TEXT || options_of(m, k) || is_word(m, k)) return true;
        if (lhs < 0) continue;
        if (letter >= 0 && lhs != letter) return true;
        letter = lhs;
    }
    return false;
}

/* Counts the letters that a list gives values to: 0, another list; 1, one letter; 2, several
 * without an index. */
static int letters_of(const struct math *m, int x)
{
    int first = -1, n = 0;
    if (at(m, x)->op != OP_LIST || at(m, x)->n < 2) return 0;
    for (int i = 0; i < at(m, x)->n; i++) {
        const int k = kid(m, x, i), lhs = at(m, k)->op == OP_REL ? kid(m, k, 0) : -1;
        if (lhs < 0 || relation_op(m, k, 0) != R_EQ || at(m, lhs)->op != OP_SYM || m->symbol[at(m, lhs)->aux].n_name != 1) return 0;
        if (first < 0) first = lhs;
        n = lhs != first ? 2 : n ? n : 1;
    }
    return n;
}

/* Returns true if values of several letters are compared with a set, or values of one letter with a
 * pair: x = 1 or y = 2 against {1, 2}, x = 1 or x = 2 against (1, 2). */
static bool other_roles(const struct math *m, int equations, int other)
{
    const int letters = letters_of(m, equations);
    /* x in (1, 2) */
    if (at(m, other)->op == OP_REL && letters == 1) other = kid(m, other, at(m, other)->n - 1);
    if (letters == 1) return at(m, other)->op == OP_TUPLE;
    if (letters != 2 || (is_list(m, other) && at(m, other)->n && at(m, kid(m, other, 0))->op == OP_REL)) return false;
    return at(m, other)->op == OP_SET || at(m, equations)->aux & JOINT_OR;
}

static bool other_joint(const struct math *m, int gold, int pred)
{
    enum { EITHER = JOINT_AND | JOINT_OR };
    if (at(m, gold)->op != OP_LIST || at(m, pred)->op != OP_LIST) return false;
    const int a = at(m, gold)->aux & EITHER, b = at(m, pred)->aux & EITHER;
    return a && b && a != b && joins_statements(m, gold) && joins_statements(m, pred);
}

/* Returns true for \{x\}, which may be the fractional part, against x. */
static bool set_of_letters(const struct math *m, int x, int other)
{
    return at(m, x)->op == OP_SET && at(m, x)->n == 1 && at(m, kid(m, x, 0))->op <= OP_DEG &&
           at(m, kid(m, x, 0))->flags & NODE_VAR && at(m, other)->op <= OP_DEG;
}

static bool compare_sets(struct math *m, int gold, int pred)
{
    int a[64], b[64];
    if (other_joint(m, gold, pred)) return set_reason(m, false, "\"and\" against \"or\"");
    if (set_of_letters(m, gold, pred) || set_of_letters(m, pred, gold)) return set_reason(m, false, "braces on one side only");
    if (m->nesting > 3) return set_reason(m, false, "lists nested too deeply");
    m->nesting++;
    const bool equal = compare_members(m, gold, pred, m->nesting > 1 ? a : m->items[0], m->nesting > 1 ? b : m->items[1],
                                       m->nesting > 1 ? 64 : 2 * MAX_ITEMS + 2);
    m->nesting--;
    return equal;
}

static bool compare_elements(struct math *m, int gold, int pred, const char *yes, const char *no)
{
    const int n = at(m, gold)->n;
    if (n != at(m, pred)->n) return set_reason(m, false, no);
    for (int i = 0; i < n; i++)
        if (!compare(m, kid(m, gold, i), kid(m, pred, i))) return set_reason(m, false, no);
    return set_reason(m, true, yes);
}

/* Compares statements joined in any order: p \land q and q \land p. */
static bool same_statements(struct math *m, int gold, int pred)
{
    int members[2][16];
    const int sides[2] = {gold, pred}, n = at(m, gold)->n;
    if (n != at(m, pred)->n || n > 16) return set_reason(m, false, "different statements");
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < n; i++) members[k][i] = kid(m, sides[k], i);
    const bool equal = contains_all(m, members[0], n, members[1], n, false) && contains_all(m, members[1], n, members[0], n, true);
    return set_reason(m, equal, equal ? "the same statements" : "different statements");
}

static bool is_otherwise(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    return a->op == OP_TEXT && text_equal((tare_text){m->pool + a->digits, a->n_digits}, text_of("otherwise"), false);
}

/* Returns whether x is a row of cases: a value and its condition. "otherwise" matches any
 * condition, because the other rows must be equal. */
static bool is_piece(const struct math *m, int x)
{
    return at(m, x)->op == OP_TUPLE && at(m, x)->aux == 8 && at(m, x)->n == 2 && !at(m, x)->n_digits;
}

static bool compare_tuples(struct math *m, int gold, int pred)
{
    if (is_piece(m, gold) && is_piece(m, pred) && is_otherwise(m, kid(m, gold, 1)) != is_otherwise(m, kid(m, pred, 1)))
        return compare(m, kid(m, gold, 0), kid(m, pred, 0));
    const struct node *a = at(m, gold), *b = at(m, pred);
    if ((a->aux | b->aux) & 8 && a->aux != b->aux) return set_reason(m, false, "a set's condition against something else");
    if (a->n == 2 && b->n == 2 && a->aux != b->aux) return set_reason(m, false, "other ends of the interval");
    if (a->aux & CONNECTED && a->aux == b->aux) return same_statements(m, gold, pred);
    return compare_elements(m, gold, pred, "equal members in order", "different members in order");
}

/* Returns true if x looks like a time: hours up to 24 and two-digit minutes. */
static bool like_time(const struct math *m, int x)
{
    int64_t hours, minutes;
    return at(m, x)->n == 2 && small_int(m, kid(m, x, 0), &hours) && small_int(m, kid(m, x, 1), &minutes) && hours <= 24 &&
           minutes > 9 && minutes < 60;
}

static bool compare_ratios(struct math *m, int gold, int pred)
{
    if (at(m, gold)->op != OP_RATIO || at(m, pred)->op != OP_RATIO) {
        const bool first = at(m, gold)->op == OP_RATIO;
        const int ratio = first ? gold : pred, other = first ? pred : gold;
        if (at(m, ratio)->n != 2 || at(m, other)->op > OP_DEG) return set_reason(m, false, "a ratio against something else");
        int64_t a, b;
        if (at(m, other)->op == OP_NUM && small_int(m, kid(m, ratio, 0), &a) && small_int(m, kid(m, ratio, 1), &b) && b > 1 &&
            a % b == 0)
            /* ten to five is not 2 */
            return set_reason(m, false, "a ratio that is not in lowest terms against a number");
        const int q = mk_div(m, kid(m, ratio, 0), kid(m, ratio, 1));
        return q >= 0 && decide(m, first ? q : other, first ? other : q);
    }
    const int n = at(m, gold)->n;
    if (n != at(m, pred)->n) return set_reason(m, false, "ratios of different lengths");
    bool zero = false;
    for (int i = 0; i < n; i++) {
        if (at(m, kid(m, gold, i))->op > OP_DEG || at(m, kid(m, pred, i))->op > OP_DEG)
            return compare_elements(m, gold, pred, "equal ratios", "different ratios");
        zero |= num_is(m, kid(m, gold, i), 0) || num_is(m, kid(m, pred, i), 0);
    }
    /* 12:00 is a time, not a ratio; 2:40 and 1:20 may be times too */
    if (zero || (like_time(m, gold) && like_time(m, pred)))
        return compare_elements(m, gold, pred, "equal ratios", "different ratios");
    for (int i = 1; i < n; i++) {
        const int x = mk_mul(m, kid(m, gold, i), kid(m, pred, 0)), y = mk_mul(m, kid(m, pred, i), kid(m, gold, 0));
        if (x < 0 || y < 0 || !decide(m, x, y)) return set_reason(m, false, "different ratios");
    }
    return set_reason(m, true, "equal ratios");
}

static bool name_is(const struct math *m, int x, const char *s, int n)
{
    const struct node *a = at(m, x);
    if (a->op != OP_SYM || m->symbol[a->aux].n_name != n) return false;
    for (int i = 0; i < n; i++)
        if (text_lower(m->pool[m->symbol[a->aux].name + i]) != s[i]) return false;
    return true;
}

static bool compare_texts(struct math *m, int gold, int pred)
{
    const bool first = at(m, gold)->op == OP_TEXT;
    const struct node *t = at(m, first ? gold : pred);
    const bool same = gold == pred || name_is(m, first ? pred : gold, m->pool + t->digits, t->n_digits);
    return set_reason(m, same, same ? "the same words" : "different words");
}

static bool is_inequality(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    if (a->op != OP_REL) return false;
    for (int i = 0; i < a->n_digits; i++)
        if (m->pool[a->digits + i] < R_NE || m->pool[a->digits + i] > R_GE) return false;
    return true;
}

static bool compare_with_relation(struct math *m, int gold, int pred)
{
    int lhs, value;
    const bool a = at(m, gold)->op == OP_REL, b = at(m, pred)->op == OP_REL;
    if (a && b && is_inequality(m, gold) && relation_value(m, pred, &lhs, &value) && is_real_set(m, value))
        return compare(m, gold, value); /* x in S */
    if (a && b && is_inequality(m, pred) && relation_value(m, gold, &lhs, &value) && is_real_set(m, value))
        return compare(m, value, pred);
    if (a && b) return compare_relations(m, gold, pred) == YES;
    const int relation = a ? gold : pred, other = a ? pred : gold;
    if (relation_value(m, relation, &lhs, &value)) return a ? compare(m, value, other) : compare(m, other, value);
    if (is_inequality(m, relation) && (a || m->o.allow_set_relation) && (is_real_set(m, other) || at(m, other)->op == OP_TUPLE)) {
        const int set = relation_to_set(m, relation);
        if (set >= 0) {
            const enum truth t = compare_intervals(m, a ? set : other, a ? other : set);
            return set_reason(m, t == YES, t == YES ? "the inequality's solutions" : "not the inequality's solutions");
        }
    }
    return set_reason(m, false, "a relation against something else");
}

/* Compares intervals and sets as sets of numbers; gold and pred may be lists of one. */
static bool wants_interval(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    return a->op == OP_UNION || a->op == OP_INTER || a->op == OP_DIFF || (a->op == OP_CONST && a->aux >= C_EMPTY);
}

/* Compares several inequalities in one symbol with a set of numbers or other inequalities. */
static enum truth compare_conditions(struct math *m, int gold, int pred)
{
    const bool a = is_list(m, gold) && at(m, gold)->n > 1, b = is_list(m, pred) && at(m, pred)->n > 1;
    const int s = inequality_symbol(m, gold), t = inequality_symbol(m, pred);
    if (!(a && s >= 0) && !(b && t >= 0)) return UNKNOWN;
    if (s >= 0 && t >= 0) {
        if (s != t && m->o.strict) return UNKNOWN;
    } else {
        int lhs, other = s >= 0 ? pred : gold;
        const int symbol = s >= 0 ? s : t;
        if (s < 0 && !m->o.allow_set_relation) return UNKNOWN;
        /* x in S */
        if (relation_value(m, other, &lhs, &other) && lhs >= 0 && lhs != symbol) return UNKNOWN;
        if (!is_real_set(m, other)) return UNKNOWN;
        return compare_intervals(m, s >= 0 ? gold : other, s >= 0 ? other : pred);
    }
    return compare_intervals(m, gold, pred);
}

static bool holds_pi(const struct math *m, int x)
{
    if (at(m, x)->op == OP_CONST) return at(m, x)->aux == C_PI;
    for (int i = 0; i < at(m, x)->n; i++)
        if (holds_pi(m, kid(m, x, i))) return true;
    return false;
}

/* Returns true if the text after the label is another label, as in (B) or (D). */
static bool offers_another(const struct math *m, int value)
{
    const struct node *a = at(m, value);
    const tare_text t = {m->pool + a->digits, a->n_digits};
    if (a->op != OP_TEXT) return false;
    return text_starts(t, 0, "or(", true) || text_starts(t, 0, "and(", true);
}

/* Compares an option's text or its letter: (B) 12 equals 12 and equals B. */
static bool compare_options(struct math *m, int gold, int pred)
{
    const struct node a = *at(m, gold), b = *at(m, pred);
    if (a.op == OP_OPTION && b.op == OP_OPTION)
        return a.aux == b.aux ? compare(m, kid(m, gold, 0), kid(m, pred, 0)) : set_reason(m, false, "different options");
    const bool first = a.op == OP_OPTION;
    const char letter[1] = {text_lower((char)(first ? a.aux : b.aux))};
    if (offers_another(m, kid(m, first ? gold : pred, 0))) return set_reason(m, false, "a choice between options");
    if (name_is(m, first ? pred : gold, letter, 1)) return set_reason(m, true, "the letter of the option");
    /* (A) D is not D */
    if (options_of(m, first ? pred : gold)) return set_reason(m, false, "different options");
    return first ? compare(m, kid(m, gold, 0), pred) : compare(m, gold, kid(m, pred, 0));
}

/* Compares several options: AC equals A, C. */
static bool same_options(const struct math *m, int gold, int pred)
{
    const unsigned letters = options_of(m, gold);
    return letters && letters == options_of(m, pred);
}

static bool same_integral(struct math *m, int gold, int pred)
{
    const int limits = at(m, gold)->aux;
    if (limits != at(m, pred)->aux) return false;
    for (int i = 0; i < (limits ? 3 : 1); i++)
        if (!compare(m, kid(m, gold, i), kid(m, pred, i))) return false;
    return true;
}

/* Reads 3 and 1/7 as one number; -1: two. */
static int mixed_in_words(struct math *m, int x)
{
    const struct node a = *at(m, x);
    int64_t whole;
    if (a.op != OP_LIST || a.n != 2 || a.aux != JOINT_AND) return -1;
    const int part = kid(m, x, 1), one = mk_int(m, 1), zero = mk_int(m, 0);
    if (!small_int(m, kid(m, x, 0), &whole) || whole < 1 || at(m, part)->op == OP_NUM || at(m, part)->op > OP_DEG) return -1;
    if (numeric_less(m, zero, part) != YES || numeric_less(m, part, one) != YES) return -1;
    return mk_add(m, kid(m, x, 0), part);
}

/* Compares values other than lists, relations and measures: matrices, integrals, scalars. */
static bool compare_values(struct math *m, int gold, int pred)
{
    const struct node *a = at(m, gold), *b = at(m, pred);
    if (a->op == OP_MATRIX && b->op == OP_MATRIX) {
        if (a->aux != b->aux) return set_reason(m, false, "matrices of different shapes");
        return compare_elements(m, gold, pred, "equal matrices", "different matrices");
    }
    if (a->op == OP_INT && b->op == OP_INT && same_integral(m, gold, pred)) return set_reason(m, true, "the same integral");
    if (gold != pred && calculus_values(m, &gold, &pred)) return compare(m, gold, pred);
    if (a->op > OP_DEG || b->op > OP_DEG) return set_reason(m, false, "answers of different kinds");
    if (gold != pred && same_segment(m, gold, pred)) return set_reason(m, true, "the same segment");
    /* 30 degrees and pi / 6 */
    if (((a->flags ^ b->flags) & NODE_DEG) && holds_pi(m, a->flags & NODE_DEG ? pred : gold)) {
        const int x = in_radians(m, gold), y = in_radians(m, pred);
        return x >= 0 && y >= 0 && decide(m, x, y);
    }
    if (decide(m, gold, pred)) return true;
    const char *reason = m->reason;
    return same_antiderivatives(m, gold, pred) ? set_reason(m, true, "the same but for the constant of integration")
                                               : set_reason(m, false, reason);
}

bool compare(struct math *m, int gold, int pred)
{
    if (gold < 0 || pred < 0) return set_reason(m, false, "too large");
    const struct node *a = at(m, gold), *b = at(m, pred);
    if (gold == pred && (a->op > OP_DEG || a->flags & NODE_SHAPE) && !(a->op >= OP_PCT && a->op <= OP_BASE))
        return set_reason(m, true, "the same structure");
    if (a->op == OP_OPTION || b->op == OP_OPTION) return compare_options(m, gold, pred);
    if (other_roles(m, gold, pred) || other_roles(m, pred, gold))
        return set_reason(m, false, "equations against another kind of answer");
    if (a->op == OP_SAID || b->op == OP_SAID) return compare_said(m, gold, pred);
    if (compare_families(m, gold, pred) == YES) return true;
    if (a->op == OP_WHERE || b->op == OP_WHERE) return compare_where(m, gold, pred);
    const enum truth conditions = compare_conditions(m, gold, pred);
    if (conditions != UNKNOWN)
        return set_reason(m, conditions == YES, conditions == YES ? "the same solutions" : "different solutions");
    if (a->op == OP_REL || b->op == OP_REL) {
        if (!is_list(m, gold) && !is_list(m, pred)) return compare_with_relation(m, gold, pred);
        int lhs, value; /* k = {1,2,3} against 1,2,3 */
        if (a->op == OP_REL && relation_value(m, gold, &lhs, &value) &&
            (is_list(m, value) || at(m, value)->op == OP_TUPLE || at(m, value)->flags & NODE_PM))
            return compare(m, value, pred);
        if (b->op == OP_REL && relation_value(m, pred, &lhs, &value) &&
            (is_list(m, value) || at(m, value)->op == OP_TUPLE || at(m, value)->flags & NODE_PM))
            return compare(m, gold, value);
        return compare_sets(m, gold, pred);
    }
    if (a->op == OP_TEXT || b->op == OP_TEXT) {
        if (is_list(m, gold) || is_list(m, pred)) return compare_sets(m, gold, pred);
        return compare_texts(m, gold, pred);
    }
    if (wants_interval(m, gold) || wants_interval(m, pred)) {
        const enum truth t = compare_intervals(m, gold, pred);
        if (t != UNKNOWN) return set_reason(m, t == YES, t == YES ? "the same set of numbers" : "different sets of numbers");
        return set_reason(m, false, "sets that cannot be compared");
    }
    const enum truth composite = compare_composites(m, gold, pred);
    if (composite != UNKNOWN) return composite == YES;
    same_notation(m, &gold, &pred);
    a = at(m, gold), b = at(m, pred);
    if (a->op == OP_TUPLE && (b->op == OP_TUPLE || (is_list(m, pred) && !(a->aux & 11)))) {
        if (b->op == OP_TUPLE) return compare_tuples(m, gold, pred);
        if (b->n > 1) return compare_elements(m, gold, pred, "equal members in order", "different members in order");
    }
    if (b->op == OP_TUPLE && is_list(m, gold) && !(b->aux & 11) && a->n > 1 && at(m, kid(m, gold, 0))->op != OP_TUPLE)
        return compare_elements(m, gold, pred, "equal members in order", "different members in order");
    if (m->nesting && (a->op == OP_SET) != (b->op == OP_SET)) return set_reason(m, false, "a set against a member of a set");
    if (is_list(m, gold) != is_list(m, pred) && same_options(m, gold, pred)) return set_reason(m, true, "the same options");
    const int mixed = is_list(m, gold) ? -1 : mixed_in_words(m, pred);
    if (mixed >= 0 && at(m, gold)->op <= OP_DEG) return compare(m, gold, mixed);
    if (is_list(m, gold) || is_list(m, pred) || (a->flags | b->flags) & NODE_PM) return compare_sets(m, gold, pred);
    if ((a->op >= OP_PCT && a->op <= OP_BASE) || (b->op >= OP_PCT && b->op <= OP_BASE)) return compare_measures(m, gold, pred);
    if (a->op == OP_RATIO || b->op == OP_RATIO) return compare_ratios(m, gold, pred);
    return compare_values(m, gold, pred);
}
