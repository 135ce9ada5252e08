#include "lexer.h"

#include <string.h>

bool lex_fail(struct lexer *x, const char *why)
{
    if (!x->m->parse_error) x->m->parse_error = why;
    return false;
}

/* Returns the relation after \not. */
static int lex_negated(int rel)
{
    static const uint8_t negation[] = {
        [R_EQ] = R_NE, [R_NE] = R_EQ, [R_LT] = R_GE, [R_LE] = R_GT, [R_GT] = R_LE, [R_GE] = R_LT, [R_IN] = R_NOTIN, [R_SUPSET] = 0};
    return negation[rel];
}

bool lex_push(struct lexer *x, int kind, int aux, const char *text, int64_t n_text)
{
    struct math *m = x->m;
    if (m->n_tokens == MAX_TOKENS) return lex_fail(x, "too long to parse");
    if (x->negated && !(aux = kind == T_REL ? lex_negated(aux) : 0)) return lex_fail(x, "a negation that is not read");
    x->negated = false;
    struct token t = {.kind = (int16_t)kind, .aux = aux, .space = x->space, .n_text = (int32_t)n_text};
    if (n_text && (t.text = pool_add(m, text, n_text)) < 0) return lex_fail(x, "too long to parse");
    m->tokens[m->n_tokens++] = t;
    x->space = false;
    return true;
}

int lex_last_kind(const struct lexer *x)
{
    return x->m->n_tokens ? x->m->tokens[x->m->n_tokens - 1].kind : T_END;
}

bool lex_after_operand(const struct lexer *x)
{
    const int k = lex_last_kind(x);
    return k == T_NUM || k == T_SYM || k == T_CONST || k == T_RPAREN || k == T_RBRACE || k == T_RBRACK || k == T_FACT ||
           k == T_SCALE || k == T_UNIT;
}

/* Returns the end of the group that opens at i (after its closing brace), or of the character or
 * command there. */
int64_t lex_group_end(const struct lexer *x, int64_t i)
{
    if (i >= x->n) return i;
    if (x->s[i] == '\\') {
        for (i++; i < x->n && text_is_letter(x->s[i]);) i++;
        return i;
    }
    if (x->s[i] != '{') return i + 1;
    int depth = 0;
    for (; i < x->n; i++) {
        if (x->s[i] == '{') depth++;
        if (x->s[i] == '}' && !--depth) return i + 1;
    }
    return x->n;
}

struct lexer lex_near(const struct lexer *x, int64_t i)
{
    struct lexer near = *x;
    if (near.n > i + NEAR_BYTES) near.n = i + NEAR_BYTES;
    return near;
}

int64_t lex_skip_spaces(const struct lexer *x, int64_t i)
{
    while (i < x->n && (text_is_space(x->s[i]) || x->s[i] == '~')) i++;
    return i;
}

bool lex_starts(const struct lexer *x, int64_t i, const char *word)
{
    const int64_t n = (int64_t)strlen(word);
    return i + n <= x->n && !memcmp(x->s + i, word, (size_t)n);
}

int64_t lex_digits_end(const struct lexer *x, int64_t i)
{
    while (i < x->n && text_is_digit(x->s[i])) i++;
    return i;
}

/* ---------------------------------------------------------------- names */

/* Returns the index after ^\prime, ^{\prime} or ^{'} at i; 0: none. */
static int64_t prime_end(const struct lexer *x, int64_t i)
{
    if (i >= x->n || x->s[i] != '^') return 0;
    i = lex_skip_spaces(x, i + 1);
    const bool brace = i < x->n && x->s[i] == '{';
    if (brace) i = lex_skip_spaces(x, i + 1);
    if (lex_starts(x, i, "\\prime"))
        i += 6;
    else if (brace && lex_starts(x, i, "'"))
        i++;
    else
        return 0;
    if (!brace) return i;
    i = lex_skip_spaces(x, i);
    return i < x->n && x->s[i] == '}' ? i + 1 : 0;
}

