/* Options as they are written: a letter and its decoration, or the option's text. */
#include "choice.h"

#include <string.h>

/* Limits on the text read at each option, so the time is linear in the length of the text. */
enum { MAX_WORDS = 8, MAX_DRESS = 80, MAX_TEXT = 700 };

static bool is_word(char c)
{
    return text_is_letter(c) || text_is_digit(c) || c == '_' ||
           /* E3: first byte of an ideographic full stop */
           ((unsigned char)c >= 0x80 && (unsigned char)c != 0xE3);
}

bool option_has(const struct options *o, char letter)
{
    return memchr(o->letters, letter, (size_t)o->n) != NULL;
}

/* Strips decoration around a letter: blanks, $, *, quotes, \text{ \textbf{ \mathrm{ and the braces,
 * brackets. bracket: there was one. */
static tare_text strip_dress(tare_text t, bool *bracket)
{
    for (bool more = true; more && t.size;) {
        t = text_trim(t);
        more = true;
        if (!t.size) break;
        const char c = t.data[0];
        if (c == '\\') {
            int64_t n = 1;
            while (n < t.size && text_is_letter(t.data[n])) n++;
            if (n == 1 && n < t.size && strchr("([ ,;:", t.data[1]))
                n = 2;
            else if (n < 4)
                return t;
            t = text_slice(t, n, t.size);
        } else if (strchr("$*_\"'`{:-", c)) {
            t = text_slice(t, 1, t.size);
        } else if (c == '(' || c == '[') {
            *bracket = true;
            t = text_slice(t, 1, t.size);
            /* curly quotes, dashes */
        } else if ((unsigned char)c == 0xE2 && t.size > 2 && (unsigned char)t.data[1] == 0x80) {
            t = text_slice(t, 3, t.size);
        } else {
            more = false;
        }
    }
    return t;
}

static tare_text skip_words(tare_text t, bool *bracket)
{
    static const char *const words[] = {"option", "choice",    "letter", "answer",  "the",    "be",
                                        "is",     "therefore", "thus",   "clearly", "indeed", NULL};
    bool more = true;
    for (int skipped = 0; more && skipped < MAX_WORDS; skipped++) {
        more = false;
        t = strip_dress(t, bracket);
        for (const char *const *w = words; *w && !more; w++) {
            const int64_t n = (int64_t)strlen(*w);
            if (t.size && text_lower(t.data[0]) == **w && text_starts(t, 0, *w, true) && t.size > n && !is_word(t.data[n])) {
                t = text_slice(t, n, t.size);
                more = true;
            }
        }
    }
    return strip_dress(t, bracket);
}

/* Returns whether another option follows the first: "A or C", "A, B", "A and C", "B/D". */
static bool names_second(const struct options *o, tare_text rest)
{
    bool bracket = false, joint = false;
    for (int k = 0; k < 6; k++) {
        while (rest.size && (text_is_space(rest.data[0]) || strchr(")]}$*\"'\\", rest.data[0])))
            rest = text_slice(rest, 1, rest.size);
        if (text_starts(rest, 0, "text", false) || text_starts(rest, 0, "quad", false))
            rest = text_slice(rest, 4, rest.size);
        else if (rest.size && (rest.data[0] == ',' || rest.data[0] == '/' || rest.data[0] == '&')) {
            joint = true;
            rest = text_slice(rest, 1, rest.size);
        } else if (rest.size && rest.data[0] == '{')
            rest = text_slice(rest, 1, rest.size);
        else if (text_starts(rest, 0, "or ", true)) {
            joint = true;
            rest = text_slice(rest, 3, rest.size);
        } else if (text_starts(rest, 0, "and ", true)) {
            joint = true;
            rest = text_slice(rest, 4, rest.size);
        } else
            break;
    }
    if (!joint) return false;
    rest = skip_words(rest, &bracket);
    return rest.size && option_has(o, rest.data[0]) && (rest.size == 1 || !is_word(rest.data[1])) &&
           !(rest.size > 2 && rest.data[1] == ' ' && text_is_letter(rest.data[2]) && rest.data[2] >= 'a');
}

