/* Units of measure as products of powers: m/s, kg \cdot m^2, meters per second, square feet,
 * \frac{m}{s^2}. */
#include "units.h"

#include <stdio.h>
#include <string.h>

struct reader {
    const char *s;
    int64_t n, i;
    bool in_text;
};

static void skip_blanks(struct reader *r)
{
    for (; r->i < r->n; r->i++) {
        const char c = r->s[r->i];
        if (c == '\\' && r->i + 1 < r->n && strchr(",;:! ", r->s[r->i + 1]))
            r->i++;
        else if (!text_is_space(c) && c != '~' && c != '{' && c != '}')
            return;
    }
}

static bool word_here(const struct reader *r, const char *w)
{
    const int64_t n = (int64_t)strlen(w);
    return r->i + n <= r->n && !memcmp(r->s + r->i, w, (size_t)n) && !(r->i + n < r->n && text_is_letter(r->s[r->i + n]));
}

static bool take_word(struct reader *r, const char *w)
{
    if (!word_here(r, w)) return false;
    r->i += (int64_t)strlen(w);
    return true;
}

static bool same_name(struct unit_name a, struct unit_name b)
{
    return a.kind == b.kind && a.prefix == b.prefix;
}

bool unit_multiply(struct unit *u, struct unit_name name, int power)
{
    int k = 0;
    if (!power) return true;
    while (k < u->n && !same_name(u->part[k].name, name)) k++;
    if (k == UNIT_PARTS) return false;
    if (k == u->n) u->part[u->n++].name = name, u->part[k].power = 0;
    u->part[k].power += power;
    return true;
}

/* Reads ^2, ^{-1}, squared, cubed; 1 by default. */
static int read_power(struct reader *r)
{
    const int64_t start = r->i;
    skip_blanks(r);
    if (take_word(r, "squared")) return 2;
    if (take_word(r, "cubed")) return 3;
    bool minus = false;
    int64_t k = r->i;
    if (k >= r->n || r->s[k] != '^') return r->i = start, 1;
    for (k++; k < r->n && strchr("{- ", r->s[k]); k++) minus |= r->s[k] == '-';
    if (k >= r->n || !text_is_digit(r->s[k])) return r->i = start, 1;
    const int power = r->s[k] - '0';
    for (k++; k < r->n && (r->s[k] == '}' || r->s[k] == ' '); k++) continue;
    r->i = k;
    return minus ? -power : power;
}

/* Reads two adjacent units, as in kgm^{2} and Jkg^{-1}; the power belongs to the second. */
static bool read_glued(struct reader *r, struct unit *u, int64_t end, int sign)
{
    if (!r->in_text || end >= r->n || r->s[end] != '^') return false;
    for (int64_t k = end - 1; k > r->i; k--) {
        const struct unit_name first = find_unit(r->s + r->i, k - r->i, true), second = find_unit(r->s + k, end - k, true);
        if (!first.kind || !second.kind) continue;
        r->i = end;
        return unit_multiply(u, first, sign) && unit_multiply(u, second, read_power(r) * sign);
    }
    return false;
}

static void skip_fonts(struct reader *r) /* \mathrm{kg}\cdot\mathrm{m} */
{
    static const char *const fonts[] = {"\\mathrm", "\\text", "\\textrm", "\\rm", "\\mbox", "\\operatorname", NULL};
    skip_blanks(r);
    for (const char *const *f = fonts; *f;) {
        const bool here = take_word(r, *f);
        if (here) skip_blanks(r);
        f = here ? fonts : f + 1;
    }
}

static bool omega_at(const struct reader *r, int64_t i)
{
    return i + 6 <= r->n && !memcmp(r->s + i, "\\Omega", 6) && !(i + 6 < r->n && text_is_letter(r->s[i + 6]));
}

/* Reads the letters at the cursor, after a prefix that is a command: \mu m, \micro\text{F}. kind 0:
 * not a unit. */
