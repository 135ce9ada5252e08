/* Converts between units of one quantity: 5 km is 5000 m, 90 min is 1.5 h, 5 h 30 min is 330 min.
 * Exact factors only; currencies do not convert. */
#include "units.h"

#include <string.h>

static int in_kelvin(struct math *m, int x, bool celsius)
{
    if (celsius) return mk_add(m, x, mk_num(m, false, "27315", 5, -2));
    return mk_mul(m, mk_add(m, x, mk_num(m, false, "45967", 5, -2)), mk_div(m, mk_int(m, 5), mk_int(m, 9)));
}

/* Multiplies x by the unit's factor, and *base by its base units. */
static int convert_part(struct math *m, int x, struct unit_name name, int power, struct unit *base)
{
    int64_t by, over;
    int ten;
    struct unit parts = {.n = 0};
    const char *product = unit_base(name, &by, &over, &ten);
    if (!product) {
        const char *prefix, *symbol;
        const int n = unit_spell(name, &prefix, &symbol);
        unit_multiply(&parts, find_unit(symbol, n, true), 1);
    } else if (unit_read(product, (int64_t)strlen(product), true, &parts) < (int64_t)strlen(product)) {
        return -1;
    }
    const int factor = mk_mul(m, mk_div(m, mk_int(m, by), mk_int(m, over)), mk_num(m, false, "1", 1, ten));
    for (int i = 0; i < parts.n; i++)
        if (!unit_multiply(base, parts.part[i].name, parts.part[i].power * power)) return -1;
    return mk_mul(m, x, mk_pow(m, factor, mk_int(m, power)));
}

/* Returns the value x, whose unit is written in text, in base units. */
static int unit_convert(struct math *m, int x, tare_text text, bool sterling, struct unit *base)
{
    struct unit u;
    base->n = 0;
    if (text.size < 1 || text.data[0] == '?' || text.size >= UNIT_TEXT || unit_read(text.data, text.size, true, &u) < text.size)
        return -1;
    const bool celsius = unit_is(u.part[0].name, "degc");
    if (u.n == 1 && u.part[0].power == 1 && (celsius || unit_is(u.part[0].name, "degf")))
        return unit_multiply(base, find_unit("K", 1, true), 1) ? in_kelvin(m, x, celsius) : -1;
    for (int i = 0; i < u.n && x >= 0; i++) {
        struct unit_name name = u.part[i].name;
        if (sterling && unit_is(name, "pound")) name = find_unit("sterling", 8, true);
        x = convert_part(m, x, name, u.part[i].power, base);
    }
    return x;
}

bool mentions_sterling(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    struct unit u;
    if (a->op == OP_TUPLE || a->op == OP_LIST)
        for (int i = 0; i < a->n; i++)
            if (mentions_sterling(m, kid(m, x, i))) return true;
    if (a->op != OP_UNIT || !unit_read(m->pool + a->digits, a->n_digits, true, &u)) return false;
    return unit_is(u.part[0].name, "sterling") || unit_is(u.part[0].name, "pence");
}

int measure_in_base(struct math *m, int x, bool sterling, char *out, int *size)
{
    const struct node a = *at(m, x);
    const bool composite = a.op == OP_TUPLE || a.op == OP_LIST;
    int sum = -1;
    char text[UNIT_TEXT], first[UNIT_TEXT] = "";
    if (!composite && a.op != OP_UNIT) return -1;
    for (int i = 0; i < (composite ? a.n : 1); i++) {
        const struct node part = *at(m, composite ? kid(m, x, i) : x);
        const int value = part.op == OP_UNIT ? kid(m, composite ? kid(m, x, i) : x, 0) : -1;
        tare_text name = {m->pool + part.digits, part.n_digits};
        struct unit base;
        if (value < 0 || at(m, value)->op > OP_DEG) return -1;
        if (composite && i && name.size == 1 && name.data[0] == 'm' && first[0] == 'h' && !first[1])
            name = (tare_text){"min", 3}; /* 2h 15m */
        for (int k = 0; k < i; k++)       /* 2 h and 3 h are separate times */
            if (composite &&
                text_equal(name, (tare_text){m->pool + at(m, kid(m, x, k))->digits, at(m, kid(m, x, k))->n_digits}, false))
                return -1;
        const int y = unit_convert(m, value, name, sterling, &base);
        const int n = unit_print(&base, text);
        if (y < 0 || (i && (n != *size || memcmp(text, out, (size_t)n) != 0))) return -1;
        if (!i && name.size < UNIT_TEXT) memcpy(first, name.data, (size_t)name.size);
        memcpy(out, text, (size_t)n), *size = n;
        sum = i ? mk_add(m, sum, y) : y;
    }
    return sum;
}
