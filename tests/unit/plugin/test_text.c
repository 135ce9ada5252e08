/* Numbers in a plugin's texts (tare/text.h) in a locale with a decimal comma. The machine may have
 * no such locale, so the C library's functions are played: they write and read a comma where they
 * would write and read the point of the C locale. */
#include "check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *comma = ","; /* the locale's decimal point */

/* snprintf of that locale, for one conversion at a time. */
__attribute__((format(printf, 3, 4))) static int foreign_snprintf(char *to, size_t capacity, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *point = format[strlen(format) - 1] != 's' && strpbrk(format, "eEfFgGaA") ? strchr(text, '.') : NULL;
    if (point) {
        memmove(point + strlen(comma), point + 1, strlen(point + 1) + 1);
        memcpy(point, comma, strlen(comma));
    }
    if (capacity) snprintf(to, capacity, "%s", text);
    return n + (point ? (int)strlen(comma) - 1 : 0);
}

static double foreign_strtod(const char *text, char **end)
{
    char copy[200];
    snprintf(copy, sizeof copy, "%s", text);
    char *at = strstr(copy, comma), *stop = strpbrk(copy, ".");
    if (stop && strcmp(comma, ".")) *stop = 0; /* a point ends the number there */
    const size_t shift = at ? strlen(comma) - 1 : 0;
    if (at) {
        *at = '.';
        memmove(at + 1, at + 1 + shift, strlen(at + 1 + shift) + 1);
    }
    const double x = strtod(copy, &stop);
    *end = (char *)(uintptr_t)text + (stop - copy) + (at && stop > at ? shift : 0);
    return x;
}

#define snprintf foreign_snprintf
#define strtod foreign_strtod
#include <tare/text.h>
#undef snprintf
#undef strtod

__attribute__((format(printf, 1, 2))) static const char *formatted(const char *format, ...)
{
    static char text[300];
    va_list args;
    va_start(args, format);
    const int n = tare_format(text, sizeof text, format, args);
    va_end(args);
    assert_int_equal(n, strlen(text));
    return text;
}

static void text__has_a_point_in_every_locale(void **state)
{
    (void)state;
    static const char *const POINTS[] = {".", ",", "\xd9\xab"};
    for (int i = 0; i < 3; i++) {
        comma = POINTS[i];
        assert_string_equal(formatted("{\"x\":[%.17g,%g],\"n\":%d}", 0.1, -2.5e-30, 7),
                            "{\"x\":[0.10000000000000001,-2.5e-30],\"n\":7}");
        assert_string_equal(formatted("'%s' at most %lld numbers, 100%%", "1,5;2,5", -1234567890123LL),
                            "'1,5;2,5' at most -1234567890123 numbers, 100%");
        assert_string_equal(formatted("%*d|%-*s|%.*f|%+.3e|%.2Lf", 5, 42, 6, "ab", 2, 3.14159, 12345.678, 2.5L),
                            "   42|ab    |3.14|+1.235e+04|2.50");
        assert_string_equal(formatted("%016llx %zu %c%c %u %ld %hhd", 0xfedcULL, (size_t)9, 'a', ',', 3u, -4L, (signed char)5),
                            "000000000000fedc 9 a, 3 -4 5");
        assert_string_equal(formatted("%g %g %g", 1.0, (double)INFINITY, 1e300), "1 inf 1e+300");
        assert_string_equal(formatted("%.*s,", -1, "whole"), "whole,");
        assert_string_equal(formatted("nothing"), "nothing");
    }
    comma = ",";
}

__attribute__((format(printf, 2, 3))) static int cut(char text[8], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = tare_format(text, 8, format, args);
    va_end(args);
    return n;
}

static void text__is_cut_like_printf(void **state)
{
    (void)state;
    static const char *const POINTS[] = {".", ","};
    for (int i = 0; i < 2; i++) {
        char text[9] = "xxxxxxxx";
        comma = POINTS[i];
        assert_int_equal(cut(text, "%s|%g", "0123", 0.125), 10);
        assert_string_equal(text, "0123|0.");
        assert_int_equal(cut(text, "%s|%g", "0123456789", 0.125), 16);
        assert_string_equal(text, "0123456");
    }
}

static void numbers__are_read_in_every_locale(void **state)
{
    (void)state;
    static const char *const POINTS[] = {".", ",", "\xd9\xab"};
    static const struct {
        const char *text;
        double value; /* NAN: not a number */
    } CASES[] = {{"0.5", 0.5},     {"-1", -1},    {"1e-3", 1e-3},
                 {"+2.25E2", 225}, {".5", 0.5},   {"0.1", 0.1},
                 {"", NAN},        {"0,5", NAN},  {"1.2.3", NAN},
                 {"x", NAN},       {"nan", NAN},  {"1 ", NAN},
                 {"inf", NAN},     {"0x10", NAN}, {"e", NAN},
                 {"-", NAN},       {"1e", NAN},   {"111111111122222222223333333333444444444455555555556666666666777777", NAN}};
    for (int i = 0; i < 3; i++) {
        comma = POINTS[i];
        for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
            double x = 0;
            const int ok = tare_read_number(CASES[k].text, (int64_t)strlen(CASES[k].text), &x);
            if (ok != !isnan(CASES[k].value) || (ok && x != CASES[k].value))
                fail_msg("'%s' with the point '%s': %d, %g", CASES[k].text, comma, ok, x);
        }
    }
    comma = ",";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text__has_a_point_in_every_locale),
        cmocka_unit_test(text__is_cut_like_printf),
        cmocka_unit_test(numbers__are_read_in_every_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
