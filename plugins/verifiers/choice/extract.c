#include "choice.h"

#include <string.h>

/* Limits on the text read at each phrase, so the time is linear in the length of the text. */
enum { MAX_DRESS = 16, MAX_BLANKS = 64, MAX_PHRASE = 200, MAX_WORDS = 8 };

static bool is_word(char c)
{
    return text_is_letter(c) || text_is_digit(c) || c == '_' ||
           /* E3: first byte of an ideographic full stop */
           ((unsigned char)c >= 0x80 && (unsigned char)c != 0xE3);
}

static bool is_option(const struct options *o, char c)
{
    return memchr(o->letters, c, (size_t)o->n) != NULL;
}

/* ---------------------------------------------------------------- one option, as it is written */

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
    return rest.size && is_option(o, rest.data[0]) && (rest.size == 1 || !is_word(rest.data[1])) &&
           !(rest.size > 2 && rest.data[1] == ' ' && text_is_letter(rest.data[2]) && rest.data[2] >= 'a');
}

/* OTHER: an answer, but not a single valid option: a letter out of range, or several */
enum named { NONE, ONE, OTHER };

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
    if (!is_option(o, c) || names_second(o, rest)) return OTHER;
    *letter = c;
    return ONE;
}

static tare_text is_plain(tare_text t)
{
    bool bracket = false;
    t = strip_dress(text_trim(t), &bracket);
    while (t.size && (text_is_space(t.data[t.size - 1]) || strchr(".,;:*}$\"'", t.data[t.size - 1]))) t.size--;
    return t;
}

/* Returns the option with this text; 0: none, or several. */
static char option_text(const struct options *o, tare_text t)
{
    char found = 0;
    const tare_text want = is_plain(t);
    if (want.size)
        for (int i = 0; i < o->n_choices && i < o->n; i++) {
            if (!text_equal(is_plain(o->choices[i]), want, true)) continue;
            if (found) return 0;
            found = o->letters[i];
        }
    return found;
}

/* ---------------------------------------------------------------- where to look */

/* Returns the complete box that starts last, of at most MAX_BOX bytes; size -1: none. *cut: the
 * content of a later box that is never closed; size -1: none. One pass: open boxes are on a stack,
 * which keeps the innermost STACK of a hostile text. */
static tare_text last_box(tare_text t, tare_text *cut)
{
    enum { MAX_BOX = 4096, STACK = 64 };
    struct {
        int64_t inner, depth;
    } open[STACK];
    tare_text box = {NULL, -1};
    int64_t depth = 0, n = 0;
    for (int64_t i = 0; i < t.size; i++) {
        const char c = t.data[i];
        if (c == '\\') {
            const int64_t name = text_starts(t, i, "\\boxed{", false) ? 7 : text_starts(t, i, "\\fbox{", false) ? 6 : 0;
            if (!name) continue;
            open[n % STACK].inner = i + name;
            open[n % STACK].depth = depth++;
            n++;
            i += name - 1;
        } else if (c == '{') {
            depth++;
        } else if (c == '}') {
            depth--;
            if (!n || open[(n - 1) % STACK].depth != depth) continue;
            n--;
            const int64_t inner = open[n % STACK].inner;
            if (i - inner < MAX_BOX && (box.size < 0 || t.data + inner > box.data)) box = text_slice(t, inner, i);
        }
    }
    *cut = (tare_text){NULL, -1};
    if (n && (box.size < 0 || t.data + open[(n - 1) % STACK].inner > box.data))
        *cut = text_slice(t, open[(n - 1) % STACK].inner, t.size);
    return box;
}

static int64_t line_end(tare_text t, int64_t i)
{
    while (i < t.size && t.data[i] != '\n') i++;
    return i;
}

static bool word_at(tare_text t, int64_t i, const char *w)
{
    const int64_t n = (int64_t)strlen(w);
    return text_starts(t, i, w, true) && (i + n >= t.size || !text_is_letter(t.data[i + n])) &&
           (!i || !text_is_letter(t.data[i - 1]));
}

/* Returns the position after the link that follows "answer", "choice" or "option" ("is", ":", "-",
 * "should be"...), or -1. not: the link is negated. */
static int64_t behind_anchor(tare_text t, int64_t i, bool answer, bool *denied)
{
    const int64_t start = i, far = i + MAX_BLANKS;
    while (i < t.size && i < far && strchr(" *_", t.data[i])) i++;
    bool link = false;
    if (word_at(t, i, "is")) {
        i += 2;
        link = true;
    } else if (word_at(t, i, "should be") || word_at(t, i, "must be") || word_at(t, i, "would be")) {
        i += word_at(t, i, "must be") ? 7 : 9;
        link = true;
    } else if (i < t.size && (t.data[i] == ':' || (t.data[i] == '-' && i > start))) {
        i++;
        link = true;
    } else if (answer && i < t.size && t.data[i] == '\n')
        link = true; /* a heading */
    else if (i + 2 < t.size && !memcmp(t.data + i, "\xEF\xBC\x9A", 3)) {
        i += 3;
        link = true;
    }
    if (!link) return -1;
    while (i < t.size && i < far + MAX_BLANKS && (text_is_space(t.data[i]) || t.data[i] == ':' || t.data[i] == '*')) i++;
    *denied = word_at(t, i, "not") || word_at(t, i, "neither") || word_at(t, i, "none");
    return i;
}

