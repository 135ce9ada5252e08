/* Commands of LaTeX: a backslash and its name. */
#include "lexer.h"

#include <string.h>

/* Lexes \frac{\text{m}}{\text{s}} after a value; *done: it was such a unit. */
static bool lex_unit_fraction(struct lexer *x, bool *done)
{
    struct unit u[2];
    const struct lexer near = lex_near(x, x->i);
    int64_t from = lex_skip_spaces(&near, x->i);
    *done = false;
    for (int k = 0; k < 2; k++) {
        const int64_t to = lex_group_end(&near, from);
        if (from + 3 >= near.n || x->s[from] != '{' || x->s[from + 1] != '\\') return true;
        if (unit_read(x->s + from, to - from, true, &u[k]) < to - from) return true;
        from = to;
    }
    for (int i = 0; i < u[1].n; i++)
        if (!unit_multiply(&u[0], u[1].part[i].name, -u[1].part[i].power)) return true;
    *done = true;
    x->i = from;
    return lex_push_unit(x, &u[0]);
}

static bool ends_in(const char *name, int64_t n, const char *end)
{
    const int64_t size = (int64_t)strlen(end);
    return n >= size && !memcmp(name + n - size, end, (size_t)size);
}

/* Returns true for matrix, pmatrix, bmatrix*, psmallmatrix and similar names. */
static bool is_matrix_name(const char *name, int64_t n)
{
    return ends_in(name, n, "matrix") || ends_in(name, n, "matrix*");
}

/* Returns the position after the mark that closes near here; the current one if not found. */
static int64_t skip_to(const struct lexer *x, char mark)
{
    const struct lexer near = lex_near(x, x->i);
    for (int64_t k = x->i; k < near.n; k++)
        if (x->s[k] == mark) return k + 1;
    return x->i;
}

static bool lex_environment(struct lexer *x, bool close)
{
    if (x->i >= x->n || x->s[x->i] != '{') return lex_fail(x, "\\begin without a name");
    const int64_t end = lex_group_end(x, x->i);
    const tare_text trimmed = text_trim((tare_text){x->s + x->i + 1, end - x->i - 2});
    const char *name = trimmed.data;
    const int64_t n = trimmed.size;
    x->i = end;
    static const char *const lines[] = {"align",    "align*", "aligned",   "gather",    "gather*", "gathered",
                                        "equation", "split",  "equation*", "multline*", NULL};
    for (const char *const *l = lines; *l; l++)
        if (lex_word_is(name, n, *l)) return x->space = true, true;
    if (close) return x->matrices--, lex_push(x, T_ENDENV, 0, NULL, 0);
    int kind = ENV_OTHER;
    if (lex_word_is(name, n, "cases") || lex_word_is(name, n, "dcases") || lex_word_is(name, n, "rcases")) kind = ENV_CASES;
    if (is_matrix_name(name, n)) {
        kind = *name == 'v' || *name == 'V' ? ENV_DET : ENV_MATRIX;
        if (x->i < x->n && x->s[x->i] == '[' && name[n - 1] == '*') x->i = skip_to(x, ']');
    }
    if (lex_word_is(name, n, "array")) {
        kind = ENV_MATRIX;
        if (x->i < x->n && x->s[x->i] == '{') x->i = lex_group_end(x, x->i);
    }
    if (kind == ENV_OTHER) return lex_fail(x, "an environment that is not a matrix");
    return x->matrices++, lex_push(x, T_BEGIN, kind, NULL, 0);
}

/* Lexes \pmatrix{1 & 2 \cr 3 & 4}, as in plain TeX. */
static bool lex_plain_matrix(struct lexer *x, bool det)
{
    const int64_t open = lex_skip_spaces(x, x->i), end = lex_group_end(x, open);
    if (open >= x->n || x->s[open] != '{' || x->s[end - 1] != '}') return lex_fail(x, "an unknown command");
    x->matrices++;
    if (!lex_push(x, T_BEGIN, det ? ENV_DET : ENV_MATRIX, NULL, 0) || !lex_range(x, open + 1, end - 1)) return false;
    x->matrices--;
    return x->i = end, lex_push(x, T_ENDENV, 0, NULL, 0);
}

