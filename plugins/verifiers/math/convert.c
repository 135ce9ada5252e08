/* Units of one quantity: 5 km is 5000 m, 90 min is 1.5 h. Exact factors only; temperatures and currencies of two countries do not convert. */
#include "units.h"

#include <string.h>

static const struct {
    const char *name, *base;
    int64_t by; /* times the base, times ten to the power */
    int power;
} FACTORS[] = {
    {"km", "m", 1, 3},     {"dm", "m", 1, -1},     {"cm", "m", 1, -2},       {"mm", "m", 1, -3},        {"nm", "m", 1, -9},
    {"mum", "m", 1, -6},   {"ft", "in", 12, 0},    {"yd", "in", 36, 0},      {"mi", "in", 63360, 0},    {"kg", "g", 1, 3},
    {"mg", "g", 1, -3},    {"t", "g", 1, 6},       {"lb", "oz", 16, 0},      {"ms", "s", 1, -3},        {"min", "s", 60, 0},
    {"h", "s", 3600, 0},   {"day", "s", 86400, 0}, {"week", "s", 604800, 0}, {"ml", "l", 1, -3},        {"quart", "pint", 2, 0},
    {"gal", "pint", 8, 0}, {"khz", "hz", 1, 3},    {"kj", "j", 1, 3},        {"kw", "w", 1, 3},         {"kpa", "pa", 1, 3},
    {"kev", "ev", 1, 3},   {"mev", "ev", 1, 6},    {"kcal", "cal", 1, 3},    {"cent", "dollar", 1, -2}, {"kpc", "pc", 1, 3},
    {"mpc", "pc", 1, 6},
};

/* The unit's name with its factors of conversion taken out, which times the value x is the new value; -1: it is not read. */
int unit_convert(struct math *m, int x, const char *text, int n, char *out, int *size)
{
    struct unit u, base = {.n = 0};
    if (n < 1 || text[0] == '?' || n >= UNIT_TEXT || unit_read(text, n, true, &u) < n) return -1;
    for (int i = 0; i < u.n && x >= 0; i++) {
        const char *name = u.part[i].name;
        for (size_t k = 0; k < sizeof FACTORS / sizeof *FACTORS; k++) {
            if (strcmp(FACTORS[k].name, name) != 0) continue;
            name = FACTORS[k].base;
            const int factor = mk_mul(m, mk_int(m, FACTORS[k].by), mk_num(m, false, "1", 1, FACTORS[k].power));
            x = mk_mul(m, x, mk_pow(m, factor, mk_int(m, u.part[i].power)));
            break;
        }
        if (!unit_multiply(&base, name, u.part[i].power)) return -1;
    }
    *size = unit_print(&base, out);
    return x;
}
