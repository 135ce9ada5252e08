/* Notations of physics: unit vectors, 3\text{e}5, and the commands of siunitx. */
#include "lexer.h"

#include <string.h>

char lex_unit_vector(const char *s, int64_t n)
{
    if (lex_word_is(s, n, "\\imath")) return 'i';
    if (lex_word_is(s, n, "\\jmath")) return 'j';
    return n == 1 && *s >= 'i' && *s <= 'k' ? *s : 0;
}

bool lex_other_unit_vector(const struct lexer *x, char letter)
{
    for (int64_t i = 0; i + 2 < x->n && i < 1000; i++)
        if (x->s[i] == '{' && x->s[i + 2] == '}' && x->s[i + 1] != letter && lex_unit_vector(x->s + i + 1, 1)) return true;
    return false;
}

bool lex_push_unit_vector(struct lexer *x, char letter)
{
    const char name[] = {'\\', 'h', 'a', 't', '{', letter, '}'};
    return lex_push(x, T_SYM, 0, name, sizeof name);
}

bool lex_e_notation(struct lexer *x, const char *s, int64_t n, bool *done)
{
    *done = false;
    if (n < 1 || (*s != 'e' && *s != 'E') || lex_last_kind(x) != T_NUM) return true;
    /* the exponent: in the same group as the e, or after it */
    int64_t from = s - x->s + 1, to = from + n - 1;
    const bool inside = n > 1;
    if (!inside) {
        from = lex_skip_spaces(x, x->i);
        const struct lexer near = lex_near(x, from);
        const bool braced = from < x->n && x->s[from] == '{', sign = from < x->n && strchr("+-", x->s[from]);
        if (sign && *s == 'e') return true; /* 3e - 5 */
        to = lex_group_end(&near, from);
        if (!braced)
            for (to = from + sign; to < x->n && text_is_digit(x->s[to]);) to++;
        else
            from++, to--;
    }
    int64_t k = from + (from < to && strchr("+-", x->s[from]));
    if (k >= to || to - k > 6) return true;
    while (k < to && text_is_digit(x->s[k])) k++;
    if (k < to) return true;
    *done = true;
    if (!inside) x->i = to + (to < x->n && x->s[to] == '}');
    from += x->s[from] == '+';
    return lex_push(x, T_TIMES, 0, NULL, 0) && lex_push(x, T_NUM, 0, "10", 2) && lex_push(x, T_CARET, 0, NULL, 0) &&
           lex_push(x, T_LBRACE, 0, NULL, 0) && lex_range(x, from, to) && lex_push(x, T_RBRACE, 0, NULL, 0);
}

/* Reads \meter\per\second as words: backslashes are blanks, except after a prefix. */
static int64_t unit_words(const char *s, int64_t n, char *out)
{
    static const char *const prefixes[] = {"kilo", "milli", "centi", "micro", "nano", "mega", NULL};
    int64_t size = 0;
    bool glue = false;
    for (int64_t i = 0; i < n; i++) {
        if (s[i] != '\\') {
            out[size++] = s[i] == '.' ? ' ' : s[i];
            continue;
        }
        if (!glue) out[size++] = ' ';
        glue = false;
        for (const char *const *p = prefixes; *p; p++)
            glue |= i + 1 + (int64_t)strlen(*p) <= n && !memcmp(s + i + 1, *p, strlen(*p));
    }
    return size;
}

bool lex_siunitx(struct lexer *x, const char *name, int64_t n, bool *done)
{
    const bool both = lex_word_is(name, n, "SI") || lex_word_is(name, n, "qty"), number = lex_word_is(name, n, "num"),
               angle = lex_word_is(name, n, "ang"), unit = lex_word_is(name, n, "si") || lex_word_is(name, n, "unit");
    char text[NEAR_BYTES + 1];
    struct unit u;
    *done = both || number || angle || unit;
    if (!*done) return true;
    x->i += 1 + n;
    for (int k = 0; k < 1 + both; k++) {
        const int64_t from = lex_skip_spaces(x, x->i);
        const struct lexer near = lex_near(x, from);
        const int64_t to = lex_group_end(&near, from);
        if (from >= near.n || x->s[from] != '{' || x->s[to - 1] != '}') return lex_fail(x, "an argument of siunitx");
        x->i = to;
        if (!unit && !k) {
            if (!lex_range(x, from + 1, to - 1)) return false;
            continue;
        }
        const int64_t size = unit_words(x->s + from + 1, to - from - 2, text);
        if (!size || unit_read(text, size, true, &u) < size || !lex_push_unit(x, &u))
            return lex_fail(x, "a unit that is not known");
    }
    return !angle || lex_push(x, T_DEGREE, 0, NULL, 0);
}