static struct unit_name read_name(struct reader *r, int64_t *end)
{
    char text[24] = "\\mu";
    const bool micro = take_word(r, "\\micro") || (r->i + 3 < r->n && !memcmp(r->s + r->i, "\\mu", 3) && (r->i += 3, true));
    if (micro) skip_fonts(r);
    if (take_word(r, "\\Omega")) return *end = r->i, find_unit("ohm", 3, true);
    for (*end = r->i; *end < r->n && text_is_letter(r->s[*end]);) ++*end;
    const int64_t n = *end - r->i;
    if (*end < r->n && r->s[*end] == '\\' && n == 1 && !micro && omega_at(r, *end)) { /* k\Omega */
        const char prefixed[4] = {r->s[r->i], 'o', 'h', 'm'};
        return *end += 6, find_unit(prefixed, 4, true);
    }
    if (!micro) return find_unit(r->s + r->i, n, r->in_text);
    if (n < 1 || n > 20) return (struct unit_name){0, 0};
    memcpy(text + 3, r->s + r->i, (size_t)n);
    return find_unit(text, n + 3, true);
}

/* Reads one name with its power: cm^2, square feet. */
static bool read_factor(struct reader *r, struct unit *u, int sign)
{
    int power = 1;
    int64_t end;
    skip_blanks(r);
    if (take_word(r, "square") || take_word(r, "sq.") || take_word(r, "sq")) power = 2;
    if (power == 1 && (take_word(r, "cubic") || take_word(r, "cu"))) power = 3;
    skip_fonts(r);
    const struct unit_name name = read_name(r, &end);
    if (!name.kind) return read_glued(r, u, end, sign);
    const bool ms = end - r->i == 2 && !memcmp(r->s + r->i, "ms", 2);
    r->i = end;
    /* ft. */
    if (r->i < r->n && r->s[r->i] == '.' && (r->i + 1 >= r->n || r->s[r->i + 1] == ' ')) r->i++;
    power *= read_power(r) * sign;
    if (ms && power * sign < 0 && r->in_text) /* ms^{-1} */
        return unit_multiply(u, find_unit("m", 1, true), sign) && unit_multiply(u, find_unit("s", 1, true), power);
    if (unit_is(name, "unit")) power = sign; /* of any dimension */
    return unit_multiply(u, name, power);
}

void unit_raise_last(struct unit *u, int power)
{
    int last = u->n - 1;
    for (int i = 0; i < u->n; i++)
        if (u->part[i].power < 0) last = i;
    if (last >= 0) u->part[last].power *= power;
}

int64_t unit_read(const char *s, int64_t n, bool in_text, struct unit *u)
{
    struct reader r = {s, n, 0, in_text};
    int sign = 1, group = 1;
    bool open = false;
    u->n = 0;
    if (!read_factor(&r, u, 1)) return 0;
    int64_t used = r.i;
    for (;;) {
        skip_blanks(&r);
        if (open && r.i < r.n && r.s[r.i] == ')') {
            r.i++, open = false, group = 1, used = r.i;
            continue;
        }
        sign = group;
        if (r.i < r.n && r.s[r.i] == '/')
            r.i++, sign = -1;
        else if (take_word(&r, "per"))
            sign = -1;
        else if (r.i < r.n && strchr("*-", r.s[r.i]))
            r.i++;
        else if (!take_word(&r, "\\cdot"))
            take_word(&r, "\\times");
        skip_blanks(&r);
        if (sign < 0 && !open && r.i < r.n && r.s[r.i] == '(') r.i++, open = true, group = -1;
        struct unit more = *u;
        if (!read_factor(&r, &more, sign)) break;
        *u = more;
        if (!open) used = r.i;
    }
    if (open) u->n = 0;
    r.i = used;
    skip_blanks(&r);
    return open ? 0 : r.i;
}

int unit_print(const struct unit *u, char *out)
{
    char names[UNIT_PARTS][24];
    int powers[UNIT_PARTS], n = 0, size = 0;
    for (int i = 0; i < u->n; i++) { /* by name */
        const char *prefix, *symbol;
        char name[24];
        if (!u->part[i].power) continue;
        const int length = unit_spell(u->part[i].name, &prefix, &symbol);
        snprintf(name, sizeof name, "%s%.*s", prefix, length, symbol);
        int k = n++;
        for (; k > 0 && strcmp(names[k - 1], name) > 0; k--) memcpy(names[k], names[k - 1], sizeof name), powers[k] = powers[k - 1];
        memcpy(names[k], name, sizeof name), powers[k] = u->part[i].power;
    }
    for (int i = 0; i < n; i++)
        size += snprintf(out + size, 32, powers[i] == 1 ? "%s%s" : "%s%s^%d", i ? " " : "", names[i], powers[i]);
    return size;
}
