/* Notations that must be recognised before they are split into tokens: {}_n C_r and {}_n P_r,
 * measures in words, degrees Celsius, conjugates. */
#include "lexer.h"

#include <string.h>

/* Returns the range inside the braces at i, or the character or command there, and the position
 * after it. */
static int64_t script_range(const struct lexer *x, int64_t i, int64_t *from, int64_t *to)
{
    i = lex_skip_spaces(x, i);
    const struct lexer near = lex_near(x, i);
    const int64_t end = lex_group_end(&near, i);
    const bool braced = i < x->n && x->s[i] == '{';
    *from = i + braced, *to = braced && x->s[end - 1] != '}' ? i : end - braced;
    return lex_skip_spaces(x, end);
}

/* Pushes a command of two arguments, the ranges a and b. */
static bool push_pair(struct lexer *x, int kind, int aux, const int64_t *a, const int64_t *b)
{
    return lex_push(x, kind, aux, NULL, 0) && lex_push(x, T_LBRACE, 0, NULL, 0) && lex_range(x, a[0], a[1]) &&
           lex_push(x, T_RBRACE, 0, NULL, 0) && lex_push(x, T_LBRACE, 0, NULL, 0) && lex_range(x, b[0], b[1]) &&
           lex_push(x, T_RBRACE, 0, NULL, 0);
}

/* Lexes {}_n C_r, ^n C_r, {}_n\mathrm{P}_r as \binom{n}{r} or n!/(n - r)!. *done: it was one. */
bool lex_prescript(struct lexer *x, bool *done)
{
    int64_t i = x->i, n[2], r[2];
    *done = false;
    if (x->s[i] == '{') {
        i = lex_skip_spaces(x, i + 1);
        if (i >= x->n || x->s[i] != '}') return true;
        i = lex_skip_spaces(x, i + 1);
    } else if (lex_after_operand(x) || lex_last_kind(x) == T_CARET) {
        return true;
    }
    if (i >= x->n || (x->s[i] != '_' && x->s[i] != '^')) return true;
    const bool raised = x->s[i] == '^';
    i = script_range(x, i + 1, &n[0], &n[1]);
    if (raised && n[0] < n[1]) { /* ^3/_8 */
        int64_t k = i;
        while (lex_starts(x, k, "\\!") || lex_starts(x, k, "\\,")) k = lex_skip_spaces(x, k + 2);
        if (lex_starts(x, k, "/_")) {
            const int64_t end = script_range(x, k + 2, &r[0], &r[1]);
            return *done = true, x->i = end, push_pair(x, T_FRAC, 0, n, r);
        }
    }
    char letter[NEAR_BYTES];
    const struct lexer near = lex_near(x, i);
    const int64_t at = i, name = lex_group_end(&near, i),
                  end = i < x->n && x->s[i] == '\\' ? lex_group_end(&near, lex_skip_spaces(&near, name)) : name;
    if (end <= at || squash(x->s + at, end - at, letter, false) != 1 || (*letter != 'C' && *letter != 'P')) return true;
    i = lex_skip_spaces(x, end);
    if (i >= x->n || x->s[i] != '_') return true;
    i = script_range(x, i + 1, &r[0], &r[1]);
    if (n[0] >= n[1] || r[0] >= r[1]) return true;
    *done = true;
    x->i = i;
    return push_pair(x, T_BINOM, *letter == 'P', n, r);
}

/* Lexes C(7, 3) and P(7, 3) of integers, the first not the smaller: combinations, permutations.
 * *done: it was one. */
bool lex_counted(struct lexer *x, char letter, bool *done)
{
    int64_t from[2], to[2], i = x->i, value[2] = {0, 0};
    *done = false;
    for (int k = 0; k < 2; k++) {
        if (i >= x->n || x->s[i] != (k ? ',' : '(')) return true;
        from[k] = lex_skip_spaces(x, i + 1), to[k] = lex_digits_end(x, from[k]), i = lex_skip_spaces(x, to[k]);
        if (to[k] == from[k] || to[k] - from[k] > 6) return true;
        for (int64_t d = from[k]; d < to[k]; d++) value[k] = 10 * value[k] + (x->s[d] - '0');
    }
    if (i >= x->n || x->s[i] != ')' || value[0] < value[1]) return true;
    *done = true;
    x->i = i + 1;
    return push_pair(x, T_BINOM, letter == 'P', (int64_t[]){from[0], to[0]}, (int64_t[]){from[1], to[1]});
}

