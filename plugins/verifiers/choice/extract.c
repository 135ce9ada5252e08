/* Finds the option that a text names: the last box, else the last claim, else a line that is only
 * an option. */
#include "choice.h"

#include <string.h>

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

/* Returns the option that the first line opens with, "B. colder than" or "(B) colder", if no later
 * line opens with another one. */
static char only_option_line(const struct options *o, tare_text t)
{
    char first = 0;
    const int64_t one = line_end(t, 0);
    if (one && t.data[one - 1] == '?') return 0; /* an echo of the question */
    for (int64_t i = 0; i < t.size; i = line_end(t, i) + 1) {
        const int64_t end = i + 18 < t.size ? i + 18 : t.size;
        int64_t k = i;
        while (k < end && strchr("$*_\"'`([ -", t.data[k])) k++;
        if (text_starts(t, k, "option ", true) || text_starts(t, k, "choice ", true)) k += 7;
        const bool opens = k + 1 < end + 7 && k + 1 < t.size && option_has(o, t.data[k]) && strchr(".):]*", t.data[k + 1]);
        if (!opens && !i) return 0;
        if (opens && i && t.data[k] != first) return 0;
        if (!i) first = t.data[k];
    }
    return first;
}

/* Returns whether the line labels options other than `first`: "A. w B. x". */
static bool labels_another(const struct options *o, tare_text t, char first)
{
    for (int64_t i = 0; i + 3 < t.size; i++)
        if (t.data[i] == ' ' && option_has(o, t.data[i + 1]) && t.data[i + 1] != first && strchr(".):", t.data[i + 2]) &&
            t.data[i + 3] == ' ')
            return true;
    return false;
}

/* Text read so far, from its end to its beginning. */
struct reading {
    char letter;     /* of the last claim */
    bool found;      /* a claim, or several options */
    bool taken_back; /* the sentence behind took this one back */
    int patience;    /* sentences for which it holds */
    uint32_t denied;
    char alone;       /* the last line that is only an option; 0: none */
    int64_t alone_at; /* where it begins */
    bool alone_mixed; /* lines of several options */
};

static void take_alone(struct reading *r, struct claim c, int64_t begin)
{
    if (!r->alone) {
        r->alone = c.letter;
        r->alone_at = begin;
    } else if (r->alone != c.letter) {
        r->alone_mixed = true;
    }
}

/* Reads the sentences from the end to `from`. boxed: a box precedes them, so that only an answer that
 * is called one counts. */
static const char *read_back(const struct options *o, tare_text t, int64_t from, bool boxed, struct reading *r)
{
    bool also = false;
    char second = 0;
    for (int64_t end = t.size; end > from && !r->found;) {
        int64_t begin = sentence_begin(t, end);
        if (begin < from) begin = from;
        const struct claim c = claim_read(o, t, begin, end);
        const bool claims = c.kind == SAYS_ANSWER || c.kind == SAYS_SEVERAL || c.kind == SAYS_ALSO ||
                            (c.kind == SAYS_WEAKLY && (!boxed || c.retracts));
        if (r->taken_back && (claims || c.kind == SAYS_ALONE || c.kind == SAYS_LABEL))
            return r->found = true, "an answer that the next sentence takes back";
        if (claims && c.kind != SAYS_SEVERAL && (r->denied >> (c.letter - 'A') & 1))
            return r->found = true, "an answer that is denied later";
        if (claims && also && c.letter != second) return r->found = true, "a phrase that names several options, or none of them";
        if (c.kind == SAYS_SEVERAL) return r->found = true, "a phrase that names several options, or none of them";
        if (c.kind == SAYS_ALSO && claims && !also) {
            also = true;
            second = c.letter;
        } else if (claims) {
            r->found = true;
            r->letter = c.letter;
            return "the last phrase that names an option";
        } else if (c.kind == SAYS_ALONE) {
            take_alone(r, c, begin);
        }
        if (c.retracts) {
            r->taken_back = true;
            r->patience = 3;
        } else if (r->taken_back && (c.mentions || !r->patience--)) {
            r->taken_back = false;
        }
        r->denied |= c.denied;
        end = begin;
    }
    if (also) {
        r->found = true;
        r->letter = second;
        return "the last phrase that names an option";
    }
    return NULL;
}