/* Returns whether the letter at i is called right: "Option B is correct", "(B) is the right
 * answer". */
static bool called_right(tare_text t, int64_t i)
{
    for (const int64_t far = i + MAX_DRESS; i < t.size && i < far && strchr(")]* $}\"", t.data[i]);) i++;
    if (!word_at(t, i, "is")) return false;
    i += 2;
    for (const int64_t far = i + MAX_DRESS; i < t.size && i < far && t.data[i] == ' ';) i++;
    if (word_at(t, i, "the")) i += 4;
    if (word_at(t, i, "only") || word_at(t, i, "most")) i += 5;
    return word_at(t, i, "correct") || word_at(t, i, "right") || word_at(t, i, "best") || word_at(t, i, "answer") ||
           word_at(t, i, "valid") || word_at(t, i, "suitable") || word_at(t, i, "appropriate") || word_at(t, i, "accurate");
}

static bool starts_line(tare_text t, int64_t i)
{
    return !i || t.data[i - 1] == '\n';
}

/* Returns whether "is" precedes i, but not "there is": "The best one is option C". */
static bool behind_is(tare_text t, int64_t i)
{
    return i > 3 && word_at(t, i - 3, "is") && t.data[i - 1] == ' ' && !(i >= 9 && text_starts(t, i - 9, "there ", true));
}

/* Returns the rest of the line after an anchor, up to a tag; empty if it is longer than any
 * decorated option. */
static tare_text rest_of_line(const struct options *o, tare_text t, int64_t at)
{
    int64_t longest = 0;
    for (int i = 0; i < o->n_choices; i++) longest = o->choices[i].size > longest ? o->choices[i].size : longest;
    const int64_t far = longest ? at + longest + MAX_BLANKS : at;
    int64_t end = at;
    for (; end < t.size && end < far && t.data[end] != '\n'; end++)
        if (t.data[end] == '<' && end + 1 < t.size && (t.data[end + 1] == '/' || t.data[end + 1] == '|')) break;
    return text_slice(t, at, end < far ? end : at);
}

/* Reads the phrase that starts at i, if any. NONE: no phrase, or one without an option. */
static enum named read_phrase(const struct options *o, tare_text t, int64_t i, char *letter)
{
    bool denied = false;
    int64_t at = -1;
    if (t.data[i] == '(')
        ; /* only (B) is correct, handled below */
    else if (word_at(t, i, "answer"))
        at = behind_anchor(t, i + 6, true, &denied);
    else if (word_at(t, i, "choice") || word_at(t, i, "option"))
        at = behind_anchor(t, i + 6, false, &denied);
    else if (word_at(t, i, "I choose") || word_at(t, i, "I select"))
        at = i + 8;
    else if (word_at(t, i, "I pick"))
        at = i + 6;
    else if (text_starts(t, i, "####", false))
        at = i + 4;
    else if (text_starts(t, i, "<answer>", true))
        at = i + 8;
    /* "answer" in Chinese, with "is" or a colon */
    else if (text_starts(t, i, "\xE7\xAD\x94\xE6\xA1\x88", false)) {
        at = i + 6;
        if (text_starts(t, at, "\xE6\x98\xAF", false) || text_starts(t, at, "\xEF\xBC\x9A", false) ||
            text_starts(t, at, "\xE4\xB8\xBA", false))
            at += 3;
    }
    if (at >= 0 && !denied) {
        const tare_text rest = text_slice(t, at, t.size);
        const enum named got = named_option(o, text_slice(rest, 0, rest.size < MAX_PHRASE ? rest.size : MAX_PHRASE), false, letter);
        if (got != NONE) return got;
        if ((*letter = option_text(o, rest_of_line(o, t, at)))) return ONE;
    }
    const bool option = word_at(t, i, "option") || word_at(t, i, "choice");
    int64_t k = i; /* Option B is correct; (B) is correct; "B" is correct; B is correct */
    if (option || word_at(t, i, "answer"))
        k = i + 7;
    else if (starts_line(t, i) && is_option(o, t.data[i]))
        ;
    else if (t.data[i] == '"')
        k = i + 1;
    /* the inner bracket was checked before */
    else if (t.data[i] != '(' || (i + 1 < t.size && t.data[i + 1] == '('))
        return NONE;
    for (const int64_t far = k + MAX_DRESS; k < t.size && k < far && strchr("(*$ ", t.data[k]);) k++;
    if (k + 1 < t.size && is_option(o, t.data[k]) && !is_word(t.data[k + 1]) &&
        (called_right(t, k + 1) || (option && behind_is(t, i))))
        return *letter = t.data[k], ONE;
    return NONE;
}

