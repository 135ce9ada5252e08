/* Parses the values of one axis: a list of texts and ranges. */
#include "sweep/sweep.h"

#include <math.h>
#include <string.h>

enum { VALUES_MOST = 10000 };

struct list {
    struct arena *a;
    const char **values;
    int64_t n, capacity;
    const char *where;
    struct err *e;
};

static tare_status add_value(struct list *l, const char *text, int64_t size)
{
    if (l->n == VALUES_MOST) FAIL(l->e, TARE_E_CONFIG, "%s: more than %d values", l->where, VALUES_MOST);
    if (l->n == l->capacity) {
        const char **larger;
        const int64_t capacity = l->capacity ? 2 * l->capacity : 16;
        TRY(arena_new(l->a, &larger, capacity, l->e));
        for (int64_t i = 0; i < l->n; i++) larger[i] = l->values[i];
        l->values = larger;
        l->capacity = capacity;
    }
    return arena_strdup(l->a, text, size, (char **)(uintptr_t)&l->values[l->n++], l->e);
}

const char *sweep_number(char *buffer, double x)
{
    if (x == floor(x) && fabs(x) < 1e15) {
        /* the shortest text of 10 is 1e+01, which does not look like a whole number */
        snprintf(buffer, 32, "%.0f", x);
        return buffer;
    }
    return str_from_double(buffer, x);
}

static tare_status add_number(struct list *l, double x)
{
    char text[40];
    return add_value(l, sweep_number(text, x), -1);
}

/* Adds count values between low and high, rounded to 6 digits so that names and texts stay short;
 * the ends are exact. */
static tare_status add_points(struct list *l, double low, double high, int64_t count, bool ratio)
{
    for (int64_t i = 0; i < count; i++) {
        const double t = count > 1 ? (double)i / (double)(count - 1) : 0;
        double x = ratio ? exp(log(low) + t * (log(high) - log(low))) : low + t * (high - low);
        char text[40];
        snprintf(text, sizeof text, "%.6g", x);
        TRY(str_to_double(text, &x, l->e));
        if (i == 0) x = low;
        if (i == count - 1 && count > 1) x = high;
        TRY(add_number(l, x));
    }
    return TARE_OK;
}

static tare_status add_steps(struct list *l, double low, double high, double step)
{
    const int64_t count = (int64_t)floor((high - low) / step + 1e-9);
    if (count >= VALUES_MOST) FAIL(l->e, TARE_E_CONFIG, "%s: more than %d values", l->where, VALUES_MOST);
    for (int64_t i = 0; i <= count; i++) {
        double x;
        char text[40];
        snprintf(text, sizeof text, "%.12g", low + (double)i * step);
        TRY(str_to_double(text, &x, l->e));
        TRY(add_number(l, x));
    }
    return TARE_OK;
}

/* Parses "LOW..HIGH", "LOW..HIGH step S" or "[log] LOW..HIGH x N". *is_range = false for other
 * items. */
static tare_status add_range(struct list *l, const char *item, bool *is_range)
{
    char text[200], *dots, *tail;
    double low, high, step = 1;
    int64_t count = 0;
    struct err ignored;
    const bool ratio = !strncmp(item, "log ", 4);
    const char *begin = item + (ratio ? 4 + strspn(item + 4, " ") : 0);
    *is_range = false;
    if (strlen(begin) >= sizeof text) return TARE_OK;
    snprintf(text, sizeof text, "%s", begin);
    dots = strstr(text, "..");
    if (!dots) {
        if (ratio) FAIL(l->e, TARE_E_CONFIG, "%s: '%s': expected log LOW..HIGH x COUNT", l->where, item);
        return TARE_OK;
    }
    *dots = 0;
    tail = dots + 2 + strcspn(dots + 2, " ");
    if (*tail) *tail++ = 0;
    tail += strspn(tail, " ");
    if (str_to_double(text, &low, &ignored) || str_to_double(dots + 2, &high, &ignored)) {
        if (ratio) FAIL(l->e, TARE_E_CONFIG, "%s: '%s': expected log LOW..HIGH x COUNT", l->where, item);
        return TARE_OK; /* a path that contains .. */
    }
    *is_range = true;
    const bool times = tail[0] == 'x' && tail[1] == ' ', by = !strncmp(tail, "step ", 5);
    if ((*tail && !times && !by) || (times && (str_to_int(tail + 2, &count, &ignored) || count < 1 || count > VALUES_MOST)) ||
        (by && (str_to_double(tail + 5, &step, &ignored) || !(step > 0))) || (ratio && !times))
        FAIL(l->e, TARE_E_CONFIG, "%s: '%s': expected LOW..HIGH, LOW..HIGH step S, LOW..HIGH x COUNT or log LOW..HIGH x COUNT",
             l->where, item);
    if (high < low) FAIL(l->e, TARE_E_CONFIG, "%s: '%s': the end of a range must be above its start", l->where, item);
    if (ratio && !(low > 0)) FAIL(l->e, TARE_E_CONFIG, "%s: '%s': a range in equal ratios must start above 0", l->where, item);
    if (!*tail && (low != floor(low) || high != floor(high)))
        FAIL(l->e, TARE_E_CONFIG, "%s: '%s': give a step (step 0.1) or a count (x 5)", l->where, item);
    return times ? add_points(l, low, high, count, ratio) : add_steps(l, low, high, step);
}

tare_status sweep_values(const char *text, const char *where, struct arena *a, const char ***values, int64_t *n, struct err *e)
{
    struct list l = {.a = a, .where = where, .e = e};
    const char *separator = strchr(text, '|') ? "|" : ",";
    for (const char *at = text;;) {
        const char *end = at + strcspn(at, separator), *last = end;
        char *item;
        bool is_range;
        at += strspn(at, " \t");
        while (last > at && (last[-1] == ' ' || last[-1] == '\t')) last--;
        if (last <= at) FAIL(e, TARE_E_CONFIG, "%s: an empty value in '%s'; remove the separator", where, text);
        TRY(arena_strdup(a, at, last - at, &item, e));
        TRY(add_range(&l, item, &is_range));
        if (!is_range) TRY(add_value(&l, item, -1));
        if (!*end) break;
        at = end + 1;
    }
    *values = l.values;
    *n = l.n;
    return TARE_OK;
}
