/* Texts that stop in the middle, and the parts of a complete text that hold no answer: labels of lists, requests, closing lines, subordinate clauses. */
#include "common/words/sentences.h"
#include "prose.h"
#include "scan.h"

#include <string.h>

enum { FAR = 400 };

static tare_text without_blanks(tare_text t)
{
    while (t.size && text_is_space(t.data[t.size - 1])) t.size--;
    return t;
}

/* Returns the word that ends at i, if it is no command. */
static tare_text word_before(tare_text t, int64_t i)
{
    int64_t k = i;
    while (k > 0 && (text_is_letter(t.data[k - 1]) || (k < i && t.data[k - 1] == '\''))) k--;
    return k && t.data[k - 1] == '\\' ? (tare_text){"", 0} : text_slice(t, k, i);
}

/* ---------------------------------------------------------------- texts that stop in the middle */

/* Returns whether t ends in a command or a character that stands between two values. */
static bool ends_in_operator(tare_text t)
{
    static const char *const commands[] = {"cdot", "times", "div", "frac", "le",  "leq",   "ge",         "geq", "approx", "implies",
                                           "pm",   "sqrt",  "in",  "cup",  "cap", "equiv", "Rightarrow", "to",  NULL};
    static const char *const signs[] = {"\xC3\x97",     "\xC3\xB7",     "\xE2\x88\x92", "\xC2\xB7",     "\xE2\x89\xA4",
                                        "\xE2\x89\xA5", "\xE2\x89\x88", "\xE2\x86\x92", "\xE2\x87\x92", NULL};
    const char c = t.data[t.size - 1];
    const bool apart = t.size > 2 && text_is_space(t.data[t.size - 2]);
    if (c == '=' || c == '+' || c == '^' || c == '(' || c == ':') return t.size > 1;
    if (strchr("-*/<>&", c)) return apart;
    for (const char *const *s = signs; *s; s++) {
        const int64_t n = (int64_t)strlen(*s);
        if (t.size > n + 1 && !memcmp(t.data + t.size - n, *s, (size_t)n) && text_is_space(t.data[t.size - n - 1])) return true;
    }
    int64_t k = t.size;
    while (k > 0 && text_is_letter(t.data[k - 1])) k--;
    return k > 1 && k < t.size && t.data[k - 1] == '\\' && text_one_of(text_slice(t, k, t.size), commands);
}

/* Returns whether the last word needs another one after it. */
static bool ends_in_link(tare_text t)
{
    static const char *const words[] = {
        "the",          "a",        "an",       "of",     "by",       "and",       "or",       "with",    "to",
        "for",          "from",     "into",     "onto",   "than",     "that",      "which",    "because", "since",
        "if",           "when",     "while",    "where",  "whose",    "as",        "so",       "then",    "is",
        "are",          "was",      "were",     "be",     "we",       "i",         "our",      "its",     "their",
        "his",          "this",     "these",    "those",  "each",     "every",     "but",      "plus",    "minus",
        "times",        "between",  "at",       "next",   "equals",   "have",      "has",      "gives",   "get",
        "let",          "until",    "per",      "about",  "not",      "also",      "thus",     "hence",   "therefore",
        "however",      "must",     "should",   "would",  "will",     "can",       "does",     "need",    "using",
        "substituting", "subtract", "multiply", "divide", "compute",  "calculate", "consider", "find",    "solve",
        "needs",        "takes",    "costs",    "makes",  "contains", "equal",     "and/or",   NULL};
    const tare_text w = word_before(t, t.size);
    /* a letter alone is a name, and so is "A" */
    if (!w.size || (w.size == 1 && w.data[0] != 'a') || w.size == t.size) return false;
    if (w.size == 1 && !(t.size > 2 && t.data[t.size - 2] == ' ')) return false;
    return text_one_of(w, words);
}