/* Adds primes and a subscript that follow a symbol to its name; also after an exponent, x^2_1. */
bool lex_push_symbol(struct lexer *x, const char *name, int64_t n)
{
    char full[160];
    if (n > 60) return lex_fail(x, "a very long name");
    memcpy(full, name, (size_t)n);
    int64_t i = lex_skip_spaces(x, x->i);
    for (bool more = true; more && n < 70;) {
        more = true;
        if (i < x->n && x->s[i] == '\'')
            i++;
        else if (prime_end(x, i))
            i = prime_end(x, i);
        else
            more = false;
        if (more) full[n++] = '\'', x->i = i;
    }
    const struct math *m = x->m;
    const int before = m->n_tokens > 1 ? m->tokens[m->n_tokens - 2].kind : T_END;
    /* \sum^n_{k=1} */
    const bool limit = lex_last_kind(x) == T_CARET && (before == T_SUM || before == T_PROD || before == T_INT);
    int64_t sub = i;
    if (i < x->n && x->s[i] == '^' && !limit) {
        const int64_t power = lex_skip_spaces(x, i + 1);
        const struct lexer near = lex_near(x, power);
        sub = lex_group_end(&near, power);
        if (sub == near.n) sub = x->n; /* a long exponent */
        if (text_is_digit(x->s[power < x->n ? power : 0]) && x->s[power] != '{') sub = lex_digits_end(x, power);
        sub = lex_skip_spaces(x, sub);
    }
    if (sub < x->n && x->s[sub] == '_' && !limit) {
        const struct lexer near = lex_near(x, sub + 1);
        const int64_t from = lex_skip_spaces(&near, sub + 1), one = lex_group_end(&near, from),
                      /* a_10 */
            to = from < near.n && text_is_digit(x->s[from]) ? lex_digits_end(&near, from) : one;
        if (to - from > 60 || to == from) return lex_fail(x, "a very long subscript");
        const bool braced = x->s[from] == '{';
        full[n++] = '_';
        n += squash(x->s + from + braced, to - from - 2 * braced, full + n, false);
        if (sub == i)
            x->i = to;
        else
            x->skip_from = sub, x->skip_to = to;
    }
    return lex_push(x, T_SYM, 0, full, n);
}

static bool push_letter(struct lexer *x, char c)
{
    const int64_t next = lex_skip_spaces(x, x->i);
    const bool marked = next < x->n && (x->s[next] == '_' || x->s[next] == '\'');
    if (c == 'e' && !marked) return lex_push(x, T_CONST, C_E, NULL, 0);
    if (c == 'i' && !marked) return lex_push(x, T_CONST, C_I, NULL, 0);
    return lex_push_symbol(x, &c, 1);
}

bool lex_push_word(struct lexer *x, const struct word *w)
{
    if (w->kind == T_CURRENCY || w->kind == T_MARK || w->kind == T_LIM) {
        const char *text = w->text ? w->text : w->name;
        const bool unit = w->kind == T_CURRENCY && lex_after_operand(x);
        return lex_push(x, unit ? T_UNIT : w->kind, 0, text, (int64_t)strlen(text));
    }
    return w->kind == T_SYM ? lex_push_symbol(x, w->text ? w->text : w->name, (int64_t)strlen(w->text ? w->text : w->name))
                            : lex_push(x, w->kind, w->aux, NULL, 0);
}

bool lex_word_is(const char *s, int64_t n, const char *w)
{
    return (int64_t)strlen(w) == n && !memcmp(s, w, (size_t)n);
}

bool lex_unit_follows(const struct lexer *x)
{
    const struct token *t = x->m->tokens;
    int i = x->m->n_tokens - 1;
    if (lex_after_operand(x) || lex_last_kind(x) == T_DEGREE || lex_last_kind(x) == T_PERCENT) return true;
    if (i < 0 || (t[i].kind != T_DIV && t[i].kind != T_TIMES)) return false;
    for (i--; i >= 0; i--) { /* \text{m}^2 / \text{s} */
        if (t[i].kind == T_UNIT) return true;
        if (t[i].kind != T_CARET && t[i].kind != T_NUM && t[i].kind != T_LBRACE && t[i].kind != T_RBRACE && t[i].kind != T_MINUS)
            return false;
    }
    return false;
}

