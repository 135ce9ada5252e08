/* Sets of real numbers as sorted, disjoint parts with open or closed ends. */
#include "tokens.h"

enum { MAX_PIECES = 64 };

struct piece {
    int low, high; /* nodes */
    bool low_closed, high_closed;
};

struct pieces {
    struct piece p[MAX_PIECES];
    int n;
    bool failed;
};

static int infinity_sign(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    if (!(a->flags & NODE_INF)) return 0;
    if (a->op == OP_CONST) return 1;
    return a->op == OP_MUL && a->n == 2 && (num_is(m, kid(m, x, 0), -1) || num_is(m, kid(m, x, 1), -1)) ? -1 : 1;
}

/* Returns -1, 0 or 1; 2: the ends cannot be ordered. */
static int order_ends(struct math *m, int a, int b)
{
    if (a == b) return 0;
    const int x = infinity_sign(m, a), y = infinity_sign(m, b);
    if (x || y) return x == y ? 0 : x < y ? -1 : 1;
    if ((at(m, a)->flags | at(m, b)->flags) & (NODE_VAR | NODE_SHAPE)) return 2;
    if (decide(m, a, b)) return 0;
    const enum truth less = numeric_less(m, a, b);
    return less == YES ? -1 : less == NO ? 1 : 2;
}

bool is_real_set(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    return a->op == OP_UNION || a->op == OP_INTER || a->op == OP_DIFF || a->op == OP_SET || a->op == OP_LIST ||
           (a->op == OP_TUPLE && a->n == 2) || (a->op == OP_CONST && (a->aux == C_EMPTY || a->aux == C_REALS));
}

static void add_piece(struct math *m, struct pieces *s, struct piece p)
{
    const int o = order_ends(m, p.low, p.high);
    if (o == 2 || s->n == MAX_PIECES) {
        s->failed = true;
        return;
    }
    if (infinity_sign(m, p.low)) p.low_closed = false;
    if (infinity_sign(m, p.high)) p.high_closed = false;
    if (o > 0 || (o == 0 && !(p.low_closed && p.high_closed))) return; /* empty */
    s->p[s->n++] = p;
}

/* Sorts by the lower end and merges adjacent parts. */
static void merge_parts(struct math *m, struct pieces *s)
{
    for (int i = 1; i < s->n && !s->failed; i++) {
        const struct piece p = s->p[i];
        int k = i;
        for (; k > 0; k--) {
            const int o = order_ends(m, s->p[k - 1].low, p.low);
            if (o == 2) s->failed = true;
            if (!(o > 0 || (o == 0 && !s->p[k - 1].low_closed && p.low_closed))) break;
            s->p[k] = s->p[k - 1];
        }
        s->p[k] = p;
    }
    int n = 0;
    for (int i = 0; i < s->n && !s->failed; i++) {
        struct piece *last = n ? &s->p[n - 1] : NULL;
        const int o = last ? order_ends(m, last->high, s->p[i].low) : -1;
        if (o == 2) s->failed = true;
        if (last && (o > 0 || (o == 0 && (last->high_closed || s->p[i].low_closed)))) {
            const int end = order_ends(m, last->high, s->p[i].high);
            if (end == 2) s->failed = true;
            if (end < 0)
                last->high = s->p[i].high, last->high_closed = s->p[i].high_closed;
            else if (end == 0)
                last->high_closed |= s->p[i].high_closed;
        } else {
            s->p[n++] = s->p[i];
        }
    }
    s->n = n;
}

static void complement_set(struct math *m, struct pieces *s)
{
    struct pieces out = {.failed = s->failed};
    const int inf = mk_const(m, C_INF);
    int low = mk_neg(m, inf);
    bool closed = false;
    if (low < 0) s->failed = true;
    for (int i = 0; i < s->n && !s->failed; i++) {
        add_piece(m, &out, (struct piece){low, s->p[i].low, closed, !s->p[i].low_closed});
        low = s->p[i].high;
        closed = !s->p[i].high_closed;
    }
    if (!s->failed && infinity_sign(m, low) <= 0) add_piece(m, &out, (struct piece){low, inf, closed, false});
    out.failed |= s->failed;
    *s = out;
}

static void collect_parts(struct math *m, int x, struct pieces *s, int depth);

/* Inequalities joined by "or" give a union; those joined by "and" or commas an intersection, unless
 * that is empty: x < 1, x > 5. */
static void collect_conditions(struct math *m, int x, struct pieces *s, int depth)
{
    const int n = at(m, x)->n, joints = at(m, x)->aux;
    struct pieces all = {0}, each = {0};
    if (!(joints & JOINT_OR)) { /* not (not A or not B) */
        for (int i = 0; i < n && !all.failed; i++) {
            struct pieces one = {0};
            collect_parts(m, kid(m, x, i), &one, depth + 1), merge_parts(m, &one), complement_set(m, &one);
            all.failed |= one.failed || all.n + one.n > MAX_PIECES;
            for (int k = 0; k < one.n && !all.failed; k++) all.p[all.n++] = one.p[k];
        }
        merge_parts(m, &all), complement_set(m, &all);
        s->failed |= all.failed;
        for (int i = 0; i < all.n && !s->failed; i++) add_piece(m, s, all.p[i]);
        if (all.n || joints & JOINT_AND) return;
    }
    for (int i = 0; i < n && !s->failed; i++) collect_parts(m, kid(m, x, i), &each, depth + 1);
    s->failed |= each.failed;
    for (int i = 0; i < each.n && !s->failed; i++) add_piece(m, s, each.p[i]);
}

