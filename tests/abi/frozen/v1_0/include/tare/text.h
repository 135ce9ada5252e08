/* Numbers in text that do not depend on the locale of the program that loads the plugin:
 * header-only, and not part of the ABI. In a German or French program, printf writes 0,5 and strtod
 * stops at the point of 0.5. */
#ifndef TARE_TEXT_H
#define TARE_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the decimal point of the calling thread's locale. Returns its length in bytes. */
__attribute__((unused)) static size_t tare_point(char point[16])
{
    char probe[16];
    const int n = snprintf(probe, sizeof probe, "%.1f", 0.5);
    const size_t length = n > 2 && n < (int)sizeof probe ? (size_t)n - 2 : 1;
    memcpy(point, n > 2 ? probe + 1 : ".", length);
    point[length] = 0;
    return length;
}

/* One conversion of a format, from its % to its letter, with the numbers that replace each *. */
struct tare_conversion {
    char spec[48];          /* with % and the letter */
    int letter, longs, big; /* longs: number of l; big: L, j, z, t or 0 */
};

/* Reads the conversion at format, which points to its %; returns the format after it. */
__attribute__((unused)) static const char *tare_read_conversion(const char *format, va_list *args, struct tare_conversion *c)
{
    size_t n = 0;
    memset(c, 0, sizeof *c);
    c->spec[n++] = *format++;
    for (; *format && strchr("-+ #0123456789.*hlLjzt", *format) && n < sizeof c->spec - 16; format++) {
        if (*format == 'l') c->longs++;
        if (strchr("Ljzt", *format)) c->big = *format;
        if (*format != '*') {
            c->spec[n++] = *format;
            continue;
        }
        const int given = va_arg(*args, int);
        if (given < 0 && c->spec[n - 1] == '.')
            n--; /* a negative precision means no precision */
        else
            n += (size_t)snprintf(c->spec + n, 16, "%d", given);
    }
    c->letter = *format;
    c->spec[n] = *format;
    return *format ? format + 1 : format;
}

/* Writes a floating-point number with a point as its decimal point. */
__attribute__((unused)) static int tare_put_number(char *to, size_t capacity, const struct tare_conversion *c, va_list *args)
{
    char text[400], point[16];
    const size_t length = tare_point(point);
    const int n = c->big == 'L' ? snprintf(text, sizeof text, c->spec, va_arg(*args, long double))
                                : snprintf(text, sizeof text, c->spec, va_arg(*args, double));
    char *at = n > 0 && n < (int)sizeof text ? strstr(text, point) : NULL;
    if (at) {
        *at = '.';
        memmove(at + 1, at + length, strlen(at + length) + 1);
    }
    return snprintf(to, capacity, "%s", text);
}

__attribute__((unused)) static int tare_put_whole(char *to, size_t capacity, const struct tare_conversion *c, va_list *args)
{
    if (c->big == 'j') return snprintf(to, capacity, c->spec, va_arg(*args, intmax_t));
    if (c->big == 'z') return snprintf(to, capacity, c->spec, va_arg(*args, size_t));
    if (c->big == 't') return snprintf(to, capacity, c->spec, va_arg(*args, ptrdiff_t));
    if (c->longs > 1) return snprintf(to, capacity, c->spec, va_arg(*args, long long));
    if (c->longs) return snprintf(to, capacity, c->spec, va_arg(*args, long));
    return snprintf(to, capacity, c->spec, va_arg(*args, int));
}

/* Like vsnprintf, with a point in every number. */
__attribute__((unused)) static int tare_format(char *text, size_t capacity, const char *format, va_list given)
{
    char point[16];
    if (tare_point(point) == 1 && point[0] == '.') return vsnprintf(text, capacity, format, given);
    va_list args;
    size_t used = 0;
    va_copy(args, given);
    while (*format) {
        struct tare_conversion c;
        char *to = used < capacity ? text + used : NULL;
        const size_t remaining = used < capacity ? capacity - used : 0, plain = strcspn(format, "%");
        int n = (int)plain;
        if (plain) {
            snprintf(to, remaining, "%.*s", n, format);
            format += plain;
        } else {
            format = tare_read_conversion(format, &args, &c);
            if (!c.letter || c.letter == '%')
                n = snprintf(to, remaining, "%s", c.letter ? "%" : "");
            else if (strchr("eEfFgGaA", c.letter))
                n = tare_put_number(to, remaining, &c, &args);
            else if (c.letter == 's')
                n = snprintf(to, remaining, c.spec, va_arg(args, const char *));
            else if (c.letter == 'p')
                n = snprintf(to, remaining, c.spec, va_arg(args, void *));
            else
                n = tare_put_whole(to, remaining, &c, &args);
        }
        if (n > 0) used += (size_t)n;
    }
    va_end(args);
    return (int)used;
}

/* Reads text[size] as one decimal number: digits, a sign, a point, an exponent. Returns 0 when the
 * text is anything else. */
__attribute__((unused)) static int tare_read_number(const char *text, int64_t size, double *out)
{
    char copy[128], point[16], *end;
    const size_t length = tare_point(point);
    size_t n = 0;
    if (size < 1 || size > 64) return 0;
    for (int64_t i = 0; i < size; i++) {
        if (!strchr("0123456789+-.eE", text[i]) || !text[i]) return 0;
        if (text[i] == '.' && n + length < sizeof copy - 65) {
            memcpy(copy + n, point, length);
            n += length;
        } else {
            copy[n++] = text[i];
        }
    }
    copy[n] = 0;
    *out = strtod(copy, &end);
    return end == copy + n;
}

#endif
