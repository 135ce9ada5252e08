/* Words in a formula, \text{...} and similar: units, joints, conditions, options, labels, remarks,
 * or text. */
#include "lexer.h"

#include "numerals.h"
#include "prose.h"

#include <string.h>

/* Returns true for a consequence (so, hence): the text before it is not the answer. */
static bool is_consequence(const char *s, int64_t n)
{
    static const char *const words[] = {"so",      "thus",        "hence",           "therefore", "then", "and so",
                                        "so that", "which gives", "giving",          "we get",    "i.e",  "that is",
                                        "implies", "which means", "or equivalently", NULL};
    for (const char *const *w = words; *w; w++)
        if (lex_word_is(s, n, *w)) return true;
    return false;
}

/* Returns the kind of number that words give a letter, such as "is an integer" or "are arbitrary
 * real constants"; 0: other words. */
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

/* Returns true if a condition follows the words: "where", "for all", "for any integer". *set: the
 * kind of number that they name, or 0. */
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

/* Returns the set named by squashed words, such as "all real numbers" or "the empty set"; 0: other
 * words. */
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
        if (s[k] == '\\') { /* a command is not a word */
            while (k + 1 < n && text_is_letter(s[k + 1])) k++;
            run = 0;
            continue;
        }
        run = text_is_letter(s[k]) ? run + 1 : 0;
        if (run > 1) return true;
    }
    return false;
}

/* Returns true for a remark without which the value does not hold: "(or 8)", "(not 8)". */
static bool names_another(const char *s, int64_t n)
{
    for (int64_t i = 1; i + 3 < n; i++)
        if (!text_is_letter(s[i - 1]) && (!memcmp(s + i, "or ", 3) || (i + 4 < n && !memcmp(s + i, "not ", 4)))) return true;
    return false;
}

/* Returns whether the words only name what is counted. Names, articles and prepositions do; a verb,
 * "times 3", "or more" and "squared" change the value. */
static bool counts_only(const char *s, int64_t n)
{
    tare_text words[2];
    int64_t k = 0;
    const char *tex;
    int used, held = 0;
    for (;;) { /* a window of two words: the relevant phrases are not longer */
        while (k < n && !text_is_letter(s[k])) k++;
        if (k < n && held < 2) {
            const int64_t from = k;
            while (k < n && (text_is_letter(s[k]) || (s[k] == '\'' && k > from))) k++;
            words[held++] = (tare_text){s + from, k - from};
            if (held < 2) continue;
        }
        if (!held) return true;
        const enum role role = phrase_role(words, held, &used, &tex);
        if (is_numeral_word(words[0]) || is_auxiliary(words[0])) return false;
        if (role != ROLE_OPEN && role != ROLE_DROP && role != ROLE_RATIO && role != ROLE_JOINT &&
            !(role == ROLE_WHERE && lex_word_is(tex, (int64_t)strlen(tex), "for")))
            return false;
        if (held == 2) words[0] = words[1];
        held--;
    }
}

/* Pushes the words of s, without articles, prepositions and similar, after a question mark, as an
 * unknown unit. */
static bool push_counted(struct lexer *x, const char *s, int64_t n)
{
    char text[4 + 256] = "?"; /* n is at most 256 */
    int64_t size = 1;
    const char *tex;
    int used;
    for (int64_t i = 0, end; i < n; i = end + 1) {
        for (end = i; end < n && !text_is_space(s[end]) && s[end] != '~';) end++;
        const tare_text w = text_trim((tare_text){s + i, end - i});
        const enum role role = w.size ? phrase_role(&w, 1, &used, &tex) : ROLE_DROP;
        if (role == ROLE_DROP || role == ROLE_RATIO) continue;
        if (size > 1) text[size++] = ' ';
        size += squash(w.data, w.size, text + size, true);
    }
    return size > 1 ? lex_push(x, T_UNIT, 0, text, size) : (x->space = true, true);
}

/* Returns true for the rounding of a value: (1 d.p.), (3 s.f.), correct to 2 decimal places. */
static bool is_rounding_mark(const char *s, int64_t n)
{
    static const char *const marks[] = {"d.p",     "dp",          "s.f",           "sf",      "sig. fig",
                                        "sig fig", "significant", "decimal place", "nearest", NULL};
    bool digit = false;
    for (int64_t i = 0; i < n; i++) {
        digit |= text_is_digit(s[i]);
        for (const char *const *k = marks; *k; k++)
            if (s[i] == **k && text_starts((tare_text){s, n}, i, *k, true)) return digit || **k == 'n' || (*k)[1] == 'e';
    }
    return false;
}