bool lex_combinations(struct lexer *x, char letter, bool *done)
{
    int64_t from[2] = {0}, to[2] = {0}, i = lex_skip_spaces(x, x->i);
    *done = false;
    for (int k = 0; k < 2; k++) {
        const int up = i < x->n && x->s[i] == '^';
        if (i >= x->n || (!up && x->s[i] != '_') || to[up]) return true;
        i = script_range(x, i + 1, &from[up], &to[up]);
        from[up] = lex_skip_spaces(x, from[up]);
        const char first = from[up] < to[up] ? x->s[from[up]] : 0;
        if (!text_is_digit(first) && !(letter == 'C' && first >= 'a' && first <= 'z' && first != 'c'))
            return true; /* C^T, C_1^{-1}, C^c */
    }
    if (to[0] - from[0] == 1 && x->s[from[0]] < '3') return true; /* the square of a constant C_1 */
    *done = true;
    x->i = i;
    return push_pair(x, T_BINOM, letter != 'C', (int64_t[]){from[0], to[0]}, (int64_t[]){from[1], to[1]});
}

/* Lexes {=}, {:} and {} at a brace: the sign alone, or nothing. *done: it was one of these. */
bool lex_braced_sign(struct lexer *x, bool *done)
{
    const int last = lex_last_kind(x);
    const int64_t i = lex_skip_spaces(x, x->i + 1);
    *done = false;
    if (i >= x->n || last == T_CARET || last == T_UNDER) return true;
    if (x->s[i] == '}' && (!last || lex_after_operand(x) || last == T_COMMA || last == T_REL || last == T_LPAREN))
        return *done = true, x->i = i + 1, true;
    if (i + 1 >= x->n || x->s[i + 1] != '}' || !strchr(":=<>", x->s[i])) return true;
    *done = true;
    const int64_t end = i + 2;
    return lex_range(x, i, i + 1) ? (x->i = end, true) : false;
}

/* Returns true if the last tokens are ^\circ or ^{\circ}. */
bool lex_after_degree(const struct lexer *x)
{
    const struct token *t = x->m->tokens + x->m->n_tokens;
    return lex_last_kind(x) == T_DEGREE || (x->m->n_tokens > 1 && t[-1].kind == T_RBRACE && t[-2].kind == T_DEGREE);
}

/* Counts the primes at i: ', '', ", ^\prime, ^{\prime\prime}; *end is after them. */
static int primes_at(const struct lexer *x, int64_t i, int64_t *end)
{
    int primes = 0, braces = 0;
    for (bool more = true; more && primes < 3;) {
        i = lex_skip_spaces(x, i);
        const char c = i < x->n ? x->s[i] : 0;
        more = true;
        if (c == '\'')
            primes++, i++;
        else if (c == '"')
            primes += 2, i++;
        else if (lex_starts(x, i, "\\prime"))
            primes++, i += 6;
        else if (c == '^' && (lex_starts(x, lex_skip_spaces(x, i + 1), "\\prime") || lex_starts(x, i + 1, "{\\prime") ||
                              lex_starts(x, i + 1, "{'")))
            i = lex_skip_spaces(x, i + 1), braces += x->s[i] == '{', i += x->s[i] == '{';
        else if (c == '}' && braces)
            braces--, i++;
        else
            more = false;
        if (more) *end = i;
    }
    return braces ? 0 : primes;
}

/* Returns whether a number of feet ends here, followed by inches: 5'8". */
static bool inches_follow(const struct lexer *x, int64_t i)
{
    int64_t end = lex_skip_spaces(x, i);
    const int64_t digits = lex_digits_end(x, end);
    return digits > end && primes_at(x, digits, &end) == 2;
}