/* Reads the option that t starts with. boxed: t is the whole content of a box. */
static enum named named_option(const struct options *o, tare_text t, bool boxed, char *letter)
{
    bool bracket = false;
    t = skip_words(t, &bracket);
    if (!t.size || !text_is_letter(t.data[0]) || (t.size > 1 && is_word(t.data[1]))) return NONE;
    char c = t.data[0];
    const tare_text rest = text_slice(t, 1, t.size);
    if (c >= 'a') {
        const tare_text tail = text_trim(rest);
        if (!o->lowercase || !(bracket || boxed) || (boxed && !bracket && tail.size && !strchr(".)}$*", tail.data[0]))) return NONE;
        c = (char)(c - 'a' + 'A');
    }
    if ((c == 'A' || c == 'I') && !bracket && rest.size > 1 && rest.data[0] == ' ' && rest.data[1] >= 'a' && rest.data[1] <= 'z') {
        /* A is an article and I a pronoun, unless a reason follows */
        static const char *const reasons[] = {"because", "since", "as ", "for ", "or ", "and ", NULL};
        bool reason = false;
        for (const char *const *w = reasons; *w && !reason; w++) reason = text_starts(rest, 1, *w, false);
        if (!reason) return NONE;
    }
    /* I'm */
    if (rest.size && (rest.data[0] == '\'' && rest.size > 1 && text_is_letter(rest.data[1]))) return NONE;
    if (!option_has(o, c) || names_second(o, rest)) return OTHER;
    *letter = c;
    return ONE;
}

enum named option_boxed(const struct options *o, tare_text t, char *letter)
{
    return named_option(o, t, true, letter);
}

bool option_line(const struct options *o, tare_text line, bool with_text, char *letter)
{
    bool bracket = false;
    tare_text t = strip_dress(line, &bracket);
    if (!t.size || (t.size > 1 && is_word(t.data[1]))) return false;
    const bool small = with_text && o->lowercase && t.data[0] >= 'a' && t.data[0] <= 'z'; /* "b", "b) colder" */
    const char name = small ? (char)(t.data[0] - 'a' + 'A') : t.data[0];
    tare_text rest = text_slice(t, 1, t.size);
    if (!option_has(o, name)) return false;
    const bool dash = text_starts(rest, 0, " - ", false) || text_starts(rest, 0, " \xE2\x80\x93 ", false);
    if (with_text && rest.size && (rest.data[0] == ')' || (!small && (rest.data[0] == '.' || rest.data[0] == ':' || dash))))
        return rest.data[rest.size - 1] != '?' && (*letter = name, true);
    while (rest.size && (text_is_space(rest.data[0]) || strchr(".)]}*$\"'", rest.data[0]))) rest = text_slice(rest, 1, rest.size);
    if (rest.size) return false;
    *letter = name;
    return true;
}

/* ---------------------------------------------------------------- texts */

/* Writes t without decoration to `to` (MAX_TEXT bytes): no signs of LaTeX and Markdown, one blank for
 * several, ASCII letters in lower case, no article in front and no punctuation behind. Returns the
 * size; -1: t is too long. */
static int64_t normalize(tare_text t, char *to)
{
    int64_t n = 0;
    if (t.size > MAX_TEXT) return -1;
    for (int64_t i = 0; i < t.size; i++) {
        const char c = t.data[i];
        if (c == '\\') {
            int64_t k = i + 1;
            while (k < t.size && text_is_letter(t.data[k])) k++;
            static const char *const dress[] = {"text", "textbf", "mathrm", "mathbf", "textit", "mathit", "textrm", "operatorname",
                                                "left", "right",  "quad",   "boxed",  "bf",     "rm",     NULL};
            bool skip = k == i + 1 && k < t.size && strchr(" ,;:!()[]", t.data[k]);
            if (skip) k++;
            for (const char *const *d = dress; *d; d++) skip |= text_equal(text_slice(t, i + 1, k), text_of(*d), false);
            if (skip) {
                if (n && to[n - 1] != ' ') to[n++] = ' ';
                i = k - 1;
                continue;
            }
        }
        if (c && strchr("$*_`{}\"'~", c)) continue;
        if (text_is_space(c)) {
            if (n && to[n - 1] != ' ') to[n++] = ' ';
            continue;
        }
        to[n++] = text_lower(c);
    }
    while (n && strchr(" .,;:!", to[n - 1])) n--;
    int64_t skip = 0;
    static const char *const articles[] = {"the ", "an ", "a ", ": ", "- ", NULL};
    for (const char *const *w = articles; *w && !skip; w++)
        if (text_starts((tare_text){to, n}, 0, *w, false)) skip = (int64_t)strlen(*w);
    memmove(to, to + skip, (size_t)(n - skip));
    return n - skip;
}

