/* Finds the last number of a text: all of it, or nothing. */
#include "number.h"

#include <string.h>

static int64_t digits_end(tare_text t, int64_t i)
{
    while (i < t.size && text_is_digit(t.data[i])) i++;
    return i;
}

/* Returns the end of an exponent that begins at p, e5 or E-3; p: none. */
static int64_t exponent_end(tare_text t, int64_t p)
{
    if (p + 1 >= t.size || (t.data[p] != 'e' && t.data[p] != 'E')) return p;
    const int64_t q = p + 1 + (t.data[p + 1] == '-' || t.data[p + 1] == '+'), end = digits_end(t, q);
    return end > q && (end == t.size || !text_is_letter(t.data[end])) ? end : p;
}

/* Returns the end of groups of three digits behind p, separated by one and the same sign; p: none.
 * A blank separates groups only in front of exactly three digits, as all signs do. */
static int64_t groups_end(tare_text t, int64_t p, char *sign)
{
    *sign = p < t.size ? t.data[p] : '\0';
    if (!*sign || !strchr(",'_. \x1F", *sign)) return p;
    int64_t end = p;
    while (end + 3 < t.size && t.data[end] == *sign && digits_end(t, end + 1) == end + 4) end += 4;
    if (*sign == ' ' && end > p && end < t.size && t.data[end] == '/') end -= 4; /* 2 100/3 */
    return end;
}

/* Returns whether the commas of [i, end) group digits as in India: 1,23,456. */
static bool is_indian(tare_text t, int64_t i, int64_t end)
{
    int64_t p = digits_end(t, i);
    int groups = 0;
    if (p - i > 2) return false;
    for (; p < end; groups++) {
        const int64_t q = digits_end(t, p + 1);
        if (q - p - 1 != (q < end ? 2 : 3)) return false;
        p = q;
    }
    return groups >= 2;
}

/* Reads digits joined by commas without blanks that are no groups of three: a list, whose last member
 * counts, or something else that is not read. *i: where the number begins. Returns its end. */
static int64_t read_commas(tare_text t, int64_t *i, const struct options *o, struct written *w)
{
    int64_t end = digits_end(t, *i), last = *i;
    bool three = false;
    int members = 1;
    while (end + 1 < t.size && t.data[end] == ',' && text_is_digit(t.data[end + 1])) {
        last = end + 1;
        end = digits_end(t, last);
        three |= end - last == 3;
        members++;
    }
    if (is_indian(t, *i, end)) return end;
    if (o->comma && members == 2 && !three)
        w->point = ',';
    else if (three || members < 3) /* 12,345,67; 1,5 may be a decimal or a list */
        w->readable = false;
    else
        *i = last;
    return end;
}

/* Reads an unsigned decimal at *i: digits, groups, decimal sign, exponent. Returns its end, or *i if
 * there is none. *i moves to the last number of a list. */
static int64_t decimal_end(tare_text t, int64_t *i, const struct options *o, struct written *w)
{
    int64_t p = digits_end(t, *i);
    char sign = '\0';
    w->point = '.';
    if (o->thousands && p > *i) {
        const int64_t end = p - *i <= 3 ? groups_end(t, p, &sign) : p;
        const bool comma = end + 1 < t.size && t.data[end] == ',' && text_is_digit(t.data[end + 1]);
        const bool dots = sign == '.' && end > p;
        if (dots && !(end > p + 4 || (comma && digits_end(t, end + 1) != end + 4)))
            ; /* 1.234 is a decimal */
        else if (end > p && sign != ',' && comma) {
            w->point = ',';
            return exponent_end(t, digits_end(t, end + 1));
        } else if (dots && end + 1 < t.size && t.data[end] == '.' && text_is_digit(t.data[end + 1]))
            ; /* 1.234.567.8: a version */
        else if (dots) {
            w->point = '\0';
            return end;
        } else if (comma && (end == p || sign == ',')) {
            p = read_commas(t, i, o, w);
        } else {
            p = end;
        }
    }
    if (p + 1 < t.size && t.data[p] == '.' && text_is_digit(t.data[p + 1])) p = digits_end(t, p + 1);
    return p > *i ? exponent_end(t, p) : p;
}

