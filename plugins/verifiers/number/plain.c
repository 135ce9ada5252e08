/* Writes the digits, signs and fractions of Unicode in ASCII. */
#include "common/fences.h"
#include "number.h"

#include <stdio.h>
#include <string.h>

/* Decodes the character at p; *c -1: invalid. Returns its size. */
static int64_t decode_at(tare_text t, int64_t i, int32_t *c)
{
    const unsigned char *p = (const unsigned char *)t.data + i;
    const int n = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 0;
    *c = -1;
    if (!n || n > t.size - i) return 1;
    int32_t code = n == 1 ? p[0] : p[0] & (0xFF >> (n + 1));
    for (int k = 1; k < n; k++) {
        if ((p[k] & 0xC0) != 0x80) return 1;
        code = code << 6 | (p[k] & 0x3F);
    }
    *c = code;
    return n;
}

/* Returns the digit or sign that c is a form of; 0: none. */
static char ascii_of(int32_t c)
{
    static const int32_t zeros[] = {0x660, 0x6F0, 0x966, 0x9E6, 0xE50, 0xFF10};
    for (size_t k = 0; k < sizeof zeros / sizeof *zeros; k++)
        if (c >= zeros[k] && c < zeros[k] + 10) return (char)('0' + c - zeros[k]);
    if (c == 0x2212 || c == 0xFE63 || c == 0xFF0D || (c >= 0x2010 && c <= 0x2013)) return '-';
    if (c == 0xA0 || c == 0x202F || (c >= 0x2005 && c <= 0x200A)) return '\x1F'; /* a blank that does not separate */
    if (c == 0x66B || c == 0xFF0E) return '.';
    if (c == 0x66C || c == 0xFF0C) return ',';
    if (c == 0x2019 || c == 0x2BC) return '\'';
    if (c == 0x2044 || c == 0x2215 || c == 0xFF0F) return '/';
    if (c == 0xFF05 || c == 0x66A) return '%';
    if (c == 0xFF0B) return '+';
    return c == 0xD7 || c == 0xB7 || c == 0x22C5 ? '*' : '\0';
}

static const char *fraction_of(int32_t c)
{
    static const struct {
        int32_t c;
        const char *text;
    } fractions[] = {{0xBC, "1/4"},   {0xBD, "1/2"},   {0xBE, "3/4"},   {0x2150, "1/7"}, {0x2151, "1/9"}, {0x2153, "1/3"},
                     {0x2154, "2/3"}, {0x2155, "1/5"}, {0x2156, "2/5"}, {0x2157, "3/5"}, {0x2158, "4/5"}, {0x2159, "1/6"},
                     {0x215A, "5/6"}, {0x215B, "1/8"}, {0x215C, "3/8"}, {0x215D, "5/8"}, {0x215E, "7/8"}};
    for (size_t k = 0; k < sizeof fractions / sizeof *fractions; k++)
        if (fractions[k].c == c) return fractions[k].text;
    return NULL;
}

/* Returns the digit or minus that c is the superscript of; 0: none. */
static char raised(int32_t c)
{
    if (c == 0xB2 || c == 0xB3) return (char)('2' + c - 0xB2);
    if (c == 0xB9) return '1';
    if (c == 0x207B) return '-';
    return c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ? (char)('0' + c - 0x2070) : '\0';
}

/* Writes blanks over programs in fences, in place. */
static void blank_programs(tare_text t, char *to)
{
    struct fence f;
    for (int64_t at = 0; fence_next(t, &at, &f);) {
        const enum fence_kind kind = fence_kind_of(f.label);
        if (kind == FENCE_PYTHON || kind == FENCE_PROGRAM) memset(to + (f.whole.data - t.data), ' ', (size_t)f.whole.size);
    }
}

tare_text number_plain(tare_text t, char *to)
{
    int64_t n = 0;
    bool up = false;
    for (int64_t i = 0, size; i < t.size; i += size) {
        int32_t c;
        size = decode_at(t, i, &c);
        const char raise = c >= 0x80 ? raised(c) : '\0', sign = c >= 0x80 ? ascii_of(c) : '\0';
        const char *fraction = c >= 0x80 ? fraction_of(c) : NULL;
        if (raise) {
            if (!up) to[n++] = '^';
            to[n++] = raise;
        } else if (fraction) {
            if (n && text_is_digit(to[n - 1])) to[n++] = ' ';
            memcpy(to + n, fraction, 3);
            n += 3;
        } else if (sign) {
            to[n++] = sign;
        } else if (text_starts(t, i, "{,}", false)) {
            to[n++] = ',';
            size = 3;
        } else if (n && text_is_digit(to[n - 1]) && i + 2 < t.size && t.data[i] == '\\' && strchr(",;! :", t.data[i + 1]) &&
                   text_is_digit(t.data[i + 2])) {
            to[n++] = '\x1F';
            size = 2;
        } else {
            memcpy(to + n, t.data + i, (size_t)size);
            n += size;
        }
        up = raise != '\0';
    }
    blank_programs((tare_text){to, n}, to);
    return (tare_text){to, n};
}
