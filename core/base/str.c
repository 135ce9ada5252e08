#define _GNU_SOURCE
#include "base/str.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tare_status str_reserve(struct str *s, int64_t extra, struct err *e)
{
    if (s->data && s->size + extra < s->capacity) return TARE_OK;
    int64_t wanted = s->capacity ? s->capacity : 64;
    while (wanted <= s->size + extra) wanted *= 2;
    char *bigger = realloc(s->data, (size_t)wanted);
    if (!bigger) FAIL(e, TARE_E_NOMEM, "no memory for a string of %lld bytes", (long long)wanted);
    s->data = bigger;
    s->capacity = wanted;
    s->data[s->size] = 0;
    return TARE_OK;
}

tare_status str_add(struct str *s, const char *data, int64_t n, struct err *e)
{
    if (n < 0) n = (int64_t)strlen(data);
    TRY(str_reserve(s, n, e));
    if (n) memcpy(s->data + s->size, data, (size_t)n);
    s->size += n;
    s->data[s->size] = 0;
    return TARE_OK;
}

tare_status str_addf(struct str *s, struct err *e, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    const tare_status status = str_reserve(s, n, e);
    if (!status) vsnprintf(s->data + s->size, (size_t)n + 1, format, again);
    va_end(again);
    if (status) return status;
    s->size += n;
    return TARE_OK;
}

void str_clear(struct str *s)
{
    s->size = 0;
    if (s->data) s->data[0] = 0;
}

void str_free(struct str *s)
{
    free(s->data);
    *s = (struct str){0};
}

tare_status str_to_int(const char *text, int64_t *out, struct err *e)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (!*text || *end || strchr(" \t\n\v\f\r", *text)) FAIL(e, TARE_E_INVALID, "'%s' is not a whole number", text);
    if (errno) FAIL(e, TARE_E_RANGE, "'%s' does not fit in 64 bits", text);
    *out = value;
    return TARE_OK;
}

static locale_t the_c_locale;

static void make_c_locale(void)
{
    the_c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static locale_t c_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_c_locale);
    return the_c_locale;
}

tare_status str_to_double(const char *text, double *out, struct err *e)
{
    char *end;
    const double value = strtod_l(text, &end, c_locale());
    if (!*text || *end || strchr(" \t\n\v\f\r", *text)) FAIL(e, TARE_E_INVALID, "'%s' is not a number", text);
    if (!isfinite(value)) FAIL(e, TARE_E_RANGE, "'%s' is not a finite number", text);
    *out = value;
    return TARE_OK;
}

const char *str_from_double(char *buffer, double x)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buffer, 32, "%.*g", digits, x);
        if (strtod_l(buffer, NULL, c_locale()) == x) break;
    }
    return buffer;
}

int64_t str_utf8_error(const char *data, int64_t n)
{
    const unsigned char *p = (const unsigned char *)data;
    for (int64_t i = 0; i < n;) {
        const unsigned c = p[i];
        if (c < 0x80) {
            i++;
            continue;
        }
        const int more = c >= 0xC2 && c <= 0xDF ? 1 : (c & 0xF0) == 0xE0 ? 2 : c >= 0xF0 && c <= 0xF4 ? 3 : 0;
        if (!more || i + more >= n) return i + 1;
        for (int k = 1; k <= more; k++)
            if ((p[i + k] & 0xC0) != 0x80) return i + 1;
        const unsigned d = p[i + 1];
        if ((c == 0xE0 && d < 0xA0) || (c == 0xED && d > 0x9F) || (c == 0xF0 && d < 0x90) || (c == 0xF4 && d > 0x8F)) return i + 1;
        i += more + 1;
    }
    return 0;
}

void str_disarm(char *text, int64_t n)
{
    unsigned char *p = (unsigned char *)text;
    for (int64_t i = 0; i < n; i++) {
        if ((p[i] < 0x20 && p[i] != '\n' && p[i] != '\t') || p[i] == 0x7f) p[i] = '?';
        /* U+0080 to U+009F */
        if (p[i] == 0xc2 && i + 1 < n && p[i + 1] >= 0x80 && p[i + 1] <= 0x9f) p[i] = p[i + 1] = '?';
    }
}

bool str_ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

const char *str_shell(char *buffer, const char *word)
{
    static const char SAFE[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-";
    const char *const front = *word == '-' ? "./" : "";
    int n = 0;
    if (*word && word[strspn(word, SAFE)] == 0) {
        snprintf(buffer, STR_SHELL, "%s%s", front, word);
        return buffer;
    }
    n = snprintf(buffer, STR_SHELL, "'%s", front);
    for (; *word && n < STR_SHELL - 8; word++)
        n += snprintf(buffer + n, (size_t)(STR_SHELL - n), *word == '\'' ? "'\\''" : "%c", *word);
    snprintf(buffer + n, (size_t)(STR_SHELL - n), "'");
    return buffer;
}

int64_t str_distance(const char *a, const char *b)
{
    enum { MOST = 128 };
    const size_t na = strlen(a), nb = strlen(b);
    if (na >= MOST || nb >= MOST) return MOST;
    /* row i of the table and the two before it, since a swap looks back two rows */
    int64_t rows[3][MOST];
    for (size_t j = 0; j <= nb; j++) rows[0][j] = (int64_t)j;
    for (size_t i = 1; i <= na; i++) {
        int64_t *row = rows[i % 3];
        const int64_t *up = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = (int64_t)i;
        for (size_t j = 1; j <= nb; j++) {
            int64_t best = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < best) best = up[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            const int swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[na % 3][nb];
}

const char *str_amount(char *buffer, double x, const char *unit)
{
    static const char *const PREFIX[] = {"", "K", "M", "G", "T", "P"};
    int i = 0;
    for (; i < 5 && fabs(x) >= 999.5; i++) x /= 1000;
    snprintf(buffer, 32, i || x != floor(x) ? "%.3g %s%s" : "%.0f %s%s", x, PREFIX[i], unit);
    return buffer;
}