/* Returns whether a minus belongs to the number that starts at i. Looks back over a currency sign,
 * and over a blank behind a sign that nothing but a relation precedes: "= - 5". */
static bool negative_before(tare_text t, int64_t i, int64_t *begin)
{
    if (i > 1 && t.data[i - 1] == ' ' && (t.data[i - 2] == '$' || t.data[i - 2] == '-')) i--;
    if (i > 0 && t.data[i - 1] == '$')
        i -= i > 1 && t.data[i - 2] == '\\' ? 2 : 1;
    else if (i > 2 && !memcmp(t.data + i - 3, "\xE2\x82\xAC", 3))
        i -= 3;
    else if (i > 1 && !memcmp(t.data + i - 2, "\xC2\xA3", 2))
        i -= 2;
    const int64_t near = i;
    if (i > 1 && t.data[i - 1] == ' ' && t.data[i - 2] == '-') i--;
    if (!i || (t.data[i - 1] != '-' && t.data[i - 1] != '+')) return false;
    const int64_t sign = i - 1;
    int64_t k = sign;
    while (k > 0 && sign - k < 8 && t.data[k - 1] == ' ') k--;
    const char c = k ? t.data[k - 1] : '\n';
    /* a blank behind the sign: only a relation may precede it */
    const bool apart = i < near || text_is_space(t.data[i]);
    if (apart && !(k && strchr("=:#(", c))) return false;
    if (!apart && k == sign && (text_is_digit(c) || text_is_letter(c) || strchr(")]}%", c)))
        return false; /* an operator, or a dash */
    *begin = sign;
    return t.data[sign] == '-';
}

/* Reads an argument of \frac at p: {12}, {-3}, a digit, or a blank and a digit. Returns its end; p: it
 * is no number. */
static int64_t fraction_part(tare_text t, int64_t p, tare_text *part, bool *negative)
{
    struct written w = {.readable = true};
    int64_t i = p;
    while (i < t.size && t.data[i] == ' ') i++;
    if (i < t.size && text_is_digit(t.data[i])) return *part = text_slice(t, i, i + 1), i + 1;
    if (i >= t.size || t.data[i] != '{') return p;
    for (i++; i < t.size && t.data[i] == ' ';) i++;
    if (i < t.size && t.data[i] == '-') {
        *negative = !*negative;
        i++;
    }
    const int64_t begin = i;
    int64_t end = decimal_end(t, &i, &(struct options){.thousands = true}, &w);
    if (end == begin || i != begin || !w.readable || w.point == ',') return p;
    *part = text_slice(t, begin, end);
    while (end < t.size && t.data[end] == ' ') end++;
    return end < t.size && t.data[end] == '}' ? end + 1 : p;
}

/* Reads \frac{a}{b} or a root that starts at i (at the backslash). Returns its end, or i if there is
 * none. */
static int64_t latex_number(tare_text t, int64_t i, struct written *w)
{
    static const char *const names[] = {"\\frac", "\\dfrac", "\\tfrac", "\\cfrac", NULL};
    int64_t p = i;
    for (const char *const *n = names; *n && p == i; n++)
        if (text_starts(t, i, *n, false)) p = i + (int64_t)strlen(*n);
    const bool root = p == i && text_starts(t, i, "\\sqrt", false);
    if (root) p = i + 5;
    if (p == i || (p < t.size && text_is_letter(t.data[p]))) return i;
    if (!root) {
        const int64_t a = fraction_part(t, p, &w->num, &w->negative), b = a > p ? fraction_part(t, a, &w->den, &w->negative) : a;
        if (b > a) {
            w->readable = true;
            w->point = '.';
            return b;
        }
    }
    if (root && p < t.size && t.data[p] == '[')
        while (p < t.size && t.data[p] != '{' && t.data[p] != '\n') p++;
    w->negative = false;
    if (p >= t.size || t.data[p] != '{') return root ? digits_end(t, p) > p ? digits_end(t, p) : i : i;
    int64_t end = text_group_end(t, p);
    if (!root && end >= 0 && end < t.size && t.data[end] == '{') end = text_group_end(t, end);
    return end < 0 ? t.size : end;
}