/* Returns whether "each of the 8" ends the text: the words in front of a number ask for a noun after it. */
static bool ends_in_count(tare_text t)
{
    static const char *const words[] = {"the", "these", "those", "other", "remaining", "first", "all", NULL};
    int64_t k = t.size;
    while (k > 0 && text_is_digit(t.data[k - 1])) k--;
    if (k == t.size || !k || t.data[k - 1] != ' ') return false;
    const tare_text w = word_before(t, k - 1), before = word_before(t, k - 2 - w.size > 0 ? k - 2 - w.size : 0);
    return text_one_of(w, words) && (text_equal(before, text_of("of"), true) || text_equal(before, text_of("for"), true));
}

static int64_t last_line(tare_text t, int64_t i)
{
    while (i > 0 && t.data[i - 1] != '\n') i--;
    return i;
}

bool is_list_label(tare_text t, int64_t first, int64_t i)
{
    enum { NUMBER = 2, LINES = 60 };
    if (i >= t.size || !strchr(".)", t.data[i]) || i - first > NUMBER) return false;
    if (i + 1 < t.size && !text_is_space(t.data[i + 1])) return false;
    int64_t begin = last_line(t, first), k = begin;
    while (k < first && strchr(" \t*>", t.data[k])) k++;
    if (k < first) return false;
    int value = 0;
    for (k = first; k < i; k++) value = 10 * value + (t.data[k] - '0');
    /* the item before it in the list */
    for (int n = 0; begin > 0 && n < LINES; n++) {
        const int64_t from = last_line(t, begin - 1);
        int before = 0;
        for (k = from; k < begin && strchr(" \t*>", t.data[k]); k++) {
        }
        const int64_t digits = k;
        while (k < begin && k < digits + NUMBER && text_is_digit(t.data[k])) before = 10 * before + (t.data[k++] - '0');
        if (k > digits && t.data[k] == t.data[i] && before == value - 1) return true;
        begin = from;
    }
    /* the first item: another line follows */
    for (k = i + 1; value == 1 && k < t.size && t.data[k] != '\n'; k++)
        if (text_is_letter(t.data[k])) return true;
    return false;
}

bool is_unfinished(tare_text t)
{
    t = without_blanks(t);
    if (t.size < 3) return false;
    if (ends_in_operator(t) || ends_in_link(t) || ends_in_count(t)) return true;
    const char c = t.data[t.size - 1];
    int64_t k = t.size - 1;
    if (c != '.' && c != ')') return false;
    while (k > 0 && text_is_digit(t.data[k - 1])) k--;
    return k < t.size - 1 && is_list_label(t, k, t.size - 1);
}

/* ---------------------------------------------------------------- requests */

bool is_request(tare_text t)
{
    static const char *const always[] = {
        "find",          "determine", "compute",     "calculate",   "evaluate", "simplify", "solve",    "factor",
        "factorize",     "factorise", "express",     "prove",       "verify",   "estimate", "identify", "derive",
        "differentiate", "integrate", "minimize",    "maximize",    "minimise", "maximise", "consider", "suppose",
        "assume",        "rewrite",   "rationalize", "rationalise", "replace",  "insert",   "enter",    "provide",
        "expand",        "describe",  "explain",     "convert",     NULL};
    static const char *const verbs[] = {"give",   "state",    "write", "show",   "count",     "list", "put",  "place",
                                        "fill",   "complete", "use",   "reduce", "name",      "work", "plot", "graph",
                                        "sketch", "round",    "let",   "draw",   "construct", NULL};
    static const char *const objects[] = {"the",  "a",  "an", "all", "each", "your", "that", "out",
                                          "down", "in", "it", "any", "to",   "here", NULL};
    static const char *const asks[] = {"is", "are", "does", "do", "can", "could", "which", "when", "where", "who", "will", NULL};
    for (bool more = true; more && t.size;) {
        t = text_trim(t);
        more = false;
        for (const char *const *w = (const char *const[]){"\\text{", "\\textbf{", "\\mathrm{", "\\textit{", "$", "*", "\"",
                                                          "please ", "Please ", NULL};
             *w; w++)
            if (at_text(t, 0, *w)) t = text_slice(t, (int64_t)strlen(*w), t.size), more = true;
    }
    int64_t k = 0;
    while (k < t.size && text_is_letter(t.data[k])) k++;
    const tare_text first = text_slice(t, 0, k);
    if (!k) return false;
    while (k < t.size && strchr(" }\\:$,", t.data[k])) k++;
    if (k == t.size || t.data[k] == '.') return false; /* the word alone may be an answer */
    if (text_one_of(first, always)) return true;
    int64_t n = k;
    while (n < t.size && text_is_letter(t.data[n])) n++;
    if (text_one_of(first, verbs) && text_one_of(text_slice(t, k, n), objects)) return true;
    static const char *const words[] = {"what", "how", "why", NULL}, *const after[] = {"is",    "are",  "was",  "does", "do",
                                                                                       "would", "will", "many", "much", "long",
                                                                                       "far",   "old",  NULL};
    if (text_one_of(first, words) && text_one_of(text_slice(t, k, n), after)) return true;
    while (t.size && strchr("}$* ", t.data[t.size - 1])) t.size--;
    return (text_one_of(first, asks) || text_one_of(first, words)) && t.size && t.data[t.size - 1] == '?';
}