static bool lex_accent(struct lexer *x, const char *name, int64_t n)
{
    char full[128];
    const struct lexer near = lex_near(x, x->i);
    const int64_t from = lex_skip_spaces(&near, x->i), to = lex_group_end(&near, from);
    if (to - from > 60 || n > 30) return lex_fail(x, "a very long accent");
    full[0] = '\\';
    memcpy(full + 1, name, (size_t)n);
    full[n + 1] = '{';
    const bool braced = from < x->n && x->s[from] == '{';
    const int64_t size = n + 2 + squash(x->s + from + braced, to - from - 2 * braced, full + n + 2, false);
    x->i = to;
    if (lex_is_complex(x->s + from, to - from) && (lex_word_is(name, n, "overline") || lex_word_is(name, n, "bar")))
        return lex_push(x, T_FUNC, F_CONJ, NULL, 0) && lex_push(x, T_LPAREN, 0, NULL, 0) &&
               lex_range(x, from + braced, to - braced) && lex_push(x, T_RPAREN, 0, NULL, 0);
    const char unit = lex_word_is(name, n, "hat") ? lex_unit_vector(full + n + 2, size - n - 2) : 0;
    if (unit) return lex_push_unit_vector(x, unit);
    return lex_push_symbol(x, full, size);
}

/* Lexes \\: a row of a matrix, a continued line, or the end of one of several lines. */
static bool lex_line_end(struct lexer *x)
{
    if (x->i < x->n && x->s[x->i] == '[') { /* \\[4pt] */
        int64_t k = x->i + 1;
        while (k < x->n && k < x->i + 12 && (text_is_digit(x->s[k]) || strchr(".- ", x->s[k]))) k++;
        const int64_t unit = k;
        while (k < x->n && k < unit + 2 && text_is_letter(x->s[k])) k++;
        if (unit > x->i + 1 && k == unit + 2 && k < x->n && x->s[k] == ']') x->i = k + 1;
    }
    if (x->matrices) return lex_push(x, T_ROW, 0, NULL, 0);
    const int64_t next = lex_skip_spaces(x, x->i);
    x->space = true;
    if (next >= x->n || !x->m->n_tokens || strchr("=&+-<>", x->s[next]) || (x->s[next] == '\\' && !lex_after_operand(x)))
        return true;
    return lex_push(x, T_COMMA, 0, NULL, 0);
}

/* Returns whether the lines are a system, not a matrix that is the member of a set. */
static bool opens_system(const struct lexer *x)
{
    const int64_t i = lex_skip_spaces(x, x->i);
    return i + 8 <= x->n && !memcmp(x->s + i, "\\begin{", 7) && !memchr("pbvBV", x->s[i + 7], 5);
}

/* Lexes a backslash followed by c, which is not a letter (0: none). */
static bool lex_escape(struct lexer *x, const char *name, char c)
{
    x->i += 2;
    switch (c) {
    case '\\': {
        int64_t k = 1;
        while (x->i - 1 + k < x->n && text_is_letter(name[k])) k++;
        /* \\frac: escaped twice */
        if (k > 2 && find_command(name + 1, k - 1)) return x->i--, lex_command(x);
        return lex_line_end(x);
    }
    case '{':
        if (x->after_left && opens_system(x)) return true; /* \left\{ of a system */
        return x->depth++, lex_push(x, T_LSET, 0, NULL, 0);
    case '}':
        return x->depth -= x->depth > 0, lex_push(x, T_RSET, 0, NULL, 0);
    case '|':
        return lex_push(x, T_BAR, 0, NULL, 0);
    case '%':
        return lex_push(x, T_PERCENT, 0, NULL, 0);
    case 0:   /* a trailing backslash */
    case '(': /* maths delimiters */
    case ')':
    case '[':
    case ']':
    case '!':
        return true;
    case '$':
        return lex_push_word(x, find_command("textdollar", 10));
    case '&':
        return lex_push(x, T_AND, JOINT_AND, NULL, 0);
    case '#':
        return lex_push(x, T_MARK, 0, "#", 1);
    case ',':
    case ';':
    case ':':
    case ' ':
    case '>':
    case '\n':
        return x->space = true, true;
    default:
        return lex_fail(x, "an unknown command");
    }
}