/* Returns the end of "x 10^5" that begins at p, with the exponent in *shift; p: none. */
static int64_t power_of_ten(tare_text t, int64_t p, int64_t *shift)
{
    static const char *const signs[] = {"*", "x", "\\times", "\\cdot", NULL};
    int64_t i = p;
    while (i < t.size && i < p + 3 && t.data[i] == ' ') i++;
    const int64_t at = i;
    for (const char *const *s = signs; *s && i == at; s++)
        if (text_starts(t, i, *s, false)) i += (int64_t)strlen(*s);
    if (i == at) return p;
    while (i < t.size && t.data[i] == ' ') i++;
    if (!text_starts(t, i, "10^", false)) return p;
    i += 3;
    const bool brace = i < t.size && t.data[i] == '{';
    i += brace;
    const bool minus = i < t.size && t.data[i] == '-';
    i += minus || (i < t.size && t.data[i] == '+');
    const int64_t end = digits_end(t, i);
    if (end == i || end - i > 15 || (brace && (end >= t.size || t.data[end] != '}'))) return p;
    int64_t e = 0;
    for (int64_t k = i; k < end; k++) e = e * 10 + (t.data[k] - '0');
    *shift = minus ? -e : e;
    return end + brace;
}

/* Reads a word that multiplies behind p: "5 million", "3k". Returns its end; p: none. */
static int64_t multiplied(tare_text t, int64_t p, struct written *w)
{
    static const struct {
        const char *word;
        int shift; /* -1: the number is not read */
    } words[] = {{"hundred", 2}, {"thousand", 3}, {"million", 6}, {"billion", 9}, {"trillion", 12}, {"dozen", -1}, {"dozens", -1}};
    if (p < t.size && t.data[p] == 'k' && (p + 1 == t.size || !(text_is_letter(t.data[p + 1]) || text_is_digit(t.data[p + 1])))) {
        w->shift += 3;
        return p + 1;
    }
    int64_t i = p;
    while (i < t.size && i < p + 2 && (t.data[i] == ' ' || t.data[i] == '-')) i++;
    for (size_t k = 0; i > p && k < sizeof words / sizeof *words; k++) {
        const int64_t end = i + (int64_t)strlen(words[k].word);
        if (!text_starts(t, i, words[k].word, true) || (end < t.size && text_is_letter(t.data[end]))) continue;
        if (words[k].shift < 0) w->readable = false;
        w->shift += words[k].shift > 0 ? words[k].shift : 0;
        return end;
    }
    return p;
}

/* Returns the end of signs and digits that make the number [i, p) a date, a time, a version, a power
 * or a telephone number; p: none. */
static int64_t spoiled_end(tare_text t, int64_t i, int64_t p, struct written *w)
{
    int64_t end = p;
    if (end < t.size && t.data[end] == '^') w->readable = false;
    while (end + 1 < t.size && strchr("/:.^", t.data[end]) && t.data[end] &&
           (text_is_digit(t.data[end + 1]) || (t.data[end] == '^' && t.data[end + 1] == '-'))) {
        w->readable = false;
        end = digits_end(t, end + 2);
    }
    if (text_starts(t, end, ".(", false) && end + 2 < t.size && text_is_digit(t.data[end + 2])) { /* 0.(3) */
        w->readable = false;
        end = digits_end(t, end + 2);
    }
    /* 2024-01-05, 555-1234, 0x1F */
    const int64_t first = digits_end(t, i);
    if (first == p && p + 1 < t.size && t.data[p] == '-' && text_is_digit(t.data[p + 1])) {
        const int64_t second = digits_end(t, p + 1);
        const bool third = second + 1 < t.size && t.data[second] == '-' && text_is_digit(t.data[second + 1]);
        if (third || (p - i == 3 && second - p == 5)) {
            w->readable = false;
            while (end + 1 < t.size && t.data[end] == '-' && text_is_digit(t.data[end + 1])) end = digits_end(t, end + 1);
        }
    }
    if (p == i + 1 && t.data[i] == '0' && p + 1 < t.size && strchr("xX", t.data[p]) &&
        (text_is_digit(t.data[p + 1]) || strchr("abcdefABCDEF", t.data[p + 1]))) {
        w->readable = false;
        for (end = p + 1; end < t.size && (text_is_digit(t.data[end]) || text_is_letter(t.data[end]));) end++;
    }
    return end;
}

