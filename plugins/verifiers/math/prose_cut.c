/* Cuts an answer with words into the words and the mathematics between them, with or without
 * \text{}. */
#include "numerals.h"
#include "prose.h"
#include "units.h"

#include <string.h>

static void add_word(struct prose_cut *r, tare_text t, bool word, bool text)
{
    if (!t.size) return;
    if (r->n == PROSE_ITEMS) {
        r->refused = true;
        return;
    }
    r->items[r->n++] = (struct prose_item){t, word, text, false};
}

static bool is_wrapper(const char *s, int64_t n)
{
    const struct word *w = find_command(s, n);
    return w && w->kind == T_WORDS;
}

/* Returns the end of the group that opens at i, after its brace. */
static int64_t group_end(tare_text t, int64_t i)
{
    int depth = 0;
    for (; i < t.size; i++) {
        if (t.data[i] == '\\') {
            i++;
            continue;
        }
        depth += t.data[i] == '{';
        depth -= t.data[i] == '}';
        if (!depth) return i + 1;
    }
    return t.size;
}

/* Returns whether letters in a formula are a word: not a function, a product of letters, or a name
 * before brackets. */
static bool is_plain_word(tare_text t, int64_t from, int64_t to)
{
    const tare_text w = text_slice(t, from, to);
    const char before = from ? t.data[from - 1] : ' ', after = to < t.size ? t.data[to] : ' ';
    int used;
    const char *tex;
    if (!from && text_equal(w, text_of("a"), true) && after == ' ') { /* a thousand */
        int64_t k = to + 1;
        while (k < t.size && text_is_letter(t.data[k])) k++;
        return is_numeral_word(text_slice(t, to + 1, k));
    }
    if (text_equal(w, text_of("a"), false) && from && before == ' ' && after == ' ' && to + 2 < t.size &&
        text_is_letter(t.data[to + 1]))
        return text_is_letter(t.data[to + 2]); /* and a half */
    if (w.size < 2 || strchr("\\_^{", before) || text_is_digit(before) || strchr("_^(", after)) return false;
    if (is_numeral_word(w)) return true;
    if (find_function(w.data, w.size) && !text_equal(w, text_of("pi"), false) && !text_equal(w, text_of("infinity"), false))
        return false;
    if (phrase_role(&w, 1, &used, &tex) != ROLE_OPEN || is_answer_noun(w) || is_in_phrase(w)) return true;
    if (find_unit(w.data, w.size, false).kind || text_equal(w, text_of("per"), true)) return before == ' ';
    if (w.size < 4) return false;
    bool vowel = false, small = false;
    for (int64_t i = 0; i < w.size; i++) {
        vowel |= strchr("aeiouy", text_lower(w.data[i])) != NULL;
        small |= w.data[i] >= 'a';
    }
    return vowel && small;
}

/* Returns true for the capital of "Answer: A" or "option C", not for that of "A fair coin". */
static bool is_single_capital(tare_text t, int64_t from, int64_t to)
{
    int used;
    const char *tex;
    if (to - from != 1 || t.data[from] >= 'a') return false;
    if (!strchr("AI", t.data[from]) || to + 1 >= t.size || t.data[to] != ' ') return true;
    int64_t k = to + 1;
    while (k < t.size && text_is_letter(t.data[k])) k++;
    const tare_text next = text_slice(t, to + 1, k);
    const enum role role = next.size ? phrase_role(&next, 1, &used, &tex) : ROLE_JOINT;
    return role != ROLE_OPEN && role != ROLE_DROP;
}

/* Returns the end of a remark in brackets at i that is only words; 0: none. */
static int64_t remark_end(tare_text t, int64_t i)
{
    int64_t k = i + 1;
    bool words = false;
    for (int64_t run = 0; k < t.size && t.data[k] != ')'; k++) {
        const char c = t.data[k];
        if (!text_is_letter(c) && !strchr(" ,'-.", c)) return 0;
        run = text_is_letter(c) ? run + 1 : 0;
        words |= run > 1;
    }
    return words && k < t.size ? k + 1 : 0;
}