/* Classifies an unknown command by LaTeX's naming patterns: fonts begin with math or text, sizes
 * end in size, boxes in box. */
static const struct word *by_pattern(const char *name, int64_t n)
{
    static const struct word font = {"mathfont", T_STYLE, 0, NULL}, words = {"textfont", T_WORDS, 0, NULL},
                             size = {"size", T_SKIP, 0, NULL}, box = {"box", T_GROUP, 0, NULL},
                             matrix = {"matrix", T_BEGIN, 0, NULL};
    if (n > 5 && !memcmp(name, "math", 4)) return &font;
    if (n > 5 && !memcmp(name, "text", 4)) return &words;
    if (ends_in(name, n, "size") || ends_in(name, n, "style")) return &size;
    if (is_matrix_name(name, n)) return &matrix;
    return ends_in(name, n, "box") ? &box : NULL;
}

/* Skips [5px] after \bbox, which is only layout. */
static void skip_optional(struct lexer *x)
{
    const int64_t i = lex_skip_spaces(x, x->i);
    if (i >= x->n || x->s[i] != '[') return;
    const struct lexer near = lex_near(x, i);
    for (int64_t k = i + 1; k < near.n; k++)
        if (x->s[k] == ']') {
            if (k + 1 < x->n && x->s[k + 1] == '{') x->i = k + 1;
            return;
        }
}

/* Finds the command of the n letters, or of their beginning if letters are attached: \quadx,
 * \vertx. Shortens *n to its name. */
static const struct word *command_of(const char *name, int64_t *n)
{
    const struct word *w = find_command(name, *n);
    for (int64_t k = *n - 1; !w && k >= 2; k--) {
        w = find_command(name, k);
        if (w && !(w->kind == T_SKIP || (w->kind >= T_LPAREN && w->kind <= T_RANGLE) || w->kind == T_TIMES || w->kind == T_LEFT ||
                   w->kind == T_RIGHT))
            w = NULL;
        if (w) *n = k;
    }
    return w ? w : by_pattern(name, *n);
}

/* Returns whether y = is at i, as after the \quad of x = 2 \quad y = 5. */
static bool assigns_at(const struct lexer *x, int64_t i)
{
    i = lex_skip_spaces(x, i);
    if (i >= x->n || !text_is_letter(x->s[i])) return false;
    i++;
    if (i + 1 < x->n && x->s[i] == '_' && (text_is_digit(x->s[i + 1]) || text_is_letter(x->s[i + 1]))) i += 2;
    i = lex_skip_spaces(x, i);
    return i < x->n && x->s[i] == '=';
}

/* Lexes \forall as the start of a condition after a value: \forall k \in Z. */
static bool lex_quantifier(struct lexer *x)
{
    if (!x->m->n_tokens) return x->space = true, true;
    if (lex_last_kind(x) == T_COMMA) x->m->n_tokens--;
    return lex_push(x, T_WHERE, 0, NULL, 0);
}

/* Skips a command without meaning, except a \quad between two assignments. */
static bool lex_skip(struct lexer *x, const char *name, int64_t n)
{
    if (ends_in(name, n, "quad") && lex_after_operand(x) && !x->depth && !x->matrices && assigns_at(x, x->i))
        return lex_push(x, T_COMMA, 0, NULL, 0);
    return x->space = true, true;
}

/* Lexes the text after \right: a | closes, a . is ignored. */
static bool lex_right(struct lexer *x)
{
    const int64_t k = lex_skip_spaces(x, x->i);
    if (k < x->n && x->s[k] == '|') return x->i = k + 1, lex_push(x, T_RBAR, 0, NULL, 0);
    if (k < x->n && x->s[k] == '.') x->i = k + 1;
    if (k < x->n && x->s[k] == '[') return x->i = k + 1, x->depth -= x->depth > 0, lex_push(x, T_RPAREN, 0, NULL, 0);
    return true;
}