bool lex_push_unit(struct lexer *x, const struct unit *u)
{
    char text[UNIT_TEXT];
    const int n = unit_print(u, text);
    return n ? lex_push(x, T_UNIT, 0, text, n) : (x->space = true, true);
}

/* Lexes the words after "degrees": Celsius and Fahrenheit make it a temperature. *used: bytes
 * read. */
static bool lex_push_degrees(struct lexer *x, const char *s, int64_t n, int64_t *used)
{
    int64_t from = *used, to;
    while (from < n && text_is_space(s[from])) from++;
    for (to = from; to < n && text_is_letter(s[to]);) to++;
    const bool celsius = lex_word_is(s + from, to - from, "Celsius"), fahrenheit = lex_word_is(s + from, to - from, "Fahrenheit");
    if (!celsius && !fahrenheit) return lex_push(x, T_DEGREE, 0, NULL, 0);
    return *used = to, lex_push(x, T_UNIT, 0, celsius ? "degc" : "degf", 4);
}

/* Lexes words after a value, at s: units, percent, degrees, million. *used: number of bytes; 0:
 * none. */
bool lex_push_measure(struct lexer *x, const char *s, int64_t n, bool in_text, int64_t *used)
{
    int power;
    struct unit u;
    int64_t word = 0;
    while (word < n && text_is_letter(s[word])) word++;
    *used = word;
    const char *temperature = lex_temperature(x, s, word);
    if (temperature) return lex_push(x, T_UNIT, 0, temperature, 4);
    if (n >= 8 && !memcmp(s, "per cent", 8)) return *used = 8, lex_push(x, T_PERCENT, 0, NULL, 0);
    if (is_percent_word(s, word)) return lex_push(x, T_PERCENT, 0, NULL, 0);
    if (is_degree_word(s, word)) return lex_push_degrees(x, s, n, used);
    if (lex_last_kind(x) == T_NUM && find_scale(s, word, &power)) return lex_push(x, T_SCALE, power, NULL, 0);
    if (lex_last_kind(x) == T_NUM && lex_word_is(s, word, "dozen"))
        return lex_push(x, T_TIMES, 0, NULL, 0) && lex_push(x, T_NUM, 0, "12", 2);
    if ((*used = unit_read(s, n, in_text, &u))) return lex_push_unit(x, &u);
    return true;
}

/* Lexes letters without \text after a number that can only be a unit: 5 cm; in plain text also 5
 * m/s if nothing follows. */
static bool lex_bare_unit(struct lexer *x, const char *s, bool *done)
{
    struct unit u;
    int64_t used;
    *done = true;
    if (x->plain && x->space && lex_last_kind(x) == T_NUM) {
        used = unit_read(s, x->n - x->i, true, &u);
        if (used && (used > 1 || u.n) && lex_skip_spaces(x, x->i + used) >= x->n) return x->i += used, lex_push_unit(x, &u);
    }
    if (!lex_push_measure(x, s, x->n - x->i, false, &used)) return false;
    x->i += used;
    *done = used > 0;
    return true;
}

/* Returns the length of am or p.m. after a numeral: 7:00 PM, 5 am. Letters without a blank between
 * are factors, except after a time in hours and minutes. */
static int64_t half_day_here(const struct lexer *x)
{
    const struct token *t = x->m->tokens + x->m->n_tokens;
    if (lex_last_kind(x) != T_NUM) return 0;
    const bool time = x->m->n_tokens > 2 && t[-2].kind == T_COLON && t[-3].kind == T_NUM;
    return x->space || time || x->plain ? half_of_day((tare_text){x->s, x->n}, x->i) : 0;
}

/* Returns true if the letter x is a multiplication sign, as in 3 x 10^5. */
static bool times_letter(const struct lexer *x)
{
    const int64_t next = lex_skip_spaces(x, x->i + 1);
    return (x->s[x->i] == 'x' || x->s[x->i] == 'X') && lex_last_kind(x) == T_NUM &&
           (lex_starts(x, next, "10^") || lex_starts(x, next, "10**"));
}