bool lex_arc(struct lexer *x, bool *done)
{
    const struct token *t = x->m->tokens + x->m->n_tokens;
    int64_t end = x->i;
    *done = false;
    if (lex_last_kind(x) != T_NUM || x->m->n_tokens < 1) return true;
    const int before = x->m->n_tokens > 1 ? t[-2].kind : T_END, primes = primes_at(x, x->i, &end);
    const bool degrees =
        before == T_DEGREE || before == T_ARC || (before == T_RBRACE && x->m->n_tokens > 2 && t[-3].kind == T_DEGREE);
    const bool feet = primes == 1 && inches_follow(x, end), inches = primes == 2 && before == T_UNIT;
    if (primes < 1 || primes > 2 || !(degrees || feet || inches)) return true;
    *done = true;
    x->i = end;
    return degrees ? lex_push(x, T_ARC, primes, NULL, 0) : lex_push(x, T_UNIT, 0, feet ? "ft" : "in", 2);
}

/* Returns the unit of C, F, Celsius or Fahrenheit after a degree sign; NULL: another word. */
const char *lex_temperature(const struct lexer *x, const char *s, int64_t n)
{
    if (!lex_after_degree(x)) return NULL;
    if (lex_word_is(s, n, "C") || lex_word_is(s, n, "Celsius")) return "degc";
    return lex_word_is(s, n, "F") || lex_word_is(s, n, "Fahrenheit") ? "degf" : NULL;
}

/* Returns whether the text has only numbers and connectives: 6 and 8. */
static bool only_numbers(const char *s, int64_t n)
{
    for (int64_t i = 0; i < n;) {
        int64_t k = i;
        while (k < n && text_is_letter(s[k])) k++;
        if (k > i && !lex_word_is(s + i, k - i, "and") && !lex_word_is(s + i, k - i, "or")) return false;
        if (k == i && !text_is_digit(s[i]) && !text_is_space(s[i]) && !strchr(",.-/%", s[i])) return false;
        i = k > i ? k : i + 1;
    }
    return true;
}

/* Finds the numeral at the start of a text, followed by a blank and what it counts or measures: 3
 * hours. 0: none. */
int64_t lex_measure_in_text(const char *s, int64_t n)
{
    int64_t i = n > 1 && s[0] == '-';
    if (i >= n || !text_is_digit(s[i])) return 0;
    if (only_numbers(s, n)) return n;
    while (i < n && (text_is_digit(s[i]) || (strchr(".,/:", s[i]) && i + 1 < n && text_is_digit(s[i + 1])))) i++;
    if (i >= n || !text_is_space(s[i])) return 0;
    for (int64_t k = i; k < n; k++) {
        if (!text_is_letter(s[k]) && !strchr(" .-/^23", s[k])) return 0;
        if (text_is_digit(s[k]) && text_is_space(s[k - 1])) return 0; /* 12 apples and 3 pears */
    }
    return i;
}

/* Reads the word at s and the separator before the next one: a comma, "and", "or", ", and". *joint:
 * enum joint, 0 at the end. Returns where the next one starts; -1: other text. */
static int64_t read_enumerated(const char *s, int64_t n, int64_t *word, int *joint)
{
    int64_t i = 0;
    while (i < n && (text_is_letter(s[i]) || (i && s[i] == '-'))) i++;
    *word = i, *joint = 0;
    if (!i) return -1;
    while (i < n && text_is_space(s[i])) i++;
    if (i < n && s[i] == ',') *joint = JOINT_COMMA, i++;
    while (i < n && text_is_space(s[i])) i++;
    const int connective = n - i > 4 && !memcmp(s + i, "and ", 4) ? 4 : n - i > 3 && !memcmp(s + i, "or ", 3) ? 3 : 0;
    if (connective) *joint = connective == 4 ? JOINT_AND : JOINT_OR, i += connective;
    while (i < n && text_is_space(s[i])) i++;
    return *joint || i == n ? i : -1;
}

bool lex_is_enumeration(const char *s, int64_t n)
{
    int64_t word, next;
    int joint, words = 0;
    for (int64_t i = 0; i < n; i += next, words++)
        if ((next = read_enumerated(s + i, n - i, &word, &joint)) < 0 || (joint && i + next == n)) return false;
    return words > 1;
}

