/* Boxes that are reported, imagined or asked about, and answers that a later sentence takes back. */
#include "prose.h"
#include "scan.h"

#include <string.h>

enum { FAR = 320, WORDS = 64 };

static bool one_of(tare_text w, const char *const *list)
{
    for (; *list; list++)
        if (text_equal(w, text_of(*list), true)) return true;
    return false;
}

static int64_t sentence_begin(tare_text t, int64_t i)
{
    const int64_t far = i > FAR ? i - FAR : 0;
    while (i > far && !(t.data[i - 1] == '\n' && (i < 2 || t.data[i - 2] == '\n')) &&
           !(text_is_space(t.data[i - 1]) && i > 1 && strchr(".?!", t.data[i - 2])))
        i--;
    return i;
}

static int64_t sentence_stop(tare_text t, int64_t i)
{
    const int64_t far = i + FAR < t.size ? i + FAR : t.size;
    while (i < far && t.data[i] != '\n' && !(strchr(".?!", t.data[i]) && (i + 1 == t.size || !(text_is_digit(t.data[i + 1])))))
        i++;
    return i;
}

/* Cuts t into lower-case-able words and commas, the last WORDS of them. */
static int cut_words(tare_text t, tare_text *word)
{
    int n = 0;
    for (int64_t i = 0; i < t.size;) {
        int64_t k = i;
        while (k < t.size && (text_is_letter(t.data[k]) || (k > i && t.data[k] == '\''))) k++;
        const bool command = i > 0 && t.data[i - 1] == '\\';
        if ((k > i && !command) || strchr(",;:", t.data[i])) {
            if (n == WORDS) memmove(word, word + 1, (WORDS - 1) * sizeof *word), n--;
            word[n++] = text_slice(t, i, k > i ? k : i + 1);
        }
        i = k > i ? k : i + 1;
    }
    return n;
}

/* Returns whether the words at k report a wrong value: "a common mistake", "the naive count". */
static bool is_report(const tare_text *word, int n, int k)
{
    static const char *const alone[] = {"tempting", "tempted", "naive", "naively", "mistakenly", "erroneously", "wrongly", "incorrectly", "misconception", NULL};
    static const char *const rejected[] = {"wrong", "incorrect", "erroneous", "tempting", "common", "typical", "frequent", "previous", "former", "old", "original", "initial", "first", "claimed", "classic", "earlier", NULL};
    static const char *const results[] = {"answer", "answers", "guess", "attempt", "estimate", "mistake", "error", "pitfall", "trap", "solution", NULL};
    static const char *const mights[] = {"might", "may", "could", "would", NULL};
    static const char *const thinks[] = {"think", "say", "answer", "guess", "expect", "conclude", "believe", "be", NULL};
    static const char *const persons[] = {"one", "someone", "you", "some", "many", "people", "students", "they", NULL};
    static const char *const said[] = {"wrote", "thought", "guessed", "misread", NULL};
    if (one_of(word[k], alone)) return true;
    if (k + 1 < n && one_of(word[k], rejected) && one_of(word[k + 1], results)) return true;
    if (k && k + 1 < n && one_of(word[k], mights) && one_of(word[k - 1], persons) && one_of(word[k + 1], thinks)) return true;
    if (k && one_of(word[k], said) && (one_of(word[k - 1], (const char *const[]){"i", "we", "first", "initially", "originally", NULL}))) return true;
    if (one_of(word[k], persons) && k + 1 < n && one_of(word[k + 1], (const char *const[]){"say", "claim", "think", "believe", "answer", NULL})) return true;
    if (k && one_of(word[k], (const char *const[]){"claims", "claimed", "says", "said", "thinks", NULL}) && k + 1 < n &&
        one_of(word[k + 1], (const char *const[]){"that", "the", "it", "its", NULL}))
        return true;
    return !k && text_equal(word[k], text_of("replace"), true);
}