/* Returns whether the value is unchanged without the words of a remark at i .. end - 1:
 * "(exactly)", "(five)" after 5. */
static bool is_idle(tare_text t, int64_t i, int64_t end, tare_text before)
{
    tare_text words[8];
    int n = 0, used;
    const char *tex;
    char numeral[NUMERAL_TEXT];
    for (int64_t k = i; k < end; k++) {
        const int64_t from = k;
        while (k < end && text_is_letter(t.data[k])) k++;
        if (k > from && n == 8) return false;
        if (k > from) words[n++] = text_slice(t, from, k);
    }
    if (n && read_numeral(words, n, true, numeral)) {
        const int64_t size = (int64_t)strlen(numeral);
        before = text_trim(before);
        return before.size >= size && !memcmp(before.data + before.size - size, numeral, (size_t)size);
    }
    for (int k = 0; k < n; k += used) {
        const enum role role = phrase_role(words + k, n - k, &used, &tex);
        if (role != ROLE_OPEN && role != ROLE_DROP && role != ROLE_RATIO) return false;
    }
    return true;
}

/* Returns true at the apostrophe of isn't. */
static bool contracts_not(tare_text t, int64_t i)
{
    return i > 1 && text_starts(t, i - 1, "n't", true) && !(i + 2 < t.size && text_is_letter(t.data[i + 2]));
}

static bool ends_sentence(tare_text t, int64_t i)
{
    return t.data[i] == '.' && (i + 1 == t.size || text_is_space(t.data[i + 1])) &&
           !(i && (t.data[i - 1] == '.' || t.data[i - 1] == '\\'));
}

/* Returns the position after the \end for the \begin at i; the end of the text if there is none. */
static int64_t environment_end(tare_text t, int64_t i)
{
    int depth = 0;
    for (; i < t.size; i++) {
        if (t.data[i] != '\\') continue;
        depth += text_starts(t, i, "\\begin", false);
        if (text_starts(t, i, "\\end", false) && !--depth) return group_end(t, i + 4);
        i++;
    }
    return t.size;
}

/* Returns true for ** next to a word; 2**3 is a power. */
static bool marks_bold(tare_text t, int64_t i)
{
    return i + 1 < t.size && t.data[i + 1] == '*' &&
           ((i && text_is_letter(t.data[i - 1])) || (i + 2 < t.size && text_is_letter(t.data[i + 2])));
}

static void cut_text(struct prose_cut *r, tare_text t, bool text);

/* Splits off "(base 8)" without its brackets. Returns its end; 0: other brackets. */
static int64_t cut_base(struct prose_cut *r, tare_text t, int64_t i, bool text)
{
    const char *close = memchr(t.data + i, ')', (size_t)(t.size - i));
    if (!close || !text_starts(t, i + 1, "base ", true)) return 0;
    cut_text(r, text_slice(t, i + 1, close - t.data), text);
    return close - t.data + 1;
}

/* Cuts the command at i: \text{words} into its words; others are kept with their arguments. Returns
 * its end. */