static bool lex_letters(struct lexer *x)
{
    const char *s = x->s + x->i;
    int64_t n = 0;
    while (x->i + n < x->n && text_is_letter(s[n])) n++;
    bool done = false;
    const int64_t half = half_day_here(x);
    if (half) return x->i += half, lex_push(x, T_UNIT, 0, text_lower(*s) == 'a' ? "am" : "pm", 2);
    if (lex_word_is(s, n, "and")) return x->i += n, lex_push(x, T_AND, JOINT_AND, NULL, 0);
    if (lex_word_is(s, n, "or")) return x->i += n, lex_push(x, T_AND, JOINT_OR, NULL, 0);
    if (lex_word_is(s, n, "to") && lex_last_kind(x) == T_NUM) return x->i += n, lex_push(x, T_COLON, 0, NULL, 0);
    if (!x->space && lex_last_kind(x) == T_NUM && lex_is_ordinal(s, n)) return x->i += n, true;
    const char *temperature = lex_temperature(x, s, n);
    if (temperature) return x->i += n, lex_push(x, T_UNIT, 0, temperature, 4);
    if (n == 1 && times_letter(x)) return x->i++, lex_push(x, T_TIMES, 0, NULL, 0);
    if ((n > 1 || x->plain) && lex_after_operand(x)) {
        if (!lex_bare_unit(x, s, &done)) return false;
        if (done) return true;
    }
    const struct word *w = find_function(s, n);
    if (w) return x->i += n, lex_push_word(x, w);
    for (int64_t k = 5; k >= 2; k--) /* sinx, lnx */
        if (n > k && n <= k + 2 && (w = find_function(s, k)) && (w->kind == T_FUNC || w->kind == T_LOG))
            return x->i += k, lex_push_word(x, w);
    if (n >= 4) return x->i += n, lex_push_symbol(x, s, n);
    x->i++;
    if (s[0] == 'C' && n == 1 && lex_last_kind(x) == T_NUM && lex_digits_end(x, x->i) > x->i &&
        lex_skip_spaces(x, lex_digits_end(x, x->i)) >= x->n)
        return lex_push(x, T_CHOOSE, 0, NULL, 0); /* 10C3 */
    if ((s[0] == 'C' || s[0] == 'P') && n == 1 && !lex_last_kind(x) && (!lex_counted(x, s[0], &done) || done)) return done;
    if (strchr("CAP", s[0]) && (!lex_combinations(x, s[0], &done) || done)) return done;
    return push_letter(x, s[0]);
}

/* ---------------------------------------------------------------- everything else */

int lex_base_of(const char *s, int64_t n)
{
    static const char *const names[] = {"two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", NULL};
    if (n > 2 && s[0] == '(' && s[n - 1] == ')') s++, n -= 2;
    if (n > 2 && !memcmp(s, "in", 2)) s += 2, n -= 2;
    if (n > 4 && !memcmp(s, "base", 4)) s += 4, n -= 4;
    if (lex_word_is(s, n, "binary")) return 2;
    if (lex_word_is(s, n, "octal")) return 8;
    if (lex_word_is(s, n, "hex") || lex_word_is(s, n, "hexadecimal")) return 16;
    for (int i = 0; names[i]; i++)
        if (lex_word_is(s, n, names[i])) return i + 2;
    if (n < 1 || n > 2 || !text_is_digit(s[0]) || !text_is_digit(s[n - 1])) return 0;
    const int base = n == 1 ? s[0] - '0' : 10 * (s[0] - '0') + s[1] - '0';
    return base >= 2 && base <= 36 ? base : 0;
}

/* Lexes the text after _ as the base of the preceding numeral (_8, _{8}, _{(8)}, _{\text{base } 8},
 * _{\text{eight}}), else as an index. */