static int64_t plain_number(tare_text t, int64_t *i, const struct options *o, struct written *w)
{
    w->readable = true;
    int64_t p = decimal_end(t, i, o, w);
    w->num = text_slice(t, *i, p);
    int64_t q = p;
    while (q < t.size && q < p + 2 && t.data[q] == ' ') q++;
    if (q + 1 < t.size && t.data[q] == '/') {
        const int64_t slash = q++;
        if (slash > p) /* blanks on both sides, or on none */
            while (q < t.size && q < slash + 3 && t.data[q] == ' ') q++;
        struct written den = {.readable = true};
        int64_t from = q;
        const int64_t end = decimal_end(t, &from, o, &den);
        if (end > q && from == q && den.readable && den.point == '.') {
            w->den = text_slice(t, q, end);
            p = end;
        }
    }
    if (!w->den.size) {
        p = power_of_ten(t, p, &w->shift);
        p = multiplied(t, p, w);
    }
    return w->shift ? p : spoiled_end(t, *i, p, w);
}

/* Skips a word with its digits, and the exponent of a unit or a variable. */
static int64_t skip_word(tare_text t, int64_t i)
{
    const bool command = i > 0 && t.data[i - 1] == '\\';
    while (i < t.size && (text_is_letter(t.data[i]) || (!command && (text_is_digit(t.data[i]) || t.data[i] == '_')))) i++;
    if (!command && i < t.size && t.data[i] == '^') {
        i += 1 + (i + 1 < t.size && (t.data[i + 1] == '{' || t.data[i + 1] == '-'));
        i = digits_end(t, i);
    }
    return i;
}

/* Returns whether `last` is the whole of a mixed number whose fraction begins at i: "2 1/2". */
static bool is_whole_of(tare_text t, const struct written *last, int64_t i)
{
    return last->readable && !last->den.size && !last->percent && !last->shift && last->point == '.' && i > 0 &&
           strchr(" \x1F", t.data[i - 1]) && last->all.data + last->all.size == t.data + i - 1 && last->all.size &&
           text_is_digit(last->all.data[last->all.size - 1]);
}

bool number_last(tare_text t, const struct options *o, struct written *last)
{
    bool found = false;
    for (int64_t i = 0; i < t.size;) {
        const char c = t.data[i];
        struct written w = {0};
        int64_t end = i, from = i;
        if (c == '\\')
            end = latex_number(t, i, &w);
        else if (text_is_digit(c) || (c == '.' && i + 1 < t.size && text_is_digit(t.data[i + 1])))
            end = plain_number(t, &from, o, &w);
        if (end == i) {
            i = text_is_letter(c) ? skip_word(t, i) : i + 1;
            continue;
        }
        int64_t begin = from;
        if (negative_before(t, from, &begin)) w.negative = !w.negative;
        int64_t power = begin;
        while (power > 0 && strchr("{ ", t.data[power - 1])) power--;
        if (power > 0 && t.data[power - 1] == '^') w.readable = false;
        if (from > 2 && !memcmp(t.data + from - 3, "\xE2\x88\x9A", 3)) w.readable = false; /* a root */
        if (found && w.den.size && begin == from && is_whole_of(t, last, from)) {
            w.whole = last->num;
            w.negative = last->negative;
            begin = last->all.data - t.data;
        }
        const int64_t sign = end + (end < t.size && t.data[end] == ' ');
        if (sign < t.size && t.data[sign] == '%') {
            w.percent = true;
            end = sign + 1;
        } else if (text_starts(t, sign, "\\%", false)) {
            w.percent = true;
            end = sign + 2;
        }
        w.all = text_slice(t, begin, end);
        *last = w;
        found = true;
        i = end;
    }
    return found;
}
