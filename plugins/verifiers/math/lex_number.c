/* Numerals: digits in groups, decimal marks, periods of repeating decimals, powers of ten. */
#include "lexer.h"

#include <string.h>

static bool three_digits(const struct lexer *x, int64_t i)
{
    return lex_digits_end(x, i) == i + 3;
}

/* Matches an unambiguous mark between groups of three digits: {,} ,\! \, \! \; blank. Returns the
 * index after it, or 0. */
static int64_t group_mark(const struct lexer *x, int64_t i)
{
    static const char *const marks[] = {"{,}", ",\\!", "\\,", "\\!", "\\;", "\\ ", " ", "~", "'", "\\_", "_", NULL};
    if (lex_last_kind(x) == T_UNDER || lex_last_kind(x) == T_CARET) return 0; /* \log_10 100 */
    for (const char *const *k = marks; *k; k++)
        if (lex_starts(x, i, *k)) {
            const int64_t end = i + (int64_t)strlen(*k);
            const int64_t far = (*k)[0] == ',' ? lex_skip_spaces(x, end) : end;
            return three_digits(x, far) ? far : 0;
        }
    return 0;
}

/* Returns whether the whole run of digits and commas at i has the form d{1,3}(,ddd)+. Otherwise its
 * commas separate a list. */
static bool comma_groups(struct lexer *x, int64_t i, int64_t *end)
{
    if (i < x->no_group) return false;
    int64_t run = i;
    while (run < x->n && (text_is_digit(x->s[run]) || (x->s[run] == ',' && run + 1 < x->n && text_is_digit(x->s[run + 1])))) run++;
    int64_t p = lex_digits_end(x, i);
    bool ok = p - i <= 3 && p < run && x->s[i] != '0'; /* 0,750 */
    while (ok && p < run) ok = x->s[p] == ',' && three_digits(x, p + 1), p += 4;
    if (!ok) x->no_group = run;
    *end = run;
    return ok;
}

/* Matches points between groups of three if a comma is the decimal mark: 1.234.567 or 1.234,56.
 * Returns the end of the groups, or 0. */
static int64_t point_groups(const struct lexer *x, int64_t i)
{
    int64_t p = lex_digits_end(x, i), n = 0;
    if (p - i > 3 || p == i) return 0;
    for (; p < x->n && x->s[p] == '.' && three_digits(x, p + 1); n++) p += 4;
    const bool comma = p + 1 < x->n && x->s[p] == ',' && text_is_digit(x->s[p + 1]) && x->plain;
    return n > 1 || (n && (comma || x->commas == COMMA_DECIMALS || lex_starts(x, p, "{,}"))) ? p : 0;
}

/* Returns the length of the decimal mark at p, 0: none. A comma is one in plain text if it does not
 * separate a list; {,} is one if no group of three follows, as groups were matched before. */
static int64_t decimal_mark(const struct lexer *x, int64_t p, int64_t begin, int aux)
{
    if (p + 1 >= x->n) return 0;
    if (x->s[p] == '.') return 1;
    if (p == begin) return lex_decimal_comma(x);
    if (lex_starts(x, p, "{,}") && p + 3 < x->n && text_is_digit(x->s[p + 3])) return 3;
    if (lex_starts(x, p, "{.}") && p + 3 < x->n && text_is_digit(x->s[p + 3])) return 3;
    const int64_t end = lex_digits_end(x, p + 1);
    if (x->commas == COMMA_DECIMALS && x->s[p] == ',') return end > p + 1;
    /* 1\,234,56 */
    const bool cents = aux & NUM_GROUPED && x->commas == COMMA_GROUPS && end == p + 3;
    const bool comma = (x->plain || cents) && x->s[p] == ',' && end > p + 1 && !(end < x->n && x->s[end] == ',');
    for (int64_t i = begin; i < p; i++) /* not the comma of the group mark \, */
        if (x->s[i] == ',' && x->s[i - 1] != '\\') return 0;
    return comma && (!(aux & NUM_GROUPED) || end != p + 4);
}

