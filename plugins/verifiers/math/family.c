/* Arithmetic progressions a + b k over all integers k: solutions of trigonometric equations,
 * residues. x = pi/3 + k pi (k in Z), x = 3k + 1 and x = 1 (mod 3), {3k + 1 : k in Z} are unions of
 * them and are compared as sets: the letter is a dummy, the sign of b and integer multiples of b in
 * a do not matter, and a + b k is the union of a + 2b k and a + b + 2b k. */
#include "flint.h"

#include <string.h>

enum { MOST = 16, EXPANDED = 48, SPLIT = 12 };

struct family {
    int start, step; /* nodes; step 0: a single value */
};

struct families {
    struct family f[EXPANDED];
    int n;
    bool declared; /* the text says that the letter is an integer */
};

static bool is_builder(const struct math *m, int x, const char *word)
{
    const struct node *a = at(m, x);
    return a->op == OP_TUPLE && text_equal((tare_text){m->pool + a->digits, a->n_digits}, text_of(word), false);
}

/* Returns the letter k of a condition k \in Z; -1: another condition. */
static int whole_letter(const struct math *m, int x)
{
    if (at(m, x)->op == OP_LIST && at(m, x)->n == 1) x = kid(m, x, 0);
    if (at(m, x)->op != OP_REL || at(m, x)->n != 2 || relation_op(m, x, 0) != R_IN) return -1;
    const int letter = kid(m, x, 0), set = at(m, kid(m, x, 1))->aux;
    return at(m, kid(m, x, 1))->op == OP_CONST && set == C_INTEGERS && at(m, letter)->op == OP_SYM ? letter : -1;
}

/* Returns the value of x = value; x itself if it is not such a relation. */
static int value_of(struct math *m, int x)
{
    int lhs, value;
    return at(m, x)->op == OP_REL && relation_value(m, x, &lhs, &value) && lhs >= 0 ? value : x;
}

/* Returns the letter in x that usually stands for an integer: k, n, m ...; -1: none, -2:
 * several. */
static int counting_letter(struct math *m, int x)
{
    const int y = value_of(m, x);
    const struct node a = *at(m, y);
    int found = -1;
    if (a.op == OP_SYM && m->symbol[a.aux].n_name == 1 && strchr("knmljt", m->pool[m->symbol[a.aux].name])) return y;
    for (int i = 0; i < a.n && found != -2; i++) {
        const int k = a.flags & NODE_VAR ? counting_letter(m, kid(m, y, i)) : -1;
        if (k >= 0) found = found < 0 || found == k ? k : -2;
        if (k == -2) found = -2;
    }
    return found;
}

static bool add_family(struct families *s, int start, int step)
{
    if (start < 0 || step < 0 || s->n == MOST) return false;
    s->f[s->n++] = (struct family){start, step};
    return true;
}

/* Collects the values of x, which must be linear in the letter. false: they are not. */
static bool collect_families(struct math *m, int x, int letter, struct families *s, int depth)
{
    x = value_of(m, x);
    const struct node a = *at(m, x);
    if (depth > 4) return false;
    if (a.op == OP_LIST || a.op == OP_SET) {
        bool ok = true;
        for (int i = 0; i < a.n && ok; i++) ok = collect_families(m, kid(m, x, i), letter, s, depth + 1);
        return ok;
    }
    if (a.flags & NODE_PM) {
        const int plus = pm_expand(m, x, 0), minus = pm_expand(m, x, 1);
        return plus >= 0 && minus >= 0 && collect_families(m, plus, letter, s, depth + 1) &&
               collect_families(m, minus, letter, s, depth + 1);
    }
    if (a.op > OP_DEG || a.flags & (NODE_SHAPE | NODE_INF)) return false;
    const int symbol = at(m, letter)->aux, start = substitute(m, x, symbol, mk_int(m, 0)),
              step = mk_add(m, substitute(m, x, symbol, mk_int(m, 1)), mk_neg(m, start));
    const int line = mk_add(m, start, mk_mul(m, step, letter));
    if (line < 0 || (line != x && identity_equal(m, x, line) != YES)) return false;
    return add_family(s, in_radians(m, start), in_radians(m, step));
}

/* false: x is not a union of progressions */
static bool families_of(struct math *m, int x, struct families *s)
{
    int lhs, value;
    if (at(m, x)->op == OP_REL && relation_op(m, x, 0) == R_IN && relation_value(m, x, &lhs, &value)) x = value;
    if (at(m, x)->op == OP_SET && at(m, x)->n == 1) x = kid(m, x, 0);
    const struct node a = *at(m, x);
    if (a.op == OP_WHERE && a.n == 2 && is_builder(m, kid(m, x, 1), "modulus")) {
        const int residue = kid(m, x, 0), relation = at(m, residue)->op == OP_REL;
        s->declared = true;
        if (relation && !is_name(m, kid(m, residue, 0))) return false;
        return add_family(s, relation ? kid(m, residue, 1) : residue, kid(m, kid(m, x, 1), 0));
    }
    const bool where = a.op == OP_WHERE && a.n == 2, builder = is_builder(m, x, "builder");
    s->declared = where || builder;
    const int letter = s->declared ? whole_letter(m, kid(m, x, 1)) : counting_letter(m, x);
    return letter >= 0 && collect_families(m, s->declared ? kid(m, x, 0) : x, letter, s, 0);
}