static struct chosen choose(char letter, const char *rule)
{
    return (struct chosen){letter, rule};
}

/* Decides by the last box that is an answer; false: there is none. */
static bool read_boxes(const struct options *o, tare_text t, struct chosen *c)
{
    enum { MOST = 8 };
    tare_text cut, all = t;
    char letter = 0;
    for (int k = 0; k < MOST; k++) {
        const tare_text box = last_box(all, &cut);
        if (!k && cut.size >= 0 && option_line(o, cut, false, &letter))
            return *c = choose(letter, "a box that is not closed, with nothing but the option"), true;
        if (!k && cut.size >= 0 && box.size >= 0) return *c = choose(0, "a box that was cut off, after another one"), true;
        if (box.size < 0) return false;
        int64_t begin = box.data - t.data;
        const int64_t end = begin + box.size + 1;
        while (begin > 0 && t.data[begin] != '\\') begin--;
        int64_t tail = end;
        while (tail < t.size && strchr("}$*_ ).,", t.data[tail])) tail++;
        struct reading r = {0};
        const char *rule = !k ? read_back(o, t, tail < t.size ? sentence_end(t, tail - (tail > end)) : tail, true, &r) : NULL;
        if (r.found) return *c = choose(r.letter, rule), true;
        if (!k && r.taken_back) return *c = choose(0, "a box that the next sentence takes back"), true;
        if (!claim_refuses_box(o, t, begin, end)) {
            const bool one = option_boxed(o, box, &letter) == ONE || (letter = option_text(o, box, true));
            const char said = option_text(o, box, false);
            if (said && box.size > 1) letter = said;
            *c = one || said ? choose(letter, "the last box") : choose(0, "a box without one option");
            if (c->letter && (r.denied >> (c->letter - 'A') & 1)) *c = choose(0, "a box that is denied later");
            return true;
        }
        all = text_slice(all, 0, begin);
    }
    return false;
}

struct chosen choice_extract(const struct options *o, tare_text t)
{
    struct chosen c;
    struct reading r = {0};
    char letter = 0;
    if (read_boxes(o, t, &c)) return c;
    const char *rule = read_back(o, t, 0, false, &r);
    if (r.found) return choose(r.letter, rule);
    const int64_t first = line_end(t, 0);
    if (first >= t.size && option_line(o, t, true, &letter) && !labels_another(o, t, letter) && !(r.denied >> (letter - 'A') & 1))
        return choose(letter, "the whole text");
    int64_t last = t.size;
    while (last > 0 && t.data[last - 1] != '\n') last--;
    if (r.alone && !r.alone_mixed) return choose(r.alone, "a line that is only an option");
    if (r.alone_mixed && r.alone_at >= last && last > 0) {
        int64_t before = last - 1;
        while (before > 0 && t.data[before - 1] != '\n') before--;
        if (!option_line(o, text_slice(t, before, last), false, &letter)) return choose(r.alone, "the last line");
    }
    if (r.alone) return choose(0, "lines of several options");
    if ((letter = only_option_line(o, t)) && !labels_another(o, text_slice(t, 0, first), letter))
        return choose(letter, "the first line, and no other option after it");
    if ((letter = option_text(o, t, true))) return choose(letter, "the text of an option");
    if (last > 0 && (letter = option_text(o, text_slice(t, last, t.size), false))) return choose(letter, "the text of an option");
    return choose(0, "no option is named");
}

char choice_of_gold(const struct options *o, tare_text answer)
{
    char letter = 0;
    tare_text cut;
    const tare_text box = last_box(answer, &cut);
    const tare_text t = text_trim(box.size >= 0 ? box : answer);
    if (option_line(o, t, false, &letter)) return letter;
    if ((letter = option_text(o, t, false))) return letter;
    return option_line(o, t, true, &letter) ? letter : 0;
}
