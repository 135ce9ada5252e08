/* Compares values with their units: one unit, several (5 ft 8 in), times of day, percent, numerals
 * in a base. */
#include "units.h"

#include <string.h>

static bool set_reason(struct math *m, bool verdict, const char *reason)
{
    m->reason = reason;
    return verdict;
}

static int word_end(const char *s, int i, int n)
{
    while (i < n && s[i] != ' ') i++;
    return i;
}

/* Returns whether the words of a are among those of b, in order, ignoring a plural s. The counted
 * thing may be described: tickets, children tickets. */
static bool words_among(const char *a, int na, const char *b, int nb)
{
    int k = 0;
    for (int i = 0, end; i < na; i = end + 1) {
        end = word_end(a, i, na);
        const int size = end - i - (end > i + 1 && a[end - 1] == 's');
        bool found = false;
        for (int last; k < nb && !found; k = last + 1) {
            last = word_end(b, k, nb);
            found = last - k - (last > k + 1 && b[last - 1] == 's') == size && !memcmp(a + i, b + k, (size_t)size);
        }
        if (!found) return false;
    }
    return true;
}

static bool same_words(const char *a, int na, const char *b, int nb)
{
    return words_among(a + 1, na - 1, b + 1, nb - 1) || words_among(b + 1, nb - 1, a + 1, na - 1);
}

/* Returns whether the units are equal, or equal except for powers that b, the answer, omits: cm for
 * cm^2. */
static bool same_units(const char *a, int na, const char *b, int nb)
{
    if (na == nb && !memcmp(a, b, (size_t)na)) return true;
    if (a[0] == '?' && b[0] == '?') return same_words(a, na, b, nb);
    if (a[0] == '?' || b[0] == '?' || !memchr(a, '^', (size_t)na) || memchr(b, '^', (size_t)nb)) return false;
    const char *with = a, *without = b;
    const int n = na, other = nb;
    int i = 0, k = 0;
    for (; i < n; i++) {
        if (with[i] != '^') {
            if (k == other || with[i] != without[k++]) return false;
            continue;
        }
        if (i + 1 < n && with[i + 1] == '-') return false;
        while (i + 1 < n && with[i + 1] != ' ') i++;
    }
    return k == other;
}

/* Compares measures in different units: 5 km is 5000 m, 5 h 30 min is 330 min. */
static bool compare_converted(struct math *m, int gold, int pred)
{
    const bool sterling = mentions_sterling(m, gold) || mentions_sterling(m, pred);
    char unit[2][UNIT_TEXT];
    int size[2];
    const int x = measure_in_base(m, gold, sterling, unit[0], &size[0]),
              y = x < 0 ? -1 : measure_in_base(m, pred, sterling, unit[1], &size[1]);
    if (y < 0 || size[0] != size[1] || memcmp(unit[0], unit[1], (size_t)size[0]) != 0) return false;
    return decide(m, x, y) && set_reason(m, true, "the same measure in other units");
}

/* Returns one bit each for a unit, for percent and for degrees; 0: a bare number. */
static int measured_in(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    return a->op == OP_UNIT ? 1 : a->op == OP_PCT ? 2 : a->flags & NODE_DEG ? 4 : 0;
}

/* Returns x for x rad. */
static int without_radians(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    return a->op == OP_UNIT && a->n_digits == 3 && !memcmp(m->pool + a->digits, "rad", 3) ? kid(m, x, 0) : x;
}

/* Returns true if pred is the value times letters named like the unit: 20 m^2 where the unit is not
 * marked. */
static bool equal_in_letters(struct math *m, int gold, int pred)
{
    const struct node a = *at(m, gold);
    struct unit u;
    int product = kid(m, gold, 0);
    if (a.n_digits < 1 || m->pool[a.digits] == '?' || unit_read(m->pool + a.digits, a.n_digits, true, &u) < a.n_digits)
        return false;
    for (int i = 0; i < u.n && product >= 0; i++) {
        const char *prefix, *symbol;
        const int n = unit_spell(u.part[i].name, &prefix, &symbol);
        if (n != 1 || *prefix) return set_reason(m, false, "different units");
        product = mk_mul(m, product, mk_pow(m, mk_sym(m, symbol, 1), mk_int(m, u.part[i].power)));
    }
    return product >= 0 && at(m, product)->op <= OP_DEG && decide(m, product, pred);
}

bool compare_said(struct math *m, int gold, int pred)
{
    const struct node a = *at(m, gold), b = *at(m, pred);
    const bool both = a.op == OP_SAID && b.op == OP_SAID;
    if (both && !same_words(m->pool + a.digits, a.n_digits, m->pool + b.digits, b.n_digits))
        return set_reason(m, false, "different words after the value"); /* north and south */
    return compare(m, a.op == OP_SAID ? kid(m, gold, 0) : gold, b.op == OP_SAID ? kid(m, pred, 0) : pred);
}