static bool lex_base_or_index(struct lexer *x)
{
    const struct token *t = x->m->tokens + x->m->n_tokens;
    const bool numeral = x->m->n_tokens && (t[-1].kind == T_NUM || t[-1].kind == T_RPAREN);
    const bool limit = x->m->n_tokens > 2 && t[-2].kind == T_CARET &&
                       /* \int^3_1 */
                       (t[-3].kind == T_INT || t[-3].kind == T_SUM || t[-3].kind == T_PROD);
    const struct lexer near = lex_near(x, x->i);
    const int64_t from = lex_skip_spaces(&near, x->i), to = lex_group_end(&near, from);
    char text[64];
    if (numeral && !limit && to - from < 40) {
        const bool braced = from < x->n && x->s[from] == '{';
        const int base = lex_base_of(text, squash(x->s + from + braced, to - from - 2 * braced, text, true));
        if (base) return x->i = to, lex_push(x, T_BASE, base, NULL, 0);
    }
    if (lex_last_kind(x) == T_RPAREN && to - from < 40) { /* f(x)_{\max} */
        const bool braced = from < x->n && x->s[from] == '{';
        const int64_t n = squash(x->s + from + braced, to - from - 2 * braced, text, true);
        if (n > 2 && (!memcmp(text + n - 3, "max", 3) || !memcmp(text + n - 3, "min", 3))) return x->i = to, true;
    }
    return lex_push(x, T_UNDER, 0, NULL, 0);
}

/* Returns true if the bracket closes an open interval, as in [2, 3[, because it cannot open
 * anything. */
static bool closes_open_end(const struct lexer *x)
{
    const int64_t i = lex_skip_spaces(x, x->i);
    return i >= x->n || strchr("$,;.", x->s[i]) || lex_starts(x, i, "\\cup") || lex_starts(x, i, "\\cap");
}

/* Lexes [ and ]; reversed ones are open ends: ]2, 3[ is (2, 3). */
static bool lex_square_bracket(struct lexer *x, bool left)
{
    const bool closes = left ? x->depth && lex_after_operand(x) && closes_open_end(x) : x->depth || lex_after_operand(x);
    x->depth += closes ? -(x->depth > 0) : 1;
    return lex_push(x, left ? closes ? T_RPAREN : T_LBRACK : closes ? T_RBRACK : T_LPAREN, 0, NULL, 0);
}

/* Returns true for an ordinal's exponent, as in 17^{\text{th}}, and sets *end after it; false:
 * another exponent. */
static bool ordinal_end(const struct lexer *x, int64_t *end)
{
    char text[NEAR_BYTES];
    const struct lexer near = lex_near(x, x->i);
    const int64_t from = lex_skip_spaces(&near, x->i), name = lex_group_end(&near, from);
    const int64_t to = from < x->n && x->s[from] == '\\' ? lex_group_end(&near, lex_skip_spaces(&near, name)) : name;
    if (lex_last_kind(x) != T_NUM || to - from > 40 || to <= from) return false;
    const int64_t n = squash(x->s + from, to - from, text, false);
    return lex_is_ordinal(text + (n > 2 && *text == '{'), n > 2 && *text == '{' ? n - 2 : n) && (*end = to, true);
}

/* Lexes the text after a ^: an ordinal, a degree sign written as a letter (45^{o}), or an
 * exponent. */
static bool lex_caret(struct lexer *x)
{
    const bool braced = lex_starts(x, x->i, "{o}"), letter = lex_starts(x, x->i, "o");
    if (lex_last_kind(x) == T_NUM && (braced || (letter && !(x->i + 1 < x->n && text_is_letter(x->s[x->i + 1])))))
        return x->i += braced ? 3 : 1, lex_push(x, T_DEGREE, 0, NULL, 0);
    return ordinal_end(x, &x->i) || lex_push(x, T_CARET, 0, NULL, 0);
}

/* Returns true if < opens a vector such as <1, 2, 3>: nothing precedes it, and a > ends the
 * item. */
static bool opens_angle(const struct lexer *x)
{
    const struct lexer near = lex_near(x, x->i);
    bool comma = false;
    if (lex_after_operand(x) || x->angles) return false;
    for (int64_t i = x->i; i < near.n && x->s[i] != '<'; i++) {
        comma |= x->s[i] == ',';
        if (x->s[i] == '>') return comma;
    }
    return false;
}