static bool is_hexadecimal(const struct lexer *x)
{
    const int64_t i = x->i;
    if (i + 2 >= x->n || x->s[i] != '0' || (x->s[i + 1] != 'x' && x->s[i + 1] != 'X')) return false;
    return text_is_digit(x->s[i + 2]) || strchr("abcdefABCDEF", x->s[i + 2]);
}

/* Matches the period of a repeating decimal at p, between dots or in brackets: \dot{1}4\dot{2}, (3)
 * right after the mark. Returns its end, or 0. */
static int64_t dotted_period(const struct lexer *x, int64_t p)
{
    int64_t dots = 0, i = p;
    if (i < x->n && x->s[i] == '(') { /* 0.(3); 0.1(6) unless the next token makes it a product */
        const bool first = !text_is_digit(x->s[i - 1]);
        i = lex_digits_end(x, p + 1);
        if (i == p + 1 || i >= x->n || x->s[i] != ')') return 0;
        return first || lex_skip_spaces(x, i + 1) >= x->n ? i + 1 : 0;
    }
    for (; lex_starts(x, i, "\\dot"); dots++) {
        int64_t k = lex_skip_spaces(x, i + 4);
        const bool braced = k < x->n && x->s[k] == '{';
        k += braced;
        if (k >= x->n || !text_is_digit(x->s[k]) || (braced && !lex_starts(x, k + 1, "}"))) return 0;
        i = k + 1 + braced;
        if (!dots && lex_starts(x, lex_digits_end(x, i), "\\dot")) i = lex_digits_end(x, i);
    }
    return dots == 1 || dots == 2 ? i : 0;
}

struct numeral {
    int64_t p, exp; /* p: after the text read so far */
    int32_t rep;
    int aux;
};

/* Returns how many of the last digits before q repeat, as in 0.333... and 0.1212\\ldots; *end is
 * after the dots. 0: none, or no dots. One digit must appear three times, a longer period twice. */
static int64_t period_shown(const struct lexer *x, int64_t first, int64_t q, int64_t *end)
{
    enum { LONGEST = 6 };
    static const char *const dots[] = {"...", "\\ldots", "\\dots", "\\cdots", NULL};
    const char *const *d = dots;
    while (*d && !lex_starts(x, q, *d)) d++;
    if (!*d) return 0;
    *end = q + (int64_t)strlen(*d);
    for (int64_t n = 1; n <= LONGEST; n++) {
        int64_t same = 0;
        while (q - n - same > first && x->s[q - 1 - same] == x->s[q - 1 - same - n]) same++;
        same += q - n - same == first && same > 0 && x->s[first] == x->s[first + n];
        if (same >= (n == 1 ? 2 : n)) return n;
    }
    return 0;
}

static bool take_digits(struct lexer *x, int64_t from, int64_t to)
{
    for (int64_t k = from; k < to; k++)
        if (text_is_digit(x->s[k]) && pool_add(x->m, x->s + k, 1) < 0) return lex_fail(x, "too many digits");
    return true;
}

/* Reads the integer part, with its groups of three. */
static bool whole_part(struct lexer *x, struct numeral *v)
{
    const int64_t begin = x->i;
    int64_t run, p = lex_digits_end(x, begin);
    const bool commas = p > begin && p - begin <= 3 && x->commas == COMMA_GROUPS && !x->depth && p < x->n && x->s[p] == ',';
    if (commas && comma_groups(x, begin, &run)) {
        x->m->commas_ambiguous = true;
        return v->p = run, v->aux = NUM_GROUPED, take_digits(x, begin, run);
    }
    if ((run = point_groups(x, begin))) return v->p = run, v->aux = NUM_GROUPED, take_digits(x, begin, run);
    if (!take_digits(x, begin, p)) return false;
    for (int64_t next; p > begin && (p - begin <= 3 || v->aux & NUM_GROUPED) && (next = group_mark(x, p)); p = next + 3) {
        if (p == begin + 1 && x->s[begin] == '0' && x->s[p] == '{') break; /* 0{,}125 */
        if (!take_digits(x, next, next + 3)) return false;
        v->aux = NUM_GROUPED;
    }
    return v->p = p, true;
}