static bool ends_in_per(const char *s, int64_t n)
{
    static const char *const words[] = {"per", "a", "an", "each", "every", NULL};
    while (n && text_is_space(s[n - 1])) n--;
    int64_t from = n;
    while (from && text_is_letter(s[from - 1])) from--;
    for (const char *const *w = words; *w; w++)
        if (lex_word_is(s + from, n - from, *w)) return true;
    return false;
}

/* Lexes words after a value: its unit, a base, a remark in brackets, or what it counts. *done: they
 * were one of these. */
static bool lex_words_behind(struct lexer *x, const char *s, int64_t n, bool *done)
{
    char text[256];
    int64_t used = 0;
    *done = true;
    if (n > 256) return lex_fail(x, "long text after a value");
    if (n > 1 && half_of_day((tare_text){s, n}, 0) == n) return lex_push(x, T_UNIT, 0, text_lower(*s) == 'a' ? "am" : "pm", 2);
    const int64_t size = squash(s, n, text, true);
    const int base = lex_base_of(text, size);
    if (base && size > 2 && (memchr(text, 'b', (size_t)size) || memchr(text, 'h', (size_t)size) || memchr(text, 'c', (size_t)size)))
        return lex_push(x, T_BASE, base, NULL, 0);
    if (n > 2 && s[0] == '(' && s[n - 1] == ')' && has_words(s, n)) /* (exactly) */
        return names_another(s, n) || !only_introduces((tare_text){s, n}) ? lex_fail(x, "a remark that names another value")
                                                                          : (x->space = true, true);
    if (is_rounding_mark(s, n)) return x->space = true, true;
    const int before = x->m->n_tokens;
    if (!lex_push_measure(x, s, n, true, &used)) return false;
    if (used && (used == n || !has_words(s + used, n - used))) return true;
    if (used && (lex_last_kind(x) == T_SCALE || lex_last_kind(x) == T_NUM)) { /* 2 million people */
        while (used < n && text_is_space(s[used])) used++;
        return lex_words_behind(x, s + used, n - used, done);
    }
    if (!used) x->m->n_tokens = before;
    if (!has_words(s, n)) return *done = false, true;
    if (lex_word_is(s, n, "BC") || lex_word_is(s, n, "BCE")) return lex_fail(x, "a year before the first");
    if (!counts_only(s + used, n - used)) return lex_fail(x, "words after a value that change it");
    for (int64_t k = used; k < n && !used;) { /* the first word that is a unit, and the rest */
        struct unit u;
        const int64_t unit = text_is_letter(s[k]) ? unit_read(s + k, n - k, true, &u) : 0;
        if (unit && ends_in_per(s, k)) break; /* pages per day */
        if (unit) return lex_push_unit(x, &u) && push_counted(x, s, k) && push_counted(x, s + k + unit, n - k - unit);
        while (k < n && text_is_letter(s[k])) k++;
        while (k < n && !text_is_letter(s[k])) k++;
    }
    return push_counted(x, s + used, n - used);
}

/* Lexes words that join or qualify: and, so, where, is an integer. *done: they were one of
 * these. */
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
    /* 2k\pi, where k is an integer */
    const bool comma = lex_last_kind(x) == T_COMMA && x->m->n_tokens > 1 && !x->depth;
    if (!x->matrices && (comma || lex_after_operand(x)) && is_condition(s, n, &set)) {
        x->m->n_tokens -= comma;
        return lex_push(x, T_WHERE, set, NULL, 0);
    }
    if (lex_after_operand(x) && lex_last_kind(x) != T_NUM && !lex_word_is(s, n, "a") && (set = kind_in_words(s, n)))
        return lex_push(x, T_REL, R_IN, NULL, 0) && lex_push(x, T_CONST, set, NULL, 0);
    return *done = false, true;
}

/* Lexes upright letters: \mathrm{C}_n^k, \mathrm{min} as a unit, \operatorname{lcm}. *done: they
 * were one of these. */