static void collect_parts(struct math *m, int x, struct pieces *s, int depth)
{
    const struct node a = *at(m, x);
    if (depth > 40) s->failed = true;
    if (s->failed) return;
    if (a.op == OP_UNION) {
        collect_parts(m, kid(m, x, 0), s, depth + 1);
        collect_parts(m, kid(m, x, 1), s, depth + 1);
    } else if (a.op == OP_INTER || a.op == OP_DIFF) { /* A n B = not (not A u not B) */
        struct pieces u = {0}, v = {0};
        collect_parts(m, kid(m, x, 0), &u, depth + 1), merge_parts(m, &u), complement_set(m, &u);
        collect_parts(m, kid(m, x, 1), &v, depth + 1), merge_parts(m, &v);
        if (a.op == OP_INTER) complement_set(m, &v);
        for (int i = 0; i < v.n && u.n < MAX_PIECES; i++) u.p[u.n++] = v.p[i];
        u.failed |= v.failed;
        merge_parts(m, &u), complement_set(m, &u);
        s->failed |= u.failed;
        for (int i = 0; i < u.n; i++) add_piece(m, s, u.p[i]);
    } else if (a.op == OP_TUPLE && a.n == 2 && !(a.aux & 8)) {
        /* (15, -29) is a pair, not an empty interval */
        const int o = order_ends(m, kid(m, x, 0), kid(m, x, 1));
        if (o > 0 || (o == 0 && (a.aux & 3) != 3)) s->failed = true;
        add_piece(m, s, (struct piece){kid(m, x, 0), kid(m, x, 1), a.aux & 1, a.aux & 2});
    } else if (a.op == OP_LIST && inequality_symbol(m, x) >= 0) {
        collect_conditions(m, x, s, depth);
    } else if (a.op == OP_SET || a.op == OP_LIST) {
        for (int i = 0; i < a.n && !s->failed; i++) {
            const int k = kid(m, x, i);
            if (at(m, k)->op == OP_REL && a.aux & JOINT_OR) /* x in A or x in B */
                collect_parts(m, k, s, depth + 1);
            else if (at(m, k)->flags & (NODE_SHAPE | NODE_PM | NODE_VAR))
                s->failed = true;
            else
                add_piece(m, s, (struct piece){k, k, true, true});
        }
    } else if (a.op == OP_CONST && a.aux == C_REALS) {
        const int inf = mk_const(m, C_INF), low = mk_neg(m, inf);
        if (low < 0)
            s->failed = true;
        else
            add_piece(m, s, (struct piece){low, inf, false, false});
    } else if (a.op == OP_REL) {
        int lhs, value;
        const int set = relation_value(m, x, &lhs, &value) ? value : relation_to_set(m, x);
        if (set < 0)
            s->failed = true;
        else
            collect_parts(m, set, s, depth + 1);
    } else if (depth && a.op <= OP_DEG &&
               /* {0.5} without its backslashes */
               !(a.flags & (NODE_SHAPE | NODE_PM | NODE_VAR | NODE_INF))) {
        add_piece(m, s, (struct piece){x, x, true, true});
    } else if (!(a.op == OP_CONST && a.aux == C_EMPTY)) {
        s->failed = true;
    }
}

/* Compares sets that cannot be ordered (with letters or other sets): the same members of a union,
 * in any order. */
static enum truth compare_unions(struct math *m, int a, int b)
{
    int x[16], y[16], n[2] = {0, 0};
    for (int side = 0; side < 2; side++) {
        int *out = side ? y : x, rest = side ? b : a;
        while (at(m, rest)->op == OP_UNION && n[side] < 15) out[n[side]++] = kid(m, rest, 1), rest = kid(m, rest, 0);
        out[n[side]++] = rest;
    }
    if (n[0] != n[1] || n[0] < 2) return UNKNOWN;
    for (int i = 0; i < n[0]; i++) {
        bool found = false;
        for (int k = 0; k < n[1] && !found; k++)
            found = at(m, x[i])->op != OP_UNION && at(m, y[k])->op != OP_UNION && compare(m, x[i], y[k]);
        if (!found) return NO;
    }
    return YES;
}

enum truth compare_intervals(struct math *m, int a, int b)
{
    struct pieces x = {0}, y = {0};
    if (a == b) return YES;
    collect_parts(m, a, &x, 0), merge_parts(m, &x);
    collect_parts(m, b, &y, 0), merge_parts(m, &y);
    if (x.failed || y.failed) return compare_unions(m, a, b);
    if (x.n != y.n) return NO;
    for (int i = 0; i < x.n; i++) {
        if (x.p[i].low_closed != y.p[i].low_closed || x.p[i].high_closed != y.p[i].high_closed) return NO;
        const int low = order_ends(m, x.p[i].low, y.p[i].low), high = order_ends(m, x.p[i].high, y.p[i].high);
        if (low == 2 || high == 2) return UNKNOWN;
        if (low || high) return NO;
    }
    return YES;
}