/* Returns whether a line is one decorated letter. with_text: text may follow "B)" or "B.". */
static bool letter_line(const struct options *o, tare_text line, bool with_text, char *letter)
{
    bool bracket = false;
    tare_text t = strip_dress(line, &bracket);
    if (!t.size || !is_option(o, t.data[0]) || (t.size > 1 && is_word(t.data[1]))) return false;
    tare_text rest = text_slice(t, 1, t.size);
    if (with_text && rest.size && (rest.data[0] == ')' || rest.data[0] == '.' || rest.data[0] == ':'))
        return *letter = t.data[0], true;
    while (rest.size && (text_is_space(rest.data[0]) || strchr(".)]}*$\"'", rest.data[0]))) rest = text_slice(rest, 1, rest.size);
    if (rest.size) return false;
    *letter = t.data[0];
    return true;
}

/* Returns the option that the first line opens with, "B. colder than" or "(B) colder", if no later
 * line opens with another one. */
static char only_option_line(const struct options *o, tare_text t)
{
    char first = 0;
    for (int64_t i = 0; i < t.size; i = line_end(t, i) + 1) {
        const int64_t end = i + MAX_DRESS + 2 < t.size ? i + MAX_DRESS + 2 : t.size;
        bool bracket = false;
        const tare_text line = strip_dress(text_slice(t, i, end), &bracket);
        const bool opens = line.size > 1 && is_option(o, line.data[0]) && (line.data[1] == '.' || line.data[1] == ')');
        if (!opens && !i) return 0;
        if (opens && i && line.data[0] != first) return 0;
        if (!i) first = line.data[0];
    }
    return first;
}

static tare_text without_control(tare_text t)
{
    t = text_after_thought(t);
    for (;;) { /* <|im_end|> at the end */
        t = text_trim(t);
        if (t.size < 4 || t.data[t.size - 1] != '>' || t.data[t.size - 2] != '|') return t;
        int64_t i = t.size - 3;
        while (i > 0 && t.data[i] != '<' && t.size - i < 40) i--;
        if (t.data[i] != '<') return t;
        t.size = i;
    }
}

struct chosen choice_extract(const struct options *o, tare_text completion)
{
    const tare_text t = without_control(completion);
    struct chosen c = {0};
    tare_text cut;
    const tare_text box = last_box(t, &cut);
    if (cut.size >= 0 && letter_line(o, cut, false, &c.letter))
        return c.rule = "a box that is not closed, with nothing but the option", c;
    if (cut.size >= 0 && box.size >= 0) return c.rule = "a box that was cut off, after another one", c;
    if (box.size >= 0) {
        if (named_option(o, box, true, &c.letter) != ONE && !(c.letter = option_text(o, box)))
            return c.rule = "a box without one option", c;
        return c.rule = "the last box", c;
    }
    enum named got = NONE;
    for (int64_t i = t.size - 1; i >= 0 && got == NONE; i--) {
        const char k = text_lower(t.data[i]);
        if (k == 'a' || k == 'o' || k == 'c' || k == 'i' || k == '#' || k == '<' || k == '(' || k == '"' ||
            (unsigned char)k == 0xE7 || starts_line(t, i))
            got = read_phrase(o, t, i, &c.letter);
    }
    if (got == ONE) return c.rule = "the last phrase that names an option", c;
    c.letter = 0;
    if (got == OTHER) return c.rule = "a phrase that names several options, or none of them", c;
    const int64_t first = line_end(t, 0);
    if (first >= t.size && letter_line(o, t, true, &c.letter)) return c.rule = "the whole text", c;
    int64_t last = t.size;
    while (last > 0 && t.data[last - 1] != '\n') last--;
    if (letter_line(o, text_slice(t, last, t.size), false, &c.letter)) return c.rule = "the last line", c;
    if ((c.letter = only_option_line(o, t))) return c.rule = "the first line, and no other option after it", c;
    if ((c.letter = option_text(o, t))) return c.rule = "the text of an option", c;
    return c.rule = "no option is named", c;
}

char choice_of_gold(const struct options *o, tare_text answer)
{
    char letter = 0;
    tare_text cut;
    const tare_text box = last_box(answer, &cut);
    const tare_text t = text_trim(box.size >= 0 ? box : answer);
    if (letter_line(o, t, false, &letter)) return letter;
    if ((letter = option_text(o, t))) return letter;
    return letter_line(o, t, true, &letter) ? letter : 0;
}