static bool is_step(const struct math *m, const struct family *f)
{
    return !num_is(m, f->step, 0);
}

/* Returns whether a - b is an integer multiple of the step. */
static bool is_congruent(struct math *m, int a, int b, int step)
{
    if (a == b) return true;
    if (num_is(m, step, 0)) return decide(m, a, b);
    const int ratio = mk_div(m, mk_add(m, a, mk_neg(m, b)), step);
    if (ratio < 0) return false;
    if (at(m, ratio)->flags & NODE_VAR) return decide(m, a, b);
    const int near = mk_add(m, ratio, mk_div(m, mk_int(m, 1), mk_int(m, 2))), whole = mk_func(m, F_FLOOR, near);
    if (whole >= 0 && decide(m, ratio, whole)) return true;
    fmpz_t n; /* pi / 3 and 7 pi / 3: their difference over 2 pi is not rational as written */
    fmpz_init(n);
    const bool found = near >= 0 && ball_floor(m, near, false, n) && fmpz_bits(n) < 40;
    const int64_t multiple = found ? fmpz_get_si(n) : 0;
    fmpz_clear(n);
    return found && decide(m, a, mk_add(m, b, mk_mul(m, mk_int(m, multiple), step)));
}

/* Returns how often the step divides the large one: 1 to SPLIT; 0: it does not. */
static int step_quotient(struct math *m, int step, int large)
{
    for (int k = 1; k <= SPLIT; k++) {
        const int multiple = mk_mul(m, step, mk_int(m, k));
        if (multiple >= 0 && (decide(m, multiple, large) || decide(m, mk_neg(m, multiple), large))) return k;
    }
    return 0;
}

/* Rewrites every progression with the step `large`: as several ones if needed. */
static bool expand_step(struct math *m, struct families *s, int large)
{
    struct families out = {.declared = s->declared};
    for (int i = 0; i < s->n; i++) {
        const int k = is_step(m, &s->f[i]) ? step_quotient(m, s->f[i].step, large) : 0;
        if (!k || out.n + k > EXPANDED) return false;
        for (int j = 0; j < k; j++) {
            const int start = mk_add(m, s->f[i].start, mk_mul(m, s->f[i].step, mk_int(m, j)));
            if (start < 0) return false;
            out.f[out.n++] = (struct family){start, large};
        }
    }
    *s = out;
    return true;
}

static bool covers_family(struct math *m, const struct families *a, const struct families *b)
{
    for (int i = 0; i < b->n; i++) {
        bool found = false;
        for (int k = 0; k < a->n && !found; k++) found = is_congruent(m, a->f[k].start, b->f[i].start, b->f[i].step);
        if (!found) return false;
    }
    return true;
}

/* Returns the longest step of both; -1: some cannot be compared. */
static int longest_step(struct math *m, const struct families *a, const struct families *b)
{
    int best = -1;
    for (int i = 0; i < a->n + b->n; i++) {
        const int step = i < a->n ? a->f[i].step : b->f[i - a->n].step;
        if (at(m, step)->flags & NODE_VAR) return -1;
        if (best < 0 || numeric_less(m, mk_func(m, F_ABS, best), mk_func(m, F_ABS, step)) == YES) best = step;
    }
    return best;
}

/* Compares families when neither side declares its letter: only a renamed letter is allowed, as in
 * x = 3k + 1 for x = 3n + 1. */
static bool renamed_only(struct math *m, const struct families *a, const struct families *b)
{
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
        if (!is_step(m, &a->f[i]) || !decide(m, a->f[i].start, b->f[i].start) || !decide(m, a->f[i].step, b->f[i].step))
            return false;
    return true;
}

enum truth compare_families(struct math *m, int gold, int pred)
{
    struct families a = {.n = 0}, b = {.n = 0};
    const int ops[2] = {at(m, gold)->op, at(m, pred)->op};
    bool any = ops[0] == OP_REL;
    for (int k = 0; k < 2; k++) any |= ops[k] == OP_WHERE || ops[k] == OP_TUPLE;
    if (!any || !((at(m, gold)->flags & NODE_VAR) | (at(m, pred)->flags & NODE_VAR))) return UNKNOWN;
    if (!families_of(m, gold, &a) || !families_of(m, pred, &b) || !a.n || !b.n) return UNKNOWN;
    if (!a.declared && !b.declared) return ops[0] == OP_REL && renamed_only(m, &a, &b) ? YES : UNKNOWN;
    const int large = longest_step(m, &a, &b);
    if (large < 0 || !expand_step(m, &a, large) || !expand_step(m, &b, large)) return UNKNOWN;
    const bool same = covers_family(m, &a, &b) && covers_family(m, &b, &a);
    if (same) m->reason = "the same arithmetic progressions";
    return same ? YES : UNKNOWN;
}