/* Returns the text of option i without its own letter: "A. 10" is 10. */
static tare_text text_of_option(const struct options *o, int i)
{
    const tare_text t = o->choices[i];
    if (t.size > 2 && t.data[0] == o->letters[i] && strchr(".):", t.data[1])) return text_trim(text_slice(t, 2, t.size));
    return t;
}

static bool is_numeric(tare_text t)
{
    bool digit = false;
    for (int64_t i = 0; i < t.size; i++) {
        digit |= text_is_digit(t.data[i]);
        if (!text_is_digit(t.data[i]) && !strchr("+-.,/%^ ", t.data[i])) return false;
    }
    return digit;
}

static bool starts_any(tare_text t, const char *const *words)
{
    for (; *words; words++) {
        const int64_t n = (int64_t)strlen(*words);
        if (text_starts(t, 0, *words, true) && (t.size == n || !text_is_letter(t.data[n]))) return true;
    }
    return false;
}

/* Returns whether the text may follow an option's text: a reason, a remark in brackets, or the unit
 * of a number. */
static bool may_follow(tare_text option, tare_text rest)
{
    if (text_is_letter(rest.data[0]) || (unsigned char)rest.data[0] >= 0x80 || text_is_digit(rest.data[0])) return false;
    static const char *const reasons[] = {"because", "since",   "as",    "which", "for",   "due",   "rather",
                                          "not",     "instead", "given", "so",    "based", "where", NULL};
    if (text_starts(rest, 0, ". ", false) || text_starts(rest, 0, " (", false) || text_starts(rest, 0, ";", false)) return true;
    const bool comma = text_starts(rest, 0, ", ", false);
    const tare_text next = text_trim(text_slice(rest, comma, rest.size));
    if (starts_any(next, reasons)) return true;
    if (comma || !is_numeric(option) || rest.size > 40 || rest.data[0] != ' ') return false;
    for (int64_t i = 0; i < rest.size; i++)
        if (!text_is_letter(rest.data[i]) && !strchr(" ./%", rest.data[i]) && (unsigned char)rest.data[i] < 0x80) return false;
    static const char *const others[] = {"or", "and",     "times",    "plus",    "minus",   "percent", "more", "less", "to",
                                         "is", "hundred", "thousand", "million", "billion", "dozen",   "of",   "if",   NULL};
    return !starts_any(next, others);
}

char option_text(const struct options *o, tare_text t, bool loose)
{
    char want[MAX_TEXT], have[MAX_TEXT], found = 0;
    int64_t longest = 0;
    for (int i = 0; i < o->n_choices; i++) longest = o->choices[i].size > longest ? o->choices[i].size : longest;
    if (!longest || (!loose && t.size > 2 * longest + MAX_DRESS)) return 0;
    if (t.size > 2 * longest + MAX_DRESS) t.size = 2 * longest + MAX_DRESS;
    const int64_t n = normalize(text_trim(t), want);
    longest = 0;
    for (int i = 0; n > 0 && i < o->n_choices && i < o->n; i++) {
        const int64_t m = normalize(text_of_option(o, i), have);
        if (m <= 0 || m > n || m < longest || memcmp(have, want, (size_t)m) != 0) continue;
        if (m == 1 && text_is_letter(have[0]) && option_has(o, (char)(have[0] - 'a' + 'A')) && text_is_letter(text_trim(t).data[0]))
            continue; /* a letter, not a text */
        if (m < n && !(loose && may_follow((tare_text){have, m}, (tare_text){want + m, n - m}))) continue;
        if (m == longest) {
            found = 0; /* two options have this text */
            continue;
        }
        longest = m;
        found = o->letters[i];
    }
    return found;
}