bool is_reported(tare_text t, int64_t begin, int64_t end)
{
    static const char *const imagined[] = {"suppose", "assume", "assuming", "supposing", "imagine", "pretend", "what", NULL};
    static const char *const resume[] = {"but", "however", "therefore", "thus", "hence", "instead", "actually", "correct", "actual", "true", "right", NULL};
    static const char *const then[] = {"then", "so", ",", ";", ":", NULL};
    static const char *const counts[] = {"double", "overcounts", "undercounts", "overcount", "overestimates", NULL};
    tare_text word[WORDS];
    const int64_t stop = sentence_stop(t, end);
    int n = cut_words(text_slice(t, sentence_begin(t, begin), begin), word);
    bool report = false, hypothesis = false;
    for (int k = 0; k < n; k++) {
        if (one_of(word[k], resume)) report = hypothesis = false;
        if (one_of(word[k], then)) hypothesis = false;
        report |= is_report(word, n, k);
        hypothesis |= one_of(word[k], imagined) && (!k || one_of(word[k - 1], then) || one_of(word[k - 1], (const char *const[]){"we", "us", "now", "first", NULL})) &&
                      !text_equal(word[k], text_of("what"), true);
    }
    if (report || hypothesis) return true;
    if (stop < t.size && t.data[stop] == '?' && sentence_stop(t, end) - end < 4) return true;
    n = cut_words(text_slice(t, end, stop), word);
    for (int k = 0; k < n && k < 4; k++)
        if (one_of(word[k], counts) && !(text_equal(word[k], text_of("double"), true) && !(k + 1 < n && text_starts(word[k + 1], 0, "count", true)))) return true;
    return false;
}

/* Moves behind the marks and blanks before the next sentence. */
static int64_t next_sentence(tare_text t, int64_t i)
{
    i = sentence_stop(t, i);
    while (i < t.size && (text_is_space(t.data[i]) || strchr(".?!$*)\"}]", t.data[i]))) i++;
    return i;
}

bool is_regretted(tare_text t, int64_t i)
{
    static const char *const phrases[] = {"double counts", "double-counts", "overcounts", "double counted", "counted twice", "i made a", "i made an", "made an arithmetic", "made a mistake", "made an error",
                                          "arithmetic error", "i'm not sure", "i am not sure", "recheck", "re-check", "miscounted", "i forgot", "misread", "that can't be", "that cannot be", "it may be ", "it might be ",
                                          "double-check that again", NULL};
    for (int n = 0; n < 2 && i < t.size; n++) {
        i = next_sentence(t, i);
        const int64_t stop = sentence_stop(t, i);
        for (int64_t k = i; k < stop; k++)
            for (const char *const *p = phrases; *p; p++)
                if (text_lower(t.data[k]) == **p && text_starts(t, k, *p, true)) return true;
    }
    return false;
}

int64_t correction_at(tare_text t, int64_t i)
{
    static const char *const openings[] = {"actually", "hmm", "however", "correction", "corrected", "oops", "sorry", "wait", "no,", "on second thought", "but wait", "but actually", NULL};
    for (int n = 0; n < 8 && i < t.size; n++) {
        i = next_sentence(t, i);
        for (const char *const *w = openings; *w && i < t.size; w++)
            if (text_lower(t.data[i]) == **w && text_starts(t, i, *w, true)) return i;
    }
    return -1;
}

bool is_restated(tare_text t, tare_text part)
{
    static const char *const verbs[] = {"is", "be", "equals", NULL};
    static const char *const nouns[] = {"it", "that", "this", "answer", "value", "count", "total", "number", "result", "should", "must", "correct", "sum", "probability", NULL};
    tare_text word[WORDS];
    int64_t at = part.data - t.data;
    while (at > 0 && strchr("$*({ ", t.data[at - 1])) at--;
    const int n = cut_words(text_slice(t, sentence_begin(t, at), at), word);
    if (n < 2 || !one_of(word[n - 1], verbs)) return false;
    for (int k = n - 2; k >= 0 && k > n - 9; k--)
        if (one_of(word[k], nouns)) return true;
    return false;
}