static int64_t cut_command(struct prose_cut *r, tare_text t, int64_t i, int64_t *begin)
{
    int64_t k = i + 1;
    while (k < t.size && text_is_letter(t.data[k])) k++;
    if (k == i + 1) return k + 1;
    if (k - i == 6 && text_starts(t, i, "\\begin", false)) return environment_end(t, i);
    const struct word *w = find_command(t.data + i + 1, k - i - 1);
    if (w && w->kind == T_GROUP && k < t.size && t.data[k] == '{') { /* \boxed{words} */
        const int64_t end = group_end(t, k);
        add_word(r, text_slice(t, *begin, i), false, false);
        if (++r->nested < 8) cut_text(r, text_slice(t, k + 1, end - (t.data[end - 1] == '}')), false);
        r->nested--;
        return *begin = end;
    }
    if (!is_wrapper(t.data + i + 1, k - i - 1) || k >= t.size || t.data[k] != '{') return k;
    const int64_t end = group_end(t, k);
    const tare_text inside = text_trim(text_slice(t, k + 1, end - 1));
    const bool one_word = !memchr(inside.data, ' ', (size_t)inside.size),
               letter = inside.size == 1 && text_is_letter(inside.data[0]);
    /* \text{m}; \mathrm{i}, \operatorname{arctan}: symbols */
    if (letter || (w && w->aux == 1 && one_word)) return end;
    const bool tight = end - 2 > k && text_is_letter(t.data[end - 2]);
    if (tight && (text_starts(t, end, "(", false) || text_starts(t, end, "\\left(", false)) && !remark_end(t, end))
        r->refused = true; /* \text{rank}(2) */
    add_word(r, text_slice(t, *begin, i), false, false);
    cut_text(r, text_slice(t, k + 1, end - (t.data[end - 1] == '}')), true);
    *begin = end;
    return end;
}

static void cut_text(struct prose_cut *r, tare_text t, bool text)
{
    int64_t begin = 0, size; /* begin: start of text that is not a word */
    for (int64_t i = 0; i < t.size && !r->refused;) {
        const char c = t.data[i];
        if (c == '\\' && !text) {
            i = cut_command(r, t, i, &begin);
            if (i > t.size) i = t.size;
        } else if (c == '{' && !text) {
            i = group_end(t, i);
        } else if (c == '$' || (c == '*' && marks_bold(t, i))) {
            add_word(r, text_slice(t, begin, i), false, false);
            i += c == '$' ? 1 : 2;
            begin = i;
        } else if (c == '(' && remark_end(t, i)) {
            const int64_t end = remark_end(t, i);
            const bool first = !text_trim(text_slice(t, begin, i)).size && r->n;
            if (!is_idle(t, i, end, first ? r->items[r->n - 1].t : text_slice(t, begin, i))) r->refused = true;
            add_word(r, text_slice(t, begin, i), false, false);
            begin = i = end;
        } else if (c == '(' && text_starts(t, i + 1, "base ", true) && memchr(t.data + i, ')', (size_t)(t.size - i))) {
            add_word(r, text_slice(t, begin, i), false, false);
            begin = i = cut_base(r, t, i, text);
        } else if (ends_sentence(t, i)) {
            add_word(r, text_slice(t, begin, i), false, false);
            add_word(r, text_slice(t, i, i + 1), false, text);
            if (r->n) r->items[r->n - 1].stop = true;
            begin = ++i;
        } else if ((size = half_of_day(t, i)) > 2) { /* p.m. */
            add_word(r, text_slice(t, begin, i), false, false);
            add_word(r, text_of(text_lower(c) == 'p' ? "pm" : "am"), true, true);
            begin = i += size;
        } else if (text_is_letter(c)) {
            int64_t k = i;
            while (k < t.size && (text_is_letter(t.data[k]) || (t.data[k] == '\'' && (text || contracts_not(t, k))))) k++;
            if (text ? !is_single_capital(t, i, k) : is_plain_word(t, i, k)) {
                add_word(r, text_slice(t, begin, i), false, false);
                add_word(r, text_slice(t, i, k), true, text);
                begin = k;
                if (begin < t.size && t.data[begin] == '-' && begin + 1 < t.size && text_is_letter(t.data[begin + 1])) begin++;
            }
            i = k > begin ? k : begin;
        } else {
            i++;
        }
    }
    if (begin < t.size) add_word(r, text_slice(t, begin, t.size), false, false);
}

void cut_prose(struct prose_cut *out, tare_text t)
{
    cut_text(out, t, false);
}
