/* Decides whether a text operates on the number taken from it as its answer: "12 minus 5", "12 more
 * than 5", "12 dozen", "the 12th", "12, no, 13". Such a number is not an answer: the value of all
 * the words counts if they can be read, otherwise nothing. */
#include "common/words/sentences.h"
#include "numerals.h"
#include "prose.h"

#include <string.h>

enum { WORDS = 6 };

/* The words after a position in a text. */
struct tail {
    tare_text word[WORDS];
    int n;
    bool number; /* followed by a number */
};

/* Reads words from i up to a digit or a mark that ends a clause. marks: continues past marks. */
static struct tail read_tail(tare_text t, int64_t i, bool marks)
{
    struct tail r = {.n = 0};
    while (i < t.size && r.n < WORDS && t.data[i] != '\n' && t.data[i] != '\\' && !text_is_digit(t.data[i])) {
        const int64_t from = i;
        while (i < t.size && text_is_letter(t.data[i])) i++;
        if (i > from) {
            r.word[r.n++] = text_slice(t, from, i);
            if (i < t.size && t.data[i] == '^') /* cm^2, s^{-1} */
                for (i++; i < t.size && (text_is_digit(t.data[i]) || strchr("{-}", t.data[i]));) i++;
        } else if (!marks && strchr(",.;:!?()=<>", t.data[i++]))
            return r;
        else
            i += marks;
    }
    while (i < t.size && strchr(" -+$(", t.data[i])) i++;
    r.number = i < t.size && text_is_digit(t.data[i]);
    return r;
}

/* Returns true if another number replaces part: "12. Actually, 13.", "7, no, 8". */
bool is_corrected(tare_text t, tare_text part)
{
    static const char *const words[] = {"actually", "no", "correction", "wait", "sorry", "oops", "rather", "make", "scratch", NULL};
    int64_t i = part.data + part.size - t.data;
    while (i < t.size && strchr(" ,.;:?!-*", t.data[i])) i++;
    const struct tail r = read_tail(t, i, true);
    if (!r.n || !r.number || !text_one_of(r.word[0], words)) return false;
    for (int k = 1; k < r.n; k++) {
        int used;
        const char *tex;
        const enum role role = phrase_role(r.word + k, 1, &used, &tex);
        if (role != ROLE_DROP && role != ROLE_IS && !is_answer_noun(r.word[k]) && !text_one_of(r.word[k], words)) return false;
    }
    return true;
}

bool is_multiple(tare_text w)
{
    static const char *const multiples[] = {"dozen",  "dozens",   "gross",     "score",      "fold",       "halves",
                                            "thirds", "fifths",   "sixths",    "sevenths",   "eighths",    "ninths",
                                            "tenths", "twelfths", "hundredth", "hundredths", "thousandth", "thousandths",
                                            "tenth",  "squared",  "cubed",     "factorial",  NULL};
    return text_one_of(w, multiples);
}

/* Matches operators, comparisons, multiples and fractions right after a number. */
static bool is_operation(const struct tail *r, int k)
{
    static const char *const steps[] = {"raised", "into", "by",     "percent", "to",  "over",
                                        "of",     "mod",  "modulo", "choose",  "out", NULL};
    static const char *const degrees[] = {"more",   "less",  "fewer",  "greater", "larger", "smaller", "bigger",
                                          "higher", "lower", "longer", "shorter", "older",  "younger", NULL};
    static const char *const others[] = {"his", "her", "their", "its",  "my",     "your", "our",
                                         "the", "he",  "she",   "they", "before", NULL};
    const tare_text w = r->word[k];
    int used;
    const char *tex;
    const enum role role = phrase_role(r->word + k, r->n - k, &used, &tex);
    if (is_multiple(w)) return !k;
    if (text_one_of(w, degrees)) /* 12 more than 5; "12 more than his brother" is 12 */
        return k + 1 < r->n && text_equal(r->word[k + 1], text_of("than"), true) &&
               (r->number || k + 2 >= r->n || !text_one_of(r->word[k + 2], others));
    const bool number = r->number && k + used == r->n;
    if (role == ROLE_TEX || role == ROLE_RELATE || role == ROLE_BASE || role == ROLE_EXCEPT) return !k || number;
    if (role == ROLE_BOUND) return true;
    if (role == ROLE_RATIO || text_one_of(w, steps)) return number || (text_equal(w, text_of("raised"), true) && r->number);
    return !k && (text_equal(w, text_of("below"), true) || text_equal(w, text_of("under"), true));
}

/* Returns true if another number or a letter follows in the same clause, so that the number is only
 * part of the answer: "3 for every 4", "20% off 50", "7% of x". */
static bool is_continued(const struct tail *r)
{
    for (int k = 0; k < r->n; k++) {
        int used;
        const char *tex;
        const enum role role = phrase_role(r->word + k, 1, &used, &tex);
        if (role == ROLE_REASON || role == ROLE_THEN || role == ROLE_IS) return false;
        const char c = r->word[k].size == 1 ? text_lower(r->word[k].data[0]) : 'a';
        if (k && c != 'a' && c != 'i' && text_equal(r->word[k - 1], text_of("of"), true)) return true;
    }
    return r->n && r->number;
}