/* Returns the length of \overline{ or \bar{ at q, or of \bar and one digit; 0: none. */
static int64_t bar_at(const struct lexer *x, int64_t q)
{
    static const char *const bars[] = {"\\overline", "\\bar", NULL};
    for (const char *const *b = bars; *b; b++) {
        const int64_t n = (int64_t)strlen(*b), i = q + n;
        if (!lex_starts(x, q, *b) || i >= x->n) continue;
        if (x->s[i] == '{') return n + 1;
        const int64_t digit = lex_skip_spaces(x, i);
        if (digit < x->n && text_is_digit(x->s[digit])) return digit - q;
    }
    return 0;
}

/* Reads the decimals after the mark, and their period under a bar, between dots or in brackets. */
static bool read_decimals(struct lexer *x, struct numeral *v, int64_t mark)
{
    const int64_t first = v->p + mark, q = lex_digits_end(x, first), dots = dotted_period(x, q);
    const int64_t bar = bar_at(x, q);
    const bool braced = bar && x->s[q + bar - 1] == '{';
    if (q == first && !bar && !dots) return true;
    int64_t end_of_dots, shown = bar || dots ? 0 : period_shown(x, first, q, &end_of_dots);
    if (shown) { /* digits of which the last ones repeat */
        v->aux |= NUM_DECIMAL;
        v->exp = first - (q - shown);
        v->rep = (int32_t)shown;
        v->p = end_of_dots;
        return take_digits(x, first, q);
    }
    v->exp = first - q;
    v->aux |= NUM_DECIMAL;
    v->p = q;
    if (!take_digits(x, first, q)) return false;
    if (!bar && !dots) return true;
    const int64_t end = dots ? dots : bar && !braced ? q + bar + 1 : lex_digits_end(x, q + bar);
    if (bar && (end == q + bar || (braced && (end >= x->n || x->s[end] != '}'))))
        return lex_fail(x, "a bar over something else than digits");
    const int32_t before = x->m->n_pool;
    v->p = end + braced;
    if (!take_digits(x, q, end)) return false;
    return v->rep = x->m->n_pool - before, true;
}

/* Reads e5, E-5 right after the digits. */
static void power_of_ten(const struct lexer *x, struct numeral *v)
{
    const int64_t p = v->p;
    if (p + 1 >= x->n || (x->s[p] != 'e' && x->s[p] != 'E') || v->rep) return;
    const int64_t q = p + 1 + (x->s[p + 1] == '-' || x->s[p + 1] == '+'), r = lex_digits_end(x, q);
    if (r <= q || r - q > 15 || (r < x->n && (text_is_letter(x->s[r]) || x->s[r] == '^'))) return;
    int64_t e = 0;
    for (int64_t k = q; k < r; k++) e = e * 10 + (x->s[k] - '0');
    v->exp += x->s[p + 1] == '-' ? -e : e;
    v->aux |= NUM_ENOTATION;
    v->p = r;
}

bool lex_decimal_comma(const struct lexer *x)
{
    const bool first = !x->m->n_tokens; /* ,75 alone */
    return (first || (x->commas == COMMA_DECIMALS && !lex_after_operand(x))) && x->i + 1 < x->n && text_is_digit(x->s[x->i + 1]);
}

bool lex_number(struct lexer *x)
{
    struct math *m = x->m;
    const int32_t text = m->n_pool;
    struct numeral v = {.p = x->i};
    if (is_hexadecimal(x)) return lex_fail(x, "a hexadecimal numeral");
    if (!whole_part(x, &v)) return false;
    const int64_t mark = decimal_mark(x, v.p, x->i, v.aux);
    if (mark && !read_decimals(x, &v, mark)) return false;
    if (v.p + 1 < x->n && x->s[v.p] == '.' && strchr("/+-*^)]}", x->s[v.p + 1])) v.p++; /* 3./2 */
    power_of_ten(x, &v);
    const int32_t n_text = m->n_pool - text;
    if (!lex_push(x, T_NUM, v.aux, NULL, 0)) return false;
    struct token *t = &m->tokens[m->n_tokens - 1];
    t->text = text, t->n_text = n_text, t->exp = v.exp, t->rep = v.rep;
    return x->i = v.p, true;
}
