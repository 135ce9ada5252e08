/* Commands of LaTeX: a backslash and what follows. */
#include "lexer.h"

#include <string.h>

/* so, hence ...: what comes before is not the answer */
static bool is_consequence(const char *s, int64_t n)
{
    static const char *const words[] = {"so",      "thus",        "hence",           "therefore", "then", "and so",
                                        "so that", "which gives", "giving",          "we get",    "i.e",  "that is",
                                        "implies", "which means", "or equivalently", NULL};
    for (const char *const *w = words; *w; w++)
        if (lex_word_is(s, n, *w)) return true;
    return false;
}

/* "is an integer", "are arbitrary real constants": what kind of number a letter is; 0: other words */
static int kind_in_words(const char *s, int64_t n)
{
    static const struct {
        const char *word;
        int set;
    } words[] = {{"is", 0},
                 {"are", 0},
                 {"be", 0},
                 {"a", 0},
                 {"an", 0},
                 {"any", 0},
                 {"all", 0},
                 {"some", 0},
                 {"arbitrary", 0},
                 {"number", 0},
                 {"numbers", 0},
                 {"constant", C_REALS},
                 {"constants", C_REALS},
                 {"real", C_REALS},
                 {"reals", C_REALS},
                 {"integer", C_INTEGERS},
                 {"integers", C_INTEGERS},
                 {"complex", C_COMPLEXES},
                 {"rational", C_RATIONALS},
                 {NULL, 0}};
    int set = 0;
    for (int64_t i = 0; i < n;) {
        int64_t end = i;
        int k = 0;
        while (end < n && text_is_letter(s[end])) end++;
        while (words[k].word && !lex_word_is(s + i, end - i, words[k].word)) k++;
        if (end == i || !words[k].word) return 0;
        if (words[k].set && set != C_INTEGERS) set = words[k].set;
        for (i = end; i < n && (text_is_space(s[i]) || s[i] == '~');) i++;
    }
    return set;
}

/* "where", "for all", "for any integer": a condition follows. *set: the kind of number they name, or 0 */
static bool is_condition(const char *s, int64_t n, int *set)
{
    static const char *const words[] = {"where",   "for",       "with",           "if",      "when",          "such that",
                                        "for all", "for every", "for some",       "for any", "provided that", "provided",
                                        "where $", "for each",  "if and only if", NULL};
    for (const char *const *w = words; *w; w++) { /* "for any", "for any integer" */
        const int64_t size = (int64_t)strlen(*w);
        *set = 0;
        if (n >= size && !memcmp(s, *w, (size_t)size) &&
            (n == size || (text_is_space(s[size]) && (*set = kind_in_words(s + size + 1, n - size - 1)))))
            return true;
    }
    return false;
}

/* "all real numbers", "the empty set", squashed; 0: other words */
static int set_in_words(const char *s, int64_t n)
{
    static const struct {
        const char *words;
        int set;
    } sets[] = {{"allrealnumbers", C_REALS}, {"allreals", C_REALS},       {"therealnumbers", C_REALS},  {"allintegers", C_INTEGERS},
                {"emptyset", C_EMPTY},       {"theemptyset", C_EMPTY},    {"nosolution", C_EMPTY},      {"infinity", C_INF},
                {"nosolutions", C_EMPTY},    {"norealsolution", C_EMPTY}, {"norealsolutions", C_EMPTY}, {NULL, 0}};
    int k = 0;
    while (sets[k].words && !lex_word_is(s, n, sets[k].words)) k++;
    return sets[k].set;
}

static bool has_words(const char *s, int64_t n)
{
    for (int64_t k = 0, run = 0; k < n; k++) {
        if (s[k] == '\\') { /* a command is no word */
            while (k + 1 < n && text_is_letter(s[k + 1])) k++;
            run = 0;
            continue;
        }
        run = text_is_letter(s[k]) ? run + 1 : 0;
        if (run > 1) return true;
    }
    return false;
}