/* Lexes = < >, alone or followed by the sign d. */
static bool lex_relation_sign(struct lexer *x, char c, char d)
{
    int rel = c == '=' ? R_EQ : c == '<' ? R_LT : R_GT;
    if (c == '<' && opens_angle(x)) return x->angles++, lex_push(x, T_LANGLE, 0, NULL, 0);
    if (c == '>' && x->angles) return x->angles--, lex_push(x, T_RANGLE, 0, NULL, 0);
    if (c == '=' && d == '>') return x->i++, lex_push(x, T_IMPLIES, 0, NULL, 0);
    if (c == '<' && d == '>') return x->i++, lex_push(x, T_REL, R_NE, NULL, 0);
    if (d == '=' || (c == '=' && d == '<')) {
        x->i++;
        rel = c == '<' || d == '<' ? R_LE : c == '>' ? R_GE : R_EQ;
    }
    return lex_push(x, T_REL, rel, NULL, 0);
}

/* Lexes +, +- and +/-. */
static bool lex_plus(struct lexer *x, char d)
{
    const int sign = d == '-' ? 1 : lex_starts(x, x->i, "/-") ? 2 : 0;
    x->i += sign;
    return lex_push(x, sign ? T_PM : T_PLUS, 0, NULL, 0);
}

/* Lexes the | of a pair of integers in brackets, (2|5), as written in German schools. */
static bool lex_bar_of_pair(const struct lexer *x)
{
    const struct token *t = x->m->tokens + x->m->n_tokens;
    int64_t i = lex_skip_spaces(x, x->i);
    i += i < x->n && x->s[i] == '-';
    const int64_t end = lex_skip_spaces(x, lex_digits_end(x, i));
    if (lex_last_kind(x) != T_NUM || x->depth != 1 || lex_digits_end(x, i) == i || end >= x->n || x->s[end] != ')') return false;
    const int k = x->m->n_tokens > 1 ? t[-2].kind : T_END;
    return k == T_LPAREN || (k == T_MINUS && x->m->n_tokens > 2 && t[-3].kind == T_LPAREN);
}

/* between_digits: a numeral, or nothing, precedes the comma. */
static bool lex_comma(struct lexer *x, bool between_digits)
{
    x->m->commas_between |= between_digits && (!lex_last_kind(x) || lex_last_kind(x) == T_NUM);
    return lex_push(x, T_COMMA, 0, NULL, 0);
}

/* Lexes the bar of an absolute value, or of a pair (2|5). */
static bool lex_bar(struct lexer *x)
{
    if (lex_bar_of_pair(x)) return lex_push(x, T_SEMI, 0, NULL, 0);
    return lex_push(x, x->after_left ? T_LBAR : T_BAR, 0, NULL, 0);
}

/* Lexes the signs after the first !: ! is the factorial, !! the double factorial; more are
 * factorials of factorials. */
static bool lex_factorials(struct lexer *x)
{
    int64_t end = x->i;
    while (end < x->n && x->s[end] == '!') end++;
    if (end == x->i + 1) return x->i = end, lex_push(x, T_FACT, 1, NULL, 0);
    while (x->i < end && lex_push(x, T_FACT, 0, NULL, 0)) x->i++;
    return lex_push(x, T_FACT, 0, NULL, 0);
}

/* Skips a full stop that ends a sentence or a line. */
static bool lex_full_stop(struct lexer *x)
{
    const int64_t next = lex_skip_spaces(x, x->i);
    const bool end =
        x->after_left || next >= x->n || strchr("$})", x->s[next]) || lex_starts(x, next, "\\end") || lex_starts(x, next, "\\\\");
    return end || lex_fail(x, "a full stop inside");
}

/* signs that mean the same everywhere */
static const uint8_t PLAIN_SIGNS[] = {
    ['-'] = T_MINUS, ['/'] = T_DIV, [';'] = T_SEMI, ['%'] = T_PERCENT, ['{'] = T_LBRACE, ['}'] = T_RBRACE};