bool lex_enumeration(struct lexer *x, const char *s, int64_t n)
{
    int64_t word, next;
    int joint;
    for (int64_t i = 0; i < n; i += next) {
        char text[256];
        next = read_enumerated(s + i, n - i, &word, &joint);
        if (word > (int64_t)sizeof text) return lex_fail(x, "a very long word");
        const int64_t size = squash(s + i, word, text, word > 1);
        if (!lex_push(x, word > 1 ? T_TEXT : T_SYM, 0, text, size)) return false;
        if (joint && !lex_push(x, joint == JOINT_COMMA ? T_COMMA : T_AND, joint == JOINT_COMMA ? 0 : joint, NULL, 0)) return false;
    }
    return true;
}

/* Returns whether the text under a bar is a complex number in digits and i, so that its conjugate
 * is meant. */
bool lex_is_complex(const char *s, int64_t n)
{
    bool sign = false, unit = false;
    for (int64_t k = 0; k < n; k++) {
        if (s[k] == '\\') { /* \frac, \sqrt */
            while (k + 1 < n && text_is_letter(s[k + 1])) k++;
            continue;
        }
        sign |= s[k] == '+' || s[k] == '-';
        unit |= s[k] == 'i';
        if (text_is_letter(s[k]) && s[k] != 'i') return false;
    }
    return sign && unit;
}

/* ---------------------------------------------------------------- ordinals, options */

bool lex_is_ordinal(const char *s, int64_t n)
{
    return lex_word_is(s, n, "th") || lex_word_is(s, n, "st") || lex_word_is(s, n, "nd") || lex_word_is(s, n, "rd");
}

int64_t lex_option_label(const char *s, int64_t n)
{
    const int64_t open = n && s[0] == '(';
    if (n < open + 2 || s[open] < 'A' || s[open] > 'H') return 0;
    return s[open + 1] == ')' || (!open && s[1] == '.') ? open + 2 : 0;
}

bool lex_option_follows(const struct lexer *x, int64_t i)
{
    static const char *const blanks[] = {" ", "~", "\\ ", "\\,", "\\;", "\\:", "\\quad", "\\qquad", NULL};
    static const char *const values[] = {"frac", "dfrac", "tfrac", "sqrt", "text", "mathrm", "pi", "begin", "left", "$", NULL};
    for (const char *const *b = blanks; *b;) {
        const int64_t n = (int64_t)strlen(*b);
        const bool here = i + n <= x->n && !memcmp(x->s + i, *b, (size_t)n);
        i += here ? n : 0;
        b = here ? blanks : b + 1;
    }
    if (i >= x->n) return false;
    if (x->s[i] != '\\') return text_is_digit(x->s[i]) || text_is_letter(x->s[i]) || x->s[i] == '$';
    for (const char *const *v = values; *v; v++)
        if (i + 1 + (int64_t)strlen(*v) <= x->n && !memcmp(x->s + i + 1, *v, strlen(*v))) return true;
    return false;
}

bool lex_push_option(struct lexer *x, const char *label)
{
    const char *letter = label + (*label == '(');
    return lex_push(x, T_OPTION, *letter, letter, 1);
}

bool lex_option(struct lexer *x)
{
    const int64_t first = lex_skip_spaces(x, 0),
                  start = lex_skip_spaces(x, first + (lex_starts(x, first, "\\displaystyle ") ? 14 : 0)),
                  label = lex_option_label(x->s + start, x->n - start);
    const int64_t end = start + label;
    int64_t rest = lex_skip_spaces(x, end);
    rest += rest < x->n && x->s[rest] == '.';
    if (label == 2 && x->s[start + 1] == ')' && lex_skip_spaces(x, rest) >= x->n) /* A) */
        return x->i = x->n, lex_push(x, T_SYM, 0, x->s + start, 1);
    if (!label || end >= x->n || !(text_is_space(x->s[end]) || x->s[end] == '~' || x->s[end] == '\\')) return true;
    const int64_t next = lex_skip_spaces(x, end);
    /* (A) x is a product */
    if (x->s[start] == '(' && next < x->n && text_is_letter(x->s[next])) return true;
    return !lex_option_follows(x, end) || (x->i = end, lex_push_option(x, x->s + start));
}