/* "(or 8)", "(not 8)": a remark that the value does not stand without */
static bool names_another(const char *s, int64_t n)
{
    for (int64_t i = 1; i + 3 < n; i++)
        if (!text_is_letter(s[i - 1]) && (!memcmp(s + i, "or ", 3) || (i + 4 < n && !memcmp(s + i, "not ", 4)))) return true;
    return false;
}

/* The words of s with one blank between them, in lower case. */
static int64_t phrase(const char *s, int64_t n, char *out)
{
    int64_t size = 0;
    for (int64_t i = 0; i < n;) {
        int64_t end = i;
        while (end < n && !text_is_space(s[end]) && s[end] != '~') end++;
        if (size && end > i) out[size++] = ' ';
        size += squash(s + i, end - i, out + size, true);
        i = end + 1;
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < size; i++) /* p.m. is pm */
        if (out[i] != '.') out[kept++] = out[i];
    return kept;
}

/* Words after a value: its unit, a base, a remark in brackets, or what it counts. *done: they were one of these. */
static bool lex_words_behind(struct lexer *x, const char *s, int64_t n, bool *done)
{
    char text[4 + 256] = "?";
    int64_t used = 0;
    *done = true;
    if (n > 256) return lex_fail(x, "long text after a value");
    int64_t size = phrase(s, n, text + 1);
    if (lex_word_is(text + 1, size, "am") || lex_word_is(text + 1, size, "pm")) return lex_push(x, T_UNIT, 0, text + 1, size);
    size = squash(s, n, text + 1, true);
    const int base = lex_base_of(text + 1, size);
    if (base && size > 2) return lex_push(x, T_BASE, base, NULL, 0);
    if (n > 2 && s[0] == '(' && s[n - 1] == ')' && has_words(s, n)) /* (exactly) */
        return names_another(s, n) ? lex_fail(x, "a remark that names another value") : (x->space = true, true);
    const int before = x->m->n_tokens;
    if (!lex_push_measure(x, s, n, true, &used)) return false;
    if (used && (used == n || !has_words(s + used, n - used))) return true;
    if (used && (lex_last_kind(x) == T_SCALE || lex_last_kind(x) == T_NUM)) { /* 2 million people */
        while (used < n && text_is_space(s[used])) used++;
        return lex_words_behind(x, s + used, n - used, done);
    }
    x->m->n_tokens = before;
    if (!has_words(s, n)) return *done = false, true;
    for (int64_t k = 0; k < n;) { /* the first word that is a unit, else all of it */
        struct unit u;
        if (text_is_letter(s[k]) && unit_read(s + k, n - k, true, &u)) return lex_push_unit(x, &u);
        while (k < n && text_is_letter(s[k])) k++;
        while (k < n && !text_is_letter(s[k])) k++;
    }
    return lex_push(x, T_UNIT, 0, text, 1 + phrase(s, n, text + 1));
}

/* Words that join or qualify: and, so, where, is an integer. *done: they were one of these. */
static bool lex_joint(struct lexer *x, const char *s, int64_t n, bool *done)
{
    int set = 0;
    *done = true;
    if (lex_last_kind(x) == T_NUM && lex_is_ordinal(s, n)) return true;
    if (lex_word_is(s, n, "and")) return lex_push(x, T_AND, JOINT_AND, NULL, 0);
    if (lex_word_is(s, n, "or")) return lex_push(x, T_AND, JOINT_OR, NULL, 0);
    if (lex_word_is(s, n, "to") && lex_last_kind(x) == T_NUM) return lex_push(x, T_COLON, 0, NULL, 0);
    if (x->matrices && (lex_word_is(s, n, "if") || lex_word_is(s, n, "for") || lex_word_is(s, n, "when")))
        return x->space = true, true;
    if (lex_word_is(s, n, "mod")) return lex_push(x, T_MOD, 0, NULL, 0);
    if (is_consequence(s, n)) return lex_push(x, T_IMPLIES, 0, NULL, 0);
    const bool comma = lex_last_kind(x) == T_COMMA && x->m->n_tokens > 1 && !x->depth; /* 2k\pi, where k is an integer */
    if (!x->matrices && (comma || lex_after_operand(x)) && is_condition(s, n, &set)) {
        x->m->n_tokens -= comma;
        return lex_push(x, T_WHERE, set, NULL, 0);
    }
    if (lex_after_operand(x) && !lex_word_is(s, n, "a") && (set = kind_in_words(s, n)))
        return lex_push(x, T_REL, R_IN, NULL, 0) && lex_push(x, T_CONST, set, NULL, 0);
    return *done = false, true;
}