static bool lex_operator(struct lexer *x)
{
    const char c = x->s[x->i], d = x->i + 1 < x->n ? x->s[x->i + 1] : 0;
    const bool tight = !x->space;
    const unsigned char sign = (unsigned char)c;
    x->i++;
    if (sign < sizeof PLAIN_SIGNS && PLAIN_SIGNS[sign]) return lex_push(x, PLAIN_SIGNS[sign], 0, NULL, 0);
    switch (c) {
    case '+':
        return lex_plus(x, d);
    case '*':
        x->i += d == '*';
        return lex_push(x, d == '*' ? T_CARET : T_TIMES, 0, NULL, 0);
    case '^':
        return lex_caret(x);
    case '_':
        return lex_base_or_index(x);
    case ',':
        return lex_comma(x, tight && text_is_digit(d));
    case ':':
        x->i += d == '=';
        return lex_push(x, d == '=' ? T_REL : T_COLON, d == '=' ? R_EQ : 0, NULL, 0);
    case '&':
        return x->matrices ? lex_push(x, T_AMP, 0, NULL, 0) : (x->space = true, true);
    case '#':
        return lex_push(x, T_MARK, 0, "#", 1);
    case '(':
        return x->depth++, lex_push(x, T_LPAREN, 0, NULL, 0);
    case ')':
        return x->depth -= x->depth > 0, lex_push(x, T_RPAREN, 0, NULL, 0);
    case '[':
    case ']':
        return lex_square_bracket(x, c == '[');
    case '|':
        return lex_bar(x);
    case '$':
    case '"':
    case '`':
        return x->space = true, true;
    case '=':
    case '<':
    case '>':
        return lex_relation_sign(x, c, d);
    case '!':
        if (d == '=' && !(tight && (lex_last_kind(x) == T_NUM || lex_last_kind(x) == T_RPAREN)))
            return x->i++, lex_push(x, T_REL, R_NE, NULL, 0);
        return lex_factorials(x);
    case '.':
        return lex_full_stop(x);
    default:
        return lex_fail(x, "a character that means nothing here");
    }
}

bool lex_range(struct lexer *x, int64_t from, int64_t to)
{
    if (++x->nesting > 20) return lex_fail(x, "nested too deeply");
    const int64_t n = x->n, resume = x->i;
    x->i = from, x->n = to;
    bool ok = true;
    while (ok && x->i < x->n) {
        const char c = x->s[x->i];
        if (x->skip_to && x->i == x->skip_from) {
            x->i = x->skip_to, x->skip_to = 0;
            continue;
        }
        if (text_is_space(c) || c == '~') {
            x->space = true, x->i++;
            continue;
        }
        const bool left = x->after_left;
        bool done = false;
        if (c == '{' || c == '_' || c == '^') ok = lex_prescript(x, &done);
        if (ok && !done && c == '{') ok = lex_braced_sign(x, &done);
        if (ok && !done && (c == '\'' || c == '"' || c == '^')) ok = lex_arc(x, &done);
        if (done) continue;
        if (text_is_digit(c) || (c == '.' && x->i + 1 < x->n && text_is_digit(x->s[x->i + 1])) ||
            (c == ',' && lex_decimal_comma(x)) ||
            (c == '.' && (lex_starts(x, x->i, ".\\overline{") || lex_starts(x, x->i, ".\\dot{"))))
            ok = lex_number(x);
        else if (text_is_letter(c))
            ok = lex_letters(x);
        else if (c == '\\')
            ok = lex_command(x);
        else
            ok = lex_operator(x);
        if (left) x->after_left = false;
    }
    x->i = resume, x->n = n;
    x->nesting--;
    return ok;
}

bool lex(struct math *m, const char *s, int64_t n, enum commas commas, bool plain)
{
    struct lexer x = {.m = m, .s = s, .n = n, .commas = commas, .plain = plain};
    m->n_tokens = 0;
    m->parse_error = NULL;
    bool done;
    if (!lex_large_base(&x, &done) || (!done && (!lex_option(&x) || !lex_range(&x, x.i, n)))) return false;
    return lex_push(&x, T_END, 0, NULL, 0);
}