/* Returns true for the th of 12th. */
static bool is_ordinal_end(tare_text t, int64_t i)
{
    static const char *const ends[] = {"st", "nd", "rd", "th", NULL};
    int64_t k = i;
    while (k < t.size && text_is_letter(t.data[k])) k++;
    return text_one_of(text_slice(t, i, k), ends);
}

/* Returns whether the sentence has a number before i: "2026 is the year after 2025" has both. */
static bool has_number(tare_text t, int64_t i)
{
    enum { FAR = 320 };
    const int64_t far = i > FAR ? i - FAR : 0;
    for (; i > far && t.data[i - 1] != '\n' && !(text_is_space(t.data[i - 1]) && i > 1 && strchr(".?!", t.data[i - 2])); i--)
        if (text_is_digit(t.data[i - 1])) return true;
    return false;
}

/* Returns whether the words before i make what follows one of several, or the end of a range: "15
 * or", "25 to", "between 36 and"; not "from 5 to", "rounds 24.6 to". */
static bool is_second(tare_text t, int64_t i)
{
    enum { FAR = 40 };
    if (i > 4 && text_starts(t, i - 3, " or", true) && text_is_digit(t.data[i - 4])) return true;
    if (i > 4 && text_starts(t, i - 3, " to", true) && text_is_digit(t.data[i - 4])) {
        const tare_text front = text_slice(t, sentence_start(t, i, 3 * FAR), i);
        return text_find(front, "from ") < 0 && text_find(front, "rounded") < 0 && text_find(front, "rounds") < 0 &&
               text_find(front, "ratio") < 0;
    }
    if (i < 4 || !(text_starts(t, i - 4, " and", true))) return false;
    const int64_t far = i > FAR ? i - FAR : 0;
    int64_t k = i - 4;
    while (k > far && !(strchr(",.;:?!\n", t.data[k - 1]) && text_is_space(t.data[k])) && !text_starts(t, k, "between ", true)) k--;
    return text_starts(t, k, "between ", true) && k + 8 < i && strchr("0123456789-+.$\\", t.data[k + 8]);
}

/* Returns true if words right before the number change its value or make it a name: "slightly less
 * than 12", "next after 12", "ten to 12", "April 12". */
static bool is_shifted(tare_text t, int64_t i)
{
    enum { LAST = 3 };
    static const char *const moves[] = {"after", "before", "past", "beyond", "below", "above", "under", "over", NULL};
    tare_text word[LAST];
    int n = 0, used;
    const char *tex;
    while (i > 0 && strchr("$ *(", t.data[i - 1])) i--;
    if (is_second(t, i)) return true;
    for (int64_t k; n < LAST && i > 0; n++) {
        for (k = i; k > 0 && text_is_letter(t.data[k - 1]);) k--;
        if (k == i) break;
        word[LAST - 1 - n] = text_slice(t, k, i);
        for (i = k; i > 0 && t.data[i - 1] == ' ';) i--;
    }
    if (!n) return false;
    const tare_text last = word[LAST - 1];
    if (is_month(last) || (text_one_of(last, moves) && !has_number(t, i))) return true;
    if (n > 1 && text_equal(last, text_of("to"), true) && is_numeral_word(word[LAST - 2])) return true;
    for (int k = LAST - n; k < LAST - 1; k++)
        if (phrase_role(word + k, LAST - k, &used, &tex) == ROLE_RELATE && used == LAST - k) return true;
    return false;
}

bool is_operated(tare_text t, tare_text part)
{
    int64_t i = part.data - t.data;
    if (is_shifted(t, i)) return true;
    /* they are read as a whole, except for the 12th prime */
    const bool words = part.size && text_is_letter(t.data[i]);
    while (i < part.data - t.data + part.size && (text_is_letter(t.data[i]) || strchr("$+-( ", t.data[i]))) i++;
    if (i >= t.size || !(text_is_digit(t.data[i]) || t.data[i] == '.')) return false;
    while (i < t.size && (text_is_digit(t.data[i]) || (strchr(".,", t.data[i]) && i + 1 < t.size && text_is_digit(t.data[i + 1]))))
        i++;
    if (i + 1 < t.size && text_is_letter(t.data[i]) && is_ordinal_end(t, i)) return true;
    if (words) return false;
    while (i < t.size && strchr("%*()- ", t.data[i])) i++;
    const struct tail r = read_tail(t, i, false);
    for (int k = 0; k < r.n && k < 2; k++)
        if (is_operation(&r, k)) return true;
    i = part.data - t.data + part.size;
    while (i < t.size && strchr("% -", t.data[i])) i++;
    /* in bold, or followed by a remark in brackets */
    if (i >= t.size || !text_is_letter(t.data[i])) return false;
    const struct tail rest = read_tail(t, i, false);
    return is_continued(&rest);
}