/* Upright letters: \mathrm{C}_n^k, \mathrm{min} as a unit, \operatorname{lcm}. *done: they were one of these. */
static bool lex_upright(struct lexer *x, const char *s, int64_t n, bool *done)
{
    *done = false;
    if (lex_word_is(s, n, "C")) return lex_combinations(x, done);
    if (lex_word_is(s, n, "min") && lex_after_operand(x) && !(x->i < x->n && strchr("({_\\", x->s[x->i])))
        return *done = true, lex_push(x, T_UNIT, 0, "min", 3);
    const struct word *w = n > 1 ? find_command(s, n) : NULL;
    if (!w ||
        !(w->kind == T_FUNC || w->kind == T_LOG || w->kind == T_LG || w->kind == T_CONST || w->kind == T_MOD || w->kind == T_DET))
        return true;
    return *done = true, lex_push_word(x, w);
}

/* Text that is no unit and no joint: mathematics after all, a list of words, a measure, or words. */
static bool lex_prose(struct lexer *x, const char *s, int64_t n)
{
    char text[1000];
    bool done;
    const int64_t from = s - x->s;
    if (!has_words(s, n)) return lex_range(x, from, from + n);
    if (!lex_after_operand(x) && lex_is_enumeration(s, n)) return lex_enumeration(x, s, n);
    const int64_t numeral = lex_after_operand(x) ? 0 : lex_measure_in_text(s, n);
    if (numeral) {
        if (!lex_range(x, from, from + numeral)) return false;
        return numeral == n || lex_words_behind(x, s + numeral + 1, n - numeral - 1, &done);
    }
    if (n > (int64_t)sizeof text) return lex_fail(x, "long text");
    const int64_t size = squash(s, n, text, true);
    const int known = set_in_words(text, size);
    return known ? lex_push(x, T_CONST, known, NULL, 0) : lex_push(x, T_TEXT, 0, text, size);
}

/* "The area is": what follows is the answer */
static bool introduces(const char *s, int64_t n)
{
    static const char *const last[] = {" is", " are", " equals", " equal to", " be", NULL};
    for (const char *const *w = last; *w; w++) {
        const int64_t size = (int64_t)strlen(*w);
        if (n > size && !memcmp(s + n - size, *w, (size_t)size)) return true;
    }
    return false;
}