static bool lex_blackboard(struct lexer *x)
{
    int64_t from = lex_skip_spaces(x, x->i);
    const int64_t to = lex_group_end(x, from);
    if (from < x->n && x->s[from] == '{') from = lex_skip_spaces(x, from + 1);
    const struct word *set = from < x->n ? find_command(x->s + from, 1) : NULL;
    x->i = to;
    if (set && set->kind == T_CONST) { /* \mathbb{N}^*, N^{*}: without zero */
        static const char *const marks[] = {"^*", "^{*}", "^\\ast", "^{\\ast}", NULL};
        for (const char *const *k = marks; *k; k++)
            if (lex_starts(x, x->i, *k)) return x->i += (int64_t)strlen(*k), lex_push_word(x, set);
        return lex_push_word(x, set);
    }
    const char name[3] = {'\\', 'b', from < x->n ? x->s[from] : 0}; /* E[X], P(A): names */
    return text_is_letter(name[2]) ? lex_push_symbol(x, name, 3) : lex_fail(x, "an unknown blackboard letter");
}

/* Lexes a style. The letter of \vec u or \mathbf{A} is marked, \vec{AB} is a separate name. For
 * other arguments, and the constants e and i, the style is ignored. */
static bool lex_styled(struct lexer *x, int style, bool *done)
{
    int64_t from = lex_skip_spaces(x, x->i);
    const bool braced = from < x->n && x->s[from] == '{';
    if (braced) from = lex_skip_spaces(x, from + 1);
    int64_t to = from;
    while (to < x->n && to < from + 3 && text_is_letter(x->s[to])) to++;
    const int64_t close = braced ? lex_skip_spaces(x, to) : to, n = braced ? to - from : to > from;
    *done = false;
    if (n < 1 || n > 2 || (braced && (close >= x->n || x->s[close] != '}'))) return true;
    if (n == 1 && braced && lex_unit_vector(x->s + from, 1) && lex_other_unit_vector(x, x->s[from]))
        return *done = true, x->i = close + 1, lex_push_unit_vector(x, x->s[from]);
    if (n == 1 && (x->s[from] == 'e' || x->s[from] == 'i')) return true;
    if (n == 2 && (style != STYLE_ARROW || x->s[from] > 'Z' || x->s[from + 1] > 'Z')) return true;
    *done = true;
    if (n == 2) {
        if (!lex_accent(x, "overrightarrow", 14)) return false;
    } else {
        x->i = braced ? close + 1 : from + 1;
        if (!lex_push_symbol(x, x->s + from, 1)) return false;
    }
    x->m->tokens[x->m->n_tokens - 1].aux = SYM_ORDERED;
    return true;
}

/* Lexes 1.2\ \mu\text{F}, 5 \micro m as a unit; 5\mu m is a product. *done: it was a unit. */
static bool lex_micro(struct lexer *x, const char *s, bool *done)
{
    struct unit u;
    const int64_t next = lex_skip_spaces(x, x->i);
    const bool upright = next < x->n && (x->s[next] == '\\' || s[2] == 'i');
    const int64_t used = upright ? unit_read(s, x->n - (s - x->s), true, &u) : 0;
    *done = used > 0;
    if (!*done) return true;
    x->i = s - x->s + used;
    return lex_push_unit(x, &u);
}

/* Returns true if \circ is a composition, as in f \circ g: no power precedes it, and an operand is
 * on both sides. 25\circ C is a temperature. */
static bool is_composition(const struct lexer *x, const char *name, int64_t n)
{
    const int last = lex_last_kind(x);
    const int64_t i = lex_skip_spaces(x, x->i);
    if (!lex_word_is(name, n, "circ") || (last != T_SYM && last != T_RPAREN) || i >= x->n) return false;
    return text_is_letter(x->s[i]) || x->s[i] == '(' || (x->s[i] == '\\' && i + 1 < x->n && text_is_letter(x->s[i + 1]));
}