/* ---------------------------------------------------------------- closing lines */

tare_text without_closing(tare_text t)
{
    static const char *const openings[] = {"let me know",
                                           "please let me know",
                                           "i hope",
                                           "hope this",
                                           "hope that",
                                           "feel free",
                                           "please feel free",
                                           "if you have",
                                           "if you need",
                                           "if you would like",
                                           "if you'd like",
                                           "if you want",
                                           "would you like",
                                           "do you want",
                                           "do you have",
                                           "happy to",
                                           "i'm happy to",
                                           "good luck",
                                           "thank",
                                           "is there anything",
                                           "explanation:",
                                           "reason:",
                                           "reasoning:",
                                           "this is because",
                                           "(check",
                                           "check:",
                                           "checking:",
                                           "to check,",
                                           "to check that",
                                           "to check the answer",
                                           "to check our",
                                           "to verify,",
                                           "to verify that",
                                           "to verify the answer",
                                           "to verify our",
                                           "verification:",
                                           "let's check",
                                           "let's verify",
                                           "we can check",
                                           "we can verify",
                                           NULL};
    for (int n = 0; n < 3; n++) {
        tare_text s = without_blanks(t);
        int64_t k = s.size;
        while (k > 0 && strchr(".!?)*:", s.data[k - 1])) k--;
        while (k > 0 && s.size - k < FAR && s.data[k - 1] != '\n' &&
               !(text_is_space(s.data[k - 1]) && k > 2 && strchr(".?!*", s.data[k - 2]) && !text_is_space(s.data[k - 3])))
            k--;
        bool closing = false;
        for (const char *const *w = openings; *w; w++) closing |= text_starts(s, k, *w, true);
        if (!closing || !k) return t;
        t = text_slice(s, 0, k);
    }
    return t;
}

/* ---------------------------------------------------------------- the main clause */

static int formula_at(const struct scan *s, int64_t i)
{
    for (int k = s->envs - 1; k >= 0 && s->env[k].end > i; k--)
        if (s->env[k].begin <= i) return k;
    return -1;
}

/* Returns whether a value lies between the positions. */
static bool has_value(const struct scan *s, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        if (text_is_digit(s->t.data[i]) || formula_at(s, i) >= 0) return true;
    return false;
}