/* Words of \text and its kin. */
static bool lex_words(struct lexer *x, bool math_font)
{
    const int64_t open = lex_skip_spaces(x, x->i), end = lex_group_end(x, open);
    int64_t from = open, to = end;
    if (open < x->n && x->s[open] == '{') from++, to -= x->s[end - 1] == '}';
    x->i = end;
    while (from < to && (text_is_space(x->s[from]) || strchr("~,.", x->s[from])) &&
           !(x->s[from] == '.' && from + 1 < to && text_is_digit(x->s[from + 1])))
        from++;
    const tare_text all = {x->s + from, to > from ? to - from : 0};
    if (!x->m->n_tokens && all.size > 7 && (text_starts(all, 0, "option ", true) || text_starts(all, 0, "choice ", true)))
        from += 7;
    int64_t last = to; /* of the text without its full stop */
    while (last > from && (text_is_space(x->s[last - 1]) || strchr("~,.:", x->s[last - 1]))) last--;
    const int64_t label = x->m->n_tokens ? 0 : lex_option_label(x->s + from, to - from);
    if (label && (from + label < last || lex_option_follows(x, end))) {
        if (!lex_push_option(x, x->s + from)) return false;
        for (from += label; from < to && text_is_space(x->s[from]);) from++;
    }
    if (label == to - from && label == 2) to--; /* \text{E)} */
    bool colon = false, done = false;
    while (to > from && (text_is_space(x->s[to - 1]) || strchr("~,.:", x->s[to - 1]))) colon |= x->s[--to] == ':';
    const char *s = x->s + from;
    const int64_t n = to - from;
    if (n <= 0) return x->space = true, true;
    if (!lex_joint(x, s, n, &done)) return false;
    if (done) return true;
    int64_t word = 0;
    while (word < n && text_is_letter(s[word])) word++;
    if (math_font && word == n && !lex_upright(x, s, n, &done)) return false;
    if (done) return true;
    const bool words = has_words(s, n);
    if (colon && words && !x->m->n_tokens && lex_skip_spaces(x, end) < x->n) return x->space = true, true; /* \text{Area: } 5 */
    if (words && !x->m->n_tokens && introduces(s, n) && lex_skip_spaces(x, end) < x->n) return x->space = true, true;
    if (lex_unit_follows(x) && (words || word || s[0] == '\\' || s[0] == '(') && !lex_words_behind(x, s, n, &done)) return false;
    if (done) return true;
    const char *unit = find_unit(s, word, true); /* \text{USD } 5 */
    if (word == n && unit && (!strcmp(unit, "dollar") || !strcmp(unit, "euro")) && to < end - 1 && n == 3)
        return lex_push(x, T_CURRENCY, 0, unit, (int64_t)strlen(unit));
    return lex_prose(x, s, n);
}

/* \frac{\text{m}}{\text{s}} after a value; *done: it was such a unit */
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

static bool lex_environment(struct lexer *x, bool close)
{
    if (x->i >= x->n || x->s[x->i] != '{') return lex_fail(x, "\\begin without a name");
    const int64_t end = lex_group_end(x, x->i);
    const char *name = x->s + x->i + 1;
    const int64_t n = end - x->i - 2;
    x->i = end;
    static const char *const lines[] = {"align",    "align*", "aligned",   "gather",    "gather*", "gathered",
                                        "equation", "split",  "equation*", "multline*", NULL};
    for (const char *const *l = lines; *l; l++)
        if (lex_word_is(name, n, *l)) return x->space = true, true;
    if (close) return x->matrices--, lex_push(x, T_ENDENV, 0, NULL, 0);
    int kind = ENV_OTHER;
    if (lex_word_is(name, n, "cases") || lex_word_is(name, n, "dcases") || lex_word_is(name, n, "rcases")) kind = ENV_CASES;
    if (lex_word_is(name, n, "vmatrix") || lex_word_is(name, n, "Vmatrix"))
        kind = ENV_DET;
    else if (lex_word_is(name, n, "pmatrix") || lex_word_is(name, n, "bmatrix") || lex_word_is(name, n, "matrix") ||
             lex_word_is(name, n, "pmatrix*") || lex_word_is(name, n, "bmatrix*") || lex_word_is(name, n, "Bmatrix") ||
             lex_word_is(name, n, "smallmatrix"))
        kind = ENV_MATRIX;
    else if (lex_word_is(name, n, "array")) {
        kind = ENV_MATRIX;
        if (x->i < x->n && x->s[x->i] == '{') x->i = lex_group_end(x, x->i);
    }
    if (kind == ENV_OTHER) return lex_fail(x, "an environment that is not a matrix");
    return x->matrices++, lex_push(x, T_BEGIN, kind, NULL, 0);
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
    return lex_push_symbol(x, full, size);
}

/* \\: a row of a matrix, a line that continues, or the end of one of several lines. */
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

