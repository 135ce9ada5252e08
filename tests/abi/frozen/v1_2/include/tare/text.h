/* Numbers in text that do not depend on the locale of the program that loaded the plugin: header-only, not part of the ABI. In a German or
 * French program printf writes 0,5 and strtod stops at the point of 0.5. */
#ifndef TARE_TEXT_H
#define TARE_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The decimal point of the calling thread's locale. Returns its length in bytes. */
__attribute__((unused)) static size_t tare_point(char point[16])
{
    char probe[16];
    const int n = snprintf(probe, sizeof probe, "%.1f", 0.5);
    const size_t length = n > 2 && n < (int)sizeof probe ? (size_t)n - 2 : 1;
    memcpy(point, n > 2 ? probe + 1 : ".", length);
    point[length] = 0;
    return length;
}

/* What is between a format's % and the letter of its conversion, with the numbers that * stands for. */
struct tare_conversion {
    char spec[48];          /* with % and the letter */
    int letter, longs, big; /* longs: how many l; big: L, j, z, t or 0 */
};

/* Reads the conversion at format, which points to its %; returns what is after it. */
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
            n--; /* a negative precision is none */
        else
            n += (size_t)snprintf(c->spec + n, 16, "%d", given);
    }
    c->letter = *format;
    c->spec[n] = *format;
    return *format ? format + 1 : format;
}

/* A floating number, its point made a point. */
__attribute__((unused)) static int tare_put_number(char *to, size_t room, const struct tare_conversion *c, va_list *args)
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
    return snprintf(to, room, "%s", text);
}

__attribute__((unused)) static int tare_put_whole(char *to, size_t room, const struct tare_conversion *c, va_list *args)
{
    if (c->big == 'j') return snprintf(to, room, c->spec, va_arg(*args, intmax_t));
    if (c->big == 'z') return snprintf(to, room, c->spec, va_arg(*args, size_t));
    if (c->big == 't') return snprintf(to, room, c->spec, va_arg(*args, ptrdiff_t));
    if (c->longs > 1) return snprintf(to, room, c->spec, va_arg(*args, long long));
    if (c->longs) return snprintf(to, room, c->spec, va_arg(*args, long));
    return snprintf(to, room, c->spec, va_arg(*args, int));
}

/* vsnprintf with a point in every number. */
__attribute__((unused)) static int tare_format(char *text, size_t room, const char *format, va_list given)
{
    char point[16];
    if (tare_point(point) == 1 && point[0] == '.') return vsnprintf(text, room, format, given);
    va_list args;
    size_t used = 0;
    va_copy(args, given);
    while (*format) {
        struct tare_conversion c;
        char *to = used < room ? text + used : NULL;
        const size_t left = used < room ? room - used : 0, plain = strcspn(format, "%");
        int n = (int)plain;
        if (plain) {
            snprintf(to, left, "%.*s", n, format);
            format += plain;
        } else {
            format = tare_read_conversion(format, &args, &c);
            if (!c.letter || c.letter == '%')
                n = snprintf(to, left, "%s", c.letter ? "%" : "");
            else if (strchr("eEfFgGaA", c.letter))
                n = tare_put_number(to, left, &c, &args);
            else if (c.letter == 's')
                n = snprintf(to, left, c.spec, va_arg(args, const char *));
            else if (c.letter == 'p')
                n = snprintf(to, left, c.spec, va_arg(args, void *));
            else
                n = tare_put_whole(to, left, &c, &args);
        }
        if (n > 0) used += (size_t)n;
    }
    va_end(args);
    return (int)used;
}

/* The decimal number that all of text[size] is: digits, a sign, a point, an exponent. 0: it is none. */
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