/* Returns whether the main clause goes on in the text: a verb with its own value ("the cost for 3 pens is 15"), or a clause after a comma. */
static bool goes_on(const struct scan *s, int64_t begin, int64_t end, bool verbs)
{
    static const char *const finite[] = {"is",     "are",   "was",    "were",   "has",     "have",   "had",       "equals", "equal",
                                         "gives",  "makes", "leaves", "remain", "remains", "gets",   "needs",     "need",   "takes",
                                         "costs",  "cost",  "pays",   "will",   "would",   "totals", "becomes",   "we",     "total",
                                         "spends", "earns", "get",    "makes",  "so",      "then",   "therefore", NULL};
    static const char *const adding[] = {"which", "not", "that", "as", "since", "because", "where", "rather", NULL};
    for (int64_t i = begin; i < end;) {
        const int e = formula_at(s, i);
        if (e >= 0) {
            i = s->env[e].end;
            continue;
        }
        if (s->t.data[i] == '=' && !(i > 2 && text_is_letter(s->t.data[i - 2]) && !text_is_letter(s->t.data[i - 3]))) return true;
        if (s->t.data[i] == ',' || s->t.data[i] == ';' || s->t.data[i] == ':') {
            int64_t k = i + 1;
            while (k < end && s->t.data[k] == ' ') k++;
            int64_t n = k;
            while (n < end && text_is_letter(s->t.data[n])) n++;
            if (k > i + 1 && n > k && !text_one_of(text_slice(s->t, k, n), adding) && has_value(s, n, end)) return true;
        }
        int64_t k = i;
        while (k < end && text_is_letter(s->t.data[k])) k++;
        if (verbs && k > i && text_one_of(text_slice(s->t, i, k), finite) && has_value(s, k, end)) return true;
        i = k > i ? k : i + 1;
    }
    return false;
}

/* Returns whether a number begins at i and is the last one. */
static bool is_last_number(tare_text t, int64_t i)
{
    if (i >= t.size || !text_is_digit(t.data[i])) return false;
    while (i < t.size && (text_is_digit(t.data[i]) || (strchr(",.", t.data[i]) && i + 1 < t.size && text_is_digit(t.data[i + 1]))))
        i++;
    while (i < t.size && !text_is_digit(t.data[i])) i++;
    return i >= t.size;
}

/* Returns whether a preposition leads to a known number at i, as what the
 * value counts or measures: "150 km in the first 2 hours", "3 of those 8". */
static bool names_known(tare_text t, int64_t begin, int64_t i)
{
    static const char *const words[] = {"these ", "those ", "the ",   "all ",       "first ",
                                        "last ",  "next ",  "other ", "remaining ", NULL};
    static const char *const prepositions[] = {"of",     "in",   "for",   "over", "after", "during",
                                               "within", "from", "among", "to",   "with",  NULL};
    int64_t k = i;
    while (k > begin && t.data[k - 1] == ' ') k--;
    const tare_text before = word_before(t, k);
    if (k == i || !before.size || !text_one_of(before, prepositions)) return false;
    const tare_text governor = word_before(t, k - before.size - 1 > begin ? k - before.size - 1 : begin);
    if (text_equal(governor, text_of("out"), true)) return false; /* a ratio */
    int64_t n = i;
    for (const char *const *w = words; *w; w++)
        if (text_starts(t, n, *w, true)) n += (int64_t)strlen(*w);
    return n > i && is_last_number(t, n);
}

/* Returns whether the sentence says how many there are, and what follows i only says where: "There
 * are 4 suits in a deck of 52". */
static bool is_place(tare_text t, int64_t begin, int64_t i)
{
    static const char *const openings[] = {"there are ", "there is ", "there were ", "there will be ", NULL};
    static const char *const places[] = {"in ", "on ", "per ", "within ", NULL};
    for (const char *const *w = openings; *w; w++) {
        const int64_t n = begin + (int64_t)strlen(*w);
        if (!text_starts(t, begin, *w, true)) continue;
        for (const char *const *p = places; *p; p++)
            if (at_text(t, i, *p)) return n < i && (text_is_digit(t.data[n]) || text_starts(t, n, "exactly", true));
    }
    return false;
}

/* Returns whether a comma leads to a distance from the value at i: "in 1989, 28 years after it
 * was built", "12, 3 more than 9". */