/* Lines of a system, and no matrix that is the member of a set? */
static bool opens_system(const struct lexer *x)
{
    const int64_t i = lex_skip_spaces(x, x->i);
    return i + 8 <= x->n && !memcmp(x->s + i, "\\begin{", 7) && !memchr("pbvBV", x->s[i + 7], 5);
}

/* A backslash and a character that is no letter, which is c (0: none). */
static bool lex_escape(struct lexer *x, const char *name, char c)
{
    x->i += 2;
    switch (c) {
    case '\\': {
        int64_t k = 1;
        while (x->i - 1 + k < x->n && text_is_letter(name[k])) k++;
        if (k > 2 && find_command(name + 1, k - 1)) return x->i--, lex_command(x); /* \\frac: escaped twice */
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
    case 0:   /* a last backslash */
    case '(': /* maths delimiters */
    case ')':
    case '[':
    case ']':
    case '!':
        return true;
    case '$':
        return lex_push_word(x, find_command("textdollar", 10));
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

/* The command of the n letters, or of their beginning where letters stick to it: \quadx, \vertx. Shortens *n to its name. */
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
    return w;
}

/* After \right: its | closes, its . is nothing. */
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
    if (set && set->kind == T_CONST) return lex_push_word(x, set);
    const char name[3] = {'\\', 'b', from < x->n ? x->s[from] : 0}; /* E[X], P(A): names */
    return text_is_letter(name[2]) ? lex_push_symbol(x, name, 3) : lex_fail(x, "an unknown blackboard letter");
}

/* \vec u, \mathbf{A}: the letter, marked; \vec{AB}: a name of its own. Other arguments, and the constants e and i, are as without the style. */
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

bool lex_command(struct lexer *x)
{
    const char *name = x->s + x->i + 1;
    int64_t n = 0;
    while (x->i + 1 + n < x->n && text_is_letter(name[n])) n++;
    if (!n) return lex_escape(x, name, x->i + 1 < x->n ? name[0] : 0);
    const struct word *w = command_of(name, &n);
    if (!w) return lex_fail(x, "an unknown command");
    x->i += 1 + n;
    bool done = false;
    if (w->kind == T_SYM && lex_word_is(name, n, "Omega") && lex_last_kind(x) == T_NUM && lex_skip_spaces(x, x->i) >= x->n)
        return lex_push(x, T_UNIT, 0, "ohm", 3);
    if (lex_word_is(name, n, "deg") && lex_after_operand(x)) return lex_push(x, T_DEGREE, 0, NULL, 0);
    switch (w->kind) {
    case T_FRAC:
        if (lex_after_operand(x) && (!lex_unit_fraction(x, &done) || done)) return done;
        break;
    case T_STYLE:
        if (w->aux && (!lex_styled(x, w->aux, &done) || done)) return done;
        return x->space = true, true;
    case T_SKIP:
    case T_GROUP:
        return x->space = true, true;
    case T_ASIDE:
        x->i = lex_group_end(x, lex_skip_spaces(x, x->i));
        return x->space = true, true;
    case T_LEFT:
        x->after_left = true;
        return true;
    case T_RIGHT:
        return lex_right(x);
    case T_WORDS:
        return lex_words(x, w->aux == 1);
    case T_BB:
        return lex_blackboard(x);
    case T_ENV:
        return lex_environment(x, w->aux);
    case T_ACCENT:
    case T_OVERLINE:
        return lex_accent(x, name, n);
    case T_LSET:
    case T_LPAREN:
    case T_LBRACK:
        x->depth++;
        break;
    case T_RSET:
    case T_RPAREN:
    case T_RBRACK:
        x->depth -= x->depth > 0;
        break;
    case T_BAR:
        if (x->after_left) return lex_push(x, T_LBAR, 0, NULL, 0);
        break;
    case T_BAD:
        return lex_fail(x, "a command without a value here");
    default:
        break;
    }
    return lex_push_word(x, w);
}