static bool lex_upright(struct lexer *x, const char *s, int64_t n, bool *done)
{
    *done = false;
    if (n == 1 && strchr("CAP", *s)) return lex_combinations(x, *s, done);
    if (lex_word_is(s, n, "min") && lex_after_operand(x) && !(x->i < x->n && strchr("({_\\", x->s[x->i])))
        return *done = true, lex_push(x, T_UNIT, 0, "min", 3);
    const struct word *w = n > 1 ? find_command(s, n) : NULL;
    if (!w ||
        !(w->kind == T_FUNC || w->kind == T_LOG || w->kind == T_LG || w->kind == T_CONST || w->kind == T_MOD || w->kind == T_DET))
        return true;
    return *done = true, lex_push_word(x, w);
}

/* Lexes other text: mathematics, a list of words, a measure, or words. */
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

/* Returns true if the answer follows the words, as in "The area is". */
static bool is_introduction(const char *s, int64_t n)
{
    static const char *const last[] = {" is", " are", " equals", " equal to", " be", NULL};
    for (const char *const *w = last; *w; w++) {
        const int64_t size = (int64_t)strlen(*w);
        if (n > size && !memcmp(s + n - size, *w, (size_t)size)) return only_introduces((tare_text){s, n});
    }
    return false;
}

bool lex_words(struct lexer *x, bool math_font)
{
    const int64_t open = lex_skip_spaces(x, x->i);
    int64_t end = lex_group_end(x, open);
    /* {\rm 12} */
    if (math_font && open < x->n && text_is_digit(x->s[open])) return x->space = true, true;
    if (math_font && open < x->n && text_is_letter(x->s[open]))
        for (end = open; end < x->n && text_is_letter(x->s[end]);) end++; /* 5 \rm cm */
    int64_t from = open, to = end;
    if (open < x->n && x->s[open] == '{') from++, to -= x->s[end - 1] == '}';
    x->i = end;
    while (from < to && (text_is_space(x->s[from]) || strchr("~,.", x->s[from])) &&
           !(x->s[from] == '.' && from + 1 < to && text_is_digit(x->s[from + 1])))
        from++;
    const tare_text all = {x->s + from, to > from ? to - from : 0};
    if (!x->m->n_tokens && all.size > 7 && (text_starts(all, 0, "option ", true) || text_starts(all, 0, "choice ", true)))
        from += 7;
    int64_t last = to; /* end of the text without its full stop */
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
    /* I and III only */
    if (to - from > 5 && text_equal((tare_text){x->s + to - 5, 5}, text_of(" only"), true)) to -= 5;
    const int64_t n = to - from;
    if (n <= 0) return x->space = true, true;
    if (!lex_e_notation(x, s, n, &done)) return false;
    if (done) return true;
    if (lex_last_kind(x) == T_PLUS &&
        (lex_word_is(s, n, "constant") || lex_word_is(s, n, "const") || lex_word_is(s, n, "Constant")))
        return lex_push(x, T_SYM, 0, "C", 1);
    if (lex_word_is(s, n, "cis")) return lex_push(x, T_FUNC, F_CIS, NULL, 0);
    if (!lex_joint(x, s, n, &done)) return false;
    if (done) return true;
    int64_t word = 0;
    while (word < n && text_is_letter(s[word])) word++;
    if (math_font && word == n && !lex_upright(x, s, n, &done)) return false;
    if (done) return true;
    const bool words = has_words(s, n);
    if (colon && words && !x->m->n_tokens && lex_skip_spaces(x, end) < x->n && only_introduces((tare_text){s, n}))
        return x->space = true, true; /* \text{Area: } 5 */
    if (words && !x->m->n_tokens && is_introduction(s, n) && lex_skip_spaces(x, end) < x->n) return x->space = true, true;
    if (lex_unit_follows(x) && (words || word || s[0] == '\\' || s[0] == '(') && !lex_words_behind(x, s, n, &done)) return false;
    if (done) return true;
    if (word == n && (to < end - 1 || lex_skip_spaces(x, end) < x->n) &&
        unit_is_money(find_unit(s, word, true))) { /* \text{USD } 5 */
        char text[UNIT_TEXT];
        struct unit u;
        unit_read(s, word, true, &u);
        return lex_push(x, T_CURRENCY, 0, text, unit_print(&u, text));
    }
    return lex_prose(x, s, n);
}
