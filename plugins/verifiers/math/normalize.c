#include "math.h"

#include <string.h>

/* ---------------------------------------------------------------- text for comparing answers that
 * are not mathematics or could not be parsed */

static bool is_listed(const char *const *list, const char *s, int64_t n)
{
    for (; *list; list++)
        if ((int64_t)strlen(*list) == n && !memcmp(*list, s, (size_t)n)) return true;
    return false;
}

static const char *const DROPPED[] = {"left", "right",        "big",       "Big",    "bigg", "Bigg",  "bigl",     "bigr", "Bigl",
                                      "Bigr", "displaystyle", "textstyle", "limits", "quad", "qquad", "nolimits", NULL};
static const char *const WRAPPERS[] = {"text",       "textbf", "textit", "textrm",       "mbox",  "mathrm",
                                       "mathbf",     "mathit", "mathsf", "operatorname", "boxed", "fbox",
                                       "boldsymbol", "bm",     "hbox",   "emph",         NULL};

int64_t squash(const char *s, int64_t n, char *out, bool fold_case)
{
    enum { DEPTH = 64 };
    bool drop[DEPTH] = {false}; /* a } without its { is dropped like the previous group, or kept */
    int depth = 0;
    bool drop_next = false;
    int64_t size = 0;
    for (int64_t i = 0; i < n;) {
        const char c = s[i];
        if (text_is_space(c) || c == '$' || c == '~') {
            for (i++; i < n && text_is_space(s[i]);) i++;
            /* 1 2 is not 12 */
            if (size && i < n && text_is_digit(out[size - 1]) && text_is_digit(s[i])) out[size++] = ' ';
        } else if (c == '\\') {
            int64_t k = i + 1;
            while (k < n && text_is_letter(s[k])) k++;
            const char *name = s + i + 1;
            int64_t len = k - i - 1;
            if (!len) { /* \, \! \; \: \{ ... */
                const char d = k < n ? s[k] : 0;
                if (d && !strchr(",!;: $", d)) out[size++] = '\\', out[size++] = d;
                i = k + 1;
                continue;
            }
            i = k;
            if (is_listed(DROPPED, name, len)) continue;
            if (is_listed(WRAPPERS, name, len)) {
                drop_next = true;
                continue;
            }
            if (len == 5 && (!memcmp(name, "dfrac", 5) || !memcmp(name, "tfrac", 5))) name++, len--;
            if (len == 3 && (!memcmp(name, "leq", 3) || !memcmp(name, "geq", 3) || !memcmp(name, "neq", 3))) len--;
            out[size++] = '\\';
            for (int64_t q = 0; q < len; q++) out[size++] = name[q];
        } else if (c == '{') {
            const bool single = i + 2 < n && s[i + 2] == '}' && s[i + 1] != '\\' && s[i + 1] != '{';
            if (depth < DEPTH) drop[depth] = drop_next || single;
            if (depth >= DEPTH || !drop[depth]) out[size++] = c;
            depth++;
            drop_next = false;
            i++;
        } else if (c == '}') {
            if (depth > 0) depth--;
            if (depth >= DEPTH || !drop[depth]) out[size++] = c;
            i++;
        } else {
            out[size++] = fold_case ? text_lower(c) : c;
            drop_next = false;
            i++;
        }
    }
    /* not 5... */
    while (size && (out[size - 1] == ',' || (out[size - 1] == '.' && !(size > 1 && out[size - 2] == '.')))) size--;
    return size;
}

/* Returns whether s has the shape of the pattern: 9 one digit, 8 one digit or none, other
 * characters themselves. */
static bool has_shape(const char *s, int64_t n, const char *pattern)
{
    int64_t i = 0;
    for (; *pattern; pattern++) {
        const bool digit = i < n && text_is_digit(s[i]);
        if (*pattern == '8')
            i += digit;
        else if (i < n && (*pattern == '9' ? digit : s[i] == *pattern))
            i++;
        else
            return false;
    }
    return i == n;
}

bool is_date_or_phone(const char *s, int64_t n)
{
    static const char *const shapes[] = {"98/98/9999", "98-98-9999",   "98.98.9999",     "9999-99-99", "9999/99/99",
                                         "999-9999",   "999-999-9999", "9-999-999-9999", NULL};
    for (const char *const *k = shapes; *k; k++)
        if (has_shape(s, n, *k)) return true;
    return false;
}

bool is_capitals(const char *s, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (s[i] < 'A' || s[i] > 'Z') return false;
    return n > 1;
}