/* Lexes commands with another meaning after a value: 8\Omega, 2\angle 60^\circ, 30\deg, f \circ g.
 * *done: it was one. */
static bool lex_behind_value(struct lexer *x, const char *name, int64_t n, bool *done)
{
    const bool number = lex_last_kind(x) == T_NUM;
    *done = true;
    if (number && lex_word_is(name, n, "Omega") && lex_skip_spaces(x, x->i) >= x->n) return lex_push(x, T_UNIT, 0, "ohm", 3);
    if (number && (lex_word_is(name, n, "mu") || lex_word_is(name, n, "micro"))) return lex_micro(x, name - 1, done);
    if (number && lex_word_is(name, n, "angle")) return lex_push(x, T_FUNC, F_CIS, NULL, 0);
    if (lex_after_operand(x) && lex_word_is(name, n, "deg")) return lex_push(x, T_DEGREE, 0, NULL, 0);
    if (is_composition(x, name, n)) return lex_push(x, T_DEGREE, 1, NULL, 0);
    return *done = false, true;
}

static void count_bracket(struct lexer *x, int kind)
{
    if (kind == T_LSET || kind == T_LPAREN || kind == T_LBRACK) x->depth++;
    if (kind == T_RSET || kind == T_RPAREN || kind == T_RBRACK) x->depth -= x->depth > 0;
}

/* Lexes an unknown command: a name if it is a whole member of a chain, a = \unknown = b; elsewhere
 * it may be an operator. */
static bool lex_unknown(struct lexer *x, const char *name, int64_t n)
{
    if (lex_last_kind(x) != T_REL || !lex_starts(x, lex_skip_spaces(x, x->i), "=")) return lex_fail(x, "an unknown command");
    return lex_push_symbol(x, name, n);
}

bool lex_command(struct lexer *x)
{
    const char *name = x->s + x->i + 1;
    int64_t n = 0;
    while (x->i + 1 + n < x->n && text_is_letter(name[n])) n++;
    if (!n) return lex_escape(x, name, x->i + 1 < x->n ? name[0] : 0);
    bool done = false;
    if (!lex_siunitx(x, name, n, &done) || done) return done;
    const struct word *w = command_of(name, &n);
    x->i += 1 + n;
    if (!w) return lex_unknown(x, name, n);
    if (!lex_behind_value(x, name, n, &done) || done) return done;
    switch (w->kind) {
    case T_FRAC:
        if (lex_after_operand(x) && (!lex_unit_fraction(x, &done) || done)) return done;
        break;
    case T_STYLE:
        if (w->aux && (!lex_styled(x, w->aux, &done) || done)) return done;
        return x->space = true, true;
    case T_GROUP:
        skip_optional(x);
        return x->space = true, true;
    case T_SKIP:
        return lex_skip(x, name, n);
    case T_ROW: /* \cr */
        return lex_line_end(x);
    case T_ASIDE:
        x->i = lex_group_end(x, lex_skip_spaces(x, x->i));
        return x->space = true, true;
    case T_NOT:
        return x->negated = true, true;
    case T_WHERE:
        return lex_quantifier(x);
    case T_LEFT:
        x->after_left = true;
        return true;
    case T_RIGHT:
        return lex_right(x);
    case T_WORDS:
        return lex_words(x, w->aux == 1);
    case T_BB:
        return lex_blackboard(x);
    case T_BEGIN:
        return lex_plain_matrix(x, *name == 'v' || *name == 'V');
    case T_ENV:
        return lex_environment(x, w->aux);
    case T_ACCENT:
    case T_OVERLINE:
        return lex_accent(x, name, n);
    case T_BAR:
        if (x->after_left) return lex_push(x, T_LBAR, 0, NULL, 0);
        break;
    case T_BAD:
        return lex_fail(x, "a command without a value here");
    default:
        count_bracket(x, w->kind);
        break;
    }
    return lex_push_word(x, w);
}