bool compare_measures(struct math *m, int gold, int pred)
{
    const struct node a = *at(m, gold), b = *at(m, pred);
    if (a.op == OP_UNIT && b.op == OP_UNIT) {
        if (same_units(m->pool + a.digits, a.n_digits, m->pool + b.digits, b.n_digits))
            return compare(m, kid(m, gold, 0), kid(m, pred, 0));
        return compare_converted(m, gold, pred) || set_reason(m, false, "different units");
    }
    if (a.op == OP_UNIT && b.op <= OP_DEG && b.flags & NODE_VAR) return equal_in_letters(m, gold, pred);
    const int g = without_radians(m, gold), q = without_radians(m, pred);
    if ((g != gold || q != pred) && ((at(m, g)->flags ^ at(m, q)->flags) & NODE_DEG)) {
        const int u = in_radians(m, g), v = in_radians(m, q);
        return u >= 0 && v >= 0 && decide(m, u, v);
    }
    const int kinds = measured_in(m, gold) | measured_in(m, pred);
    if (kinds & (kinds - 1)) return set_reason(m, false, "different units");
    if (a.op == OP_UNIT || b.op == OP_UNIT) {
        const int ratios = (at(m, a.op == OP_UNIT ? kid(m, gold, 0) : gold)->op == OP_RATIO) +
                           (at(m, b.op == OP_UNIT ? kid(m, pred, 0) : pred)->op == OP_RATIO);
        if (ratios == 1) return set_reason(m, false, "a ratio against a measure"); /* 1:2 is not $0.50 */
        if (!m->o.unit_missing) return set_reason(m, false, "a unit on one side only (policy)");
        return compare(m, a.op == OP_UNIT ? kid(m, gold, 0) : gold, b.op == OP_UNIT ? kid(m, pred, 0) : pred);
    }
    if (a.op == OP_BASE || b.op == OP_BASE)
        return compare(m, a.op == OP_BASE ? kid(m, gold, 0) : gold, b.op == OP_BASE ? kid(m, pred, 0) : pred);
    if (a.op == OP_PCT && b.op == OP_PCT) return compare(m, kid(m, gold, 0), kid(m, pred, 0));
    const int x = a.op == OP_PCT ? kid(m, gold, 0) : gold, y = b.op == OP_PCT ? kid(m, pred, 0) : pred;
    if (compare(m, x, y)) return set_reason(m, true, "equal but for the percent sign");
    const int hundred = mk_int(m, 100);
    if (at(m, x)->op > OP_DEG || at(m, y)->op > OP_DEG) return false;
    const int u = a.op == OP_PCT ? mk_div(m, x, hundred) : x, v = b.op == OP_PCT ? mk_div(m, y, hundred) : y;
    return u >= 0 && v >= 0 && decide(m, u, v);
}

/* ---------------------------------------------------------------- several units, and times of
 * day */

enum { NO_HALF, BEFORE_NOON, AFTER_NOON };

static bool unit_text_is(const struct math *m, int x, const char *s)
{
    const struct node *a = at(m, x);
    return a->op == OP_UNIT && text_equal((tare_text){m->pool + a->digits, a->n_digits}, text_of(s), false);
}

/* Returns x in minutes after midnight, of 12 hours if am or pm is given: 7:30, 19:30, 7:30 pm, 7
 * pm; -1: not a time of day. */
static int minutes_of_day(const struct math *m, int x, int *half)
{
    int64_t part[2] = {0, 0};
    *half = unit_text_is(m, x, "am") ? BEFORE_NOON : unit_text_is(m, x, "pm") ? AFTER_NOON : NO_HALF;
    const int value = *half ? kid(m, x, 0) : x, ratio = at(m, value)->op == OP_RATIO;
    if (ratio && at(m, value)->n != 2) return -1;
    for (int k = 0; k < 1 + ratio; k++)
        if (!small_int(m, ratio ? kid(m, value, k) : value, &part[k])) return -1;
    if ((!ratio && !*half) || part[0] < 0 || part[0] > (*half ? 12 : 24) || part[1] < 0 || part[1] > 59) return -1;
    return (int)(60 * (*half ? part[0] % 12 : part[0]) + part[1]);
}

static enum truth compare_times(struct math *m, int gold, int pred)
{
    int half[2];
    const int x = minutes_of_day(m, gold, &half[0]), y = minutes_of_day(m, pred, &half[1]);
    if (!half[0] && !half[1]) return UNKNOWN;
    if (x < 0 || y < 0) return half[0] && half[1] && x != y ? NO : UNKNOWN;
    const bool afternoon = half[0] == AFTER_NOON || half[1] == AFTER_NOON;
    bool same = half[0] == half[1] && x == y;
    if (!half[0] != !half[1]) { /* 19:30 equals 7:30 pm, and 7:30 without am or pm */
        const int said_half = half[0] ? x : y, bare = half[0] ? y : x;
        same = bare == said_half + (afternoon ? 720 : 0) || (m->o.unit_missing && bare >= 60 && bare < 720 && bare == said_half);
    }
    return set_reason(m, same, same ? "the same time of day" : "different times of day") ? YES : NO;
}

/* Returns a ratio as a time: 2:15 for 2 hours 15 minutes. */
static int ratio_as_hours(struct math *m, int x)
{
    int parts[2] = {-1, -1};
    static const tare_text units[] = {{"h", 1}, {"min", 3}};
    if (at(m, x)->op != OP_RATIO || at(m, x)->n != 2) return x;
    for (int k = 0; k < 2; k++) {
        const int part = kid(m, x, k);
        if (at(m, part)->op != OP_NUM) return x;
        parts[k] = mk_unit(m, part, units[k]);
    }
    return mk_named(m, "measures", parts, 2);
}

static bool has_parts(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    if ((a->op != OP_TUPLE && a->op != OP_LIST) || (a->op == OP_TUPLE && a->aux != 8) || a->n < 2) return false;
    for (int i = 0; i < a->n; i++)
        if (at(m, kid(m, x, i))->op != OP_UNIT) return false;
    return true;
}

enum truth compare_composites(struct math *m, int gold, int pred)
{
    const enum truth times = compare_times(m, gold, pred);
    if (times != UNKNOWN) return times;
    const bool a = has_parts(m, gold), b = has_parts(m, pred);
    if (!a && !b) return UNKNOWN;
    const int x = ratio_as_hours(m, gold), y = ratio_as_hours(m, pred);
    return x >= 0 && y >= 0 && compare_converted(m, x, y) ? YES : UNKNOWN;
}
