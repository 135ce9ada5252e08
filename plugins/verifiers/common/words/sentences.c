#include "common/words/sentences.h"

#include <string.h>

enum { MOST = 12 }; /* words and marks at the beginning of a sentence that are read */

/* The words of the beginning of a sentence in order, each mark as a word of one character. */
struct opening {
    tare_text word[MOST];
    int n;
};

static void cut_opening(struct opening *o, tare_text t)
{
    o->n = 0;
    for (int64_t i = 0; i < t.size && o->n < MOST;) {
        int64_t k = i;
        while (k < t.size && (text_is_letter(t.data[k]) || (k > i && t.data[k] == '\''))) k++;
        if (k == i && text_starts(t, i, "\xE2\x80\x94", false)) k = i + 3; /* a dash */
        if (k > i || strchr(",.;:-!?", t.data[i])) o->word[o->n++] = text_slice(t, i, k > i ? k : i + 1);
        i = k > i ? k : i + 1;
    }
}

static bool is(const struct opening *o, int i, const char *words) /* words: "is|was" */
{
    for (const char *w = words; i < o->n && *w;) {
        const size_t n = strcspn(w, "|");
        if (text_equal(o->word[i], (tare_text){w, (int64_t)n}, true)) return true;
        w += n + (w[n] != 0);
    }
    return false;
}

static bool is_mark(const struct opening *o, int i)
{
    return i < o->n && !text_is_letter(o->word[i].data[0]);
}

bool sentence_takes_back(tare_text t)
{
    struct opening o;
    cut_opening(&o, t);
    int i = 0;
    while (is_mark(&o, i) || is(&o, i, "hmm|hm|actually|oh|but|however|ah|well|ok|okay|and|yet|um|uh")) i++;
    if (is(&o, i, "wait|oops|scratch|correction")) return true;
    if (is(&o, i, "no|sorry|nope"))
        return i + 1 >= o.n || is_mark(&o, i + 1) || is(&o, i + 1, "wait|oops|scratch|correction|that|that's|it's|it|i|this");
    if (is(&o, i, "on") && is(&o, i + 1, "second") && is(&o, i + 2, "thought")) return true;
    if (!is(&o, i, "i")) return false;
    if (is(&o, i + 1, "misread|miscounted|mistook|miscalculated")) return true;
    return is(&o, i + 1, "made|was") &&
           (is(&o, i + 2, "wrong|mistaken") || is(&o, i + 3, "mistake|error") || is(&o, i + 4, "mistake|error"));
}

/* Returns the size of the quotation mark at i; 0: none. */
static int64_t quote_at(tare_text t, int64_t i)
{
    return t.data[i] == '"' ? 1 : text_starts(t, i, "\xE2\x80\x9C", false) || text_starts(t, i, "\xE2\x80\x9D", false) ? 3 : 0;
}

bool sentence_quotes(tare_text t, int64_t from, int64_t begin, int64_t end)
{
    static const char *const leads[] = {"as", "like", "format", "with", "form", "say", "sentence", "phrase", NULL};
    int64_t open = -1, inside = -1;
    for (int64_t i = from; i < begin; i++) {
        const int64_t size = quote_at(t, i);
        if (!size) continue;
        inside = i + size;
        open = open < 0 ? i : -1;
    }
    if (open < 0 || begin - inside < 4) return false; /* "4" */
    while (end < t.size && strchr("$*_) ,.!", t.data[end])) end++;
    if (end >= t.size || !quote_at(t, end)) return false;
    for (end += quote_at(t, end); end < t.size && t.data[end] == ' ';) end++;
    if (end < t.size && text_is_letter(t.data[end])) return true;
    while (open > from && strchr(" :", t.data[open - 1])) open--;
    int64_t word = open;
    while (word > from && text_is_letter(t.data[word - 1])) word--;
    for (const char *const *w = leads; *w; w++)
        if (text_equal(text_slice(t, word, open), text_of(*w), true)) return true;
    return false;
}

int64_t sentence_start(tare_text t, int64_t i, int64_t most)
{
    const int64_t far = i > most ? i - most : 0;
    for (; i > far && t.data[i - 1] != '\n'; i--) {
        const bool stop = i > 1 && text_is_space(t.data[i - 1]) && strchr(".?!", t.data[i - 2]);
        const bool short_word = stop && i > 4 && t.data[i - 2] == '.' && t.data[i - 4] == '.' && text_is_letter(t.data[i - 3]);
        if (stop && !short_word) break;
    }
    return i;
}

int64_t sentence_sign(tare_text t, int64_t i)
{
    const unsigned char *p = (const unsigned char *)t.data + i;
    const int64_t left = t.size - i;
    if (p[0] < 0xC2 || left < 2) return 0;
    if (p[0] == 0xC2) return 2;
    if (p[0] >= 0xF0) return p[0] == 0xF0 && left > 3 && p[1] == 0x9F ? 4 : 0; /* U+1F000 and on */
    if (left < 3) return 0;
    if (p[0] == 0xE2) return p[1] < 0xB0 ? 3 : 0; /* U+2000 to U+2BFF */
    if (p[0] == 0xE3) return p[1] == 0x80 ? 3 : 0;
    if (p[0] != 0xEF) return 0;
    const bool hidden = (p[1] == 0xBB && p[2] == 0xBF) || (p[1] == 0xB8 && p[2] < 0x90); /* BOM, U+FE00 to U+FE0F */
    return hidden || (p[1] == 0xBC && p[2] < 0x90) || (p[1] == 0xBC && p[2] > 0x99 && p[2] < 0xA1) ? 3 : 0;
}