static bool is_distance(tare_text t, int64_t begin, int64_t i)
{
    static const char *const relations[] = {"after", "before", "later", "earlier", "ago", "than", NULL};
    enum { WORDS = 4 };
    if (i < begin + 3 || t.data[i - 1] != ' ' || t.data[i - 2] != ',' || !is_last_number(t, i)) return false;
    while (i < t.size && text_is_digit(t.data[i])) i++;
    for (int n = 0; n < WORDS && i + 1 < t.size && t.data[i] == ' ' && text_is_letter(t.data[i + 1]); n++) {
        const int64_t from = ++i;
        while (i < t.size && text_is_letter(t.data[i])) i++;
        if (text_one_of(text_slice(t, from, i), relations)) return true;
    }
    return false;
}

/* Returns whether the brackets at i hold a remark: "(since 11 fails)", "(29 in a leap year)", not
 * (a, b) or (x + 1). */
static bool is_remark(tare_text t, int64_t i)
{
    int64_t k = i + 1;
    while (k < t.size && text_is_letter(t.data[k])) k++;
    if (k > i + 1) return k > i + 2 && k < t.size && t.data[k] == ' ';
    bool word = false;
    for (; k < t.size && t.data[k] != ')'; k++) {
        if (strchr(",=+*^\\(\n", t.data[k])) return false;
        word |= text_is_letter(t.data[k]) && t.data[k - 1] == ' ';
    }
    if (!word || k >= t.size || !text_is_digit(t.data[i + 1])) return false;
    while (k < t.size && !text_is_digit(t.data[k])) k++;
    return k >= t.size;
}

/* Returns whether a clause that holds no answer begins at i. *verbs: a verb in it shows that it only belongs to the subject. */
static bool opens_clause(tare_text t, int64_t begin, int64_t i, bool *verbs, bool *keep)
{
    static const char *const reasons[] = {"since ", "because ", "rather than ", "instead of ", "and not ", "not ", "unlike ", NULL};
    static const char *const others[] = {"when ",         "where ", "attained at ", "achieved at ", "with ", "occurring at ",
                                         "which occurs ", "among ", "for which ",   "at which ",    NULL};
    static const char *const asides[] = {
        "while ", "whereas ", "which is reached ", "which is attained ", "which is achieved ", "which is obtained ", NULL};
    *keep = false;
    if (t.data[i] == '(') return *verbs = false, i > begin && t.data[i - 1] == ' ' && is_remark(t, i);
    if (i > begin && !strchr(" ,$*)", t.data[i - 1])) return false;
    for (const char *const *w = reasons; *w; w++)
        if (t.data[i] == **w && at_text(t, i, *w)) return *verbs = false, true;
    if (is_distance(t, begin, i)) return *verbs = false, true;
    if (names_known(t, begin, i) || is_place(t, begin, i)) return *verbs = true, true;
    const bool comma = i > begin + 1 && t.data[i - 2] == ',';
    if (comma && at_text(t, i, "as ")) return *verbs = false, true;
    for (const char *const *w = asides; *w && comma; w++)
        if (at_text(t, i, *w)) return *verbs = false, true;
    if (at_text(t, i, "if ")) return *verbs = true, *keep = true, true;
    for (const char *const *w = others; *w; w++)
        if (t.data[i] == **w && at_text(t, i, *w)) return *verbs = true, true;
    return false;
}

tare_text main_clause(const struct scan *s, tare_text t, bool *keep)
{
    const tare_text end = without_blanks(t);
    int64_t begin = end.size;
    *keep = false;
    while (begin > 0 && strchr(".!?)*$ ", end.data[begin - 1])) begin--;
    begin = sentence_start(end, begin, FAR);
    for (int64_t i = begin; i < end.size; i++) {
        bool verbs, conditional;
        const int e = formula_at(s, i);
        if (e >= 0) {
            i = s->env[e].end - 1;
            continue;
        }
        if (!opens_clause(end, begin, i, &verbs, &conditional) || !has_value(s, begin, i) || !has_value(s, i, end.size)) continue;
        if (goes_on(s, i + 1, end.size, verbs)) continue;
        while (i > begin && strchr(" ,(", end.data[i - 1])) i--;
        return *keep = conditional, text_slice(t, 0, i);
    }
    return t;
}
