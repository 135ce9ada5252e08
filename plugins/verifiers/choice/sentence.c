/* Reads one sentence: whether it claims an option as the answer, calls one wrong, or takes the sentence
 * before back. */
#include "claim.h"
#include "common/words/sentences.h"

#include <string.h>

/* ---------------------------------------------------------------- claims of an option's text */

/* Returns the rest of the line, or of the sentence, behind token i. */
static tare_text rest_behind(const struct sentence *s, tare_text t, int i, bool line)
{
    const tare_text last = s->token[i].t;
    const int64_t at = last.data >= s->t.data && last.data < s->t.data + s->t.size ? last.data + last.size - t.data : -1;
    if (at < 0 || at > t.size) return (tare_text){"", 0};
    int64_t end = s->t.data + s->t.size - t.data;
    if (line)
        for (end = at; end < t.size && end < at + MAX_SENTENCE && t.data[end] != '\n';) end++;
    if (end < at) end = at;
    for (int64_t k = at; k < end; k++) /* up to a tag */
        if (t.data[k] == '<' && k + 1 < end && strchr("/|", t.data[k + 1])) end = k;
    return text_slice(t, at, end);
}

/* Returns whether an answer is announced right before what follows token i. */
static bool announces(const struct sentence *s, int i)
{
    if (token_mark(s, i, "#")) return true;
    if (token_mark(s, i, ":=-\n")) {
        int m = i;
        while (token_mark(s, m, ":=-\n.)") && i - m < NEAR) m--;
        if (m >= 0 && s->token[m].kind == T_OPTION) return false; /* a label: "Option A: w" */
        return has_noun(s, m + 1, token_mark(s, i, ":\n") ? 10 : 3);
    }
    if (token_is(s, i, LINKS)) return behind_link(s, i, s->n) == FULL_CLAIM;
    if (is_pick(s, i)) return true;
    uint64_t other = ANCHOR_ANY ^ ANCHOR_ENGLISH;
    if (!has_anchor(s, i, ANCHOR_LINK, &other)) return false;
    for (int k = i; k >= 0 && k > i - CLAUSE; k--) {
        uint64_t same = other;
        if (has_anchor(s, k, ANCHOR_NOUN, &same)) return true;
    }
    return false;
}

/* Reads an option by its text. exact: nothing may follow it. */
static char text_claimed(const struct options *o, const struct sentence *s, tare_text t, bool exact)
{
    enum { MOST = 4 }; /* announcements of a sentence that are tried */
    for (int i = s->n - 1, tried = 0; i >= 0 && tried < MOST; i--) {
        if (!announces(s, i)) continue;
        tried++;
        const tare_text line = rest_behind(s, t, i, true), rest = rest_behind(s, t, i, false);
        char letter = option_text(o, line, false);
        if (!letter) letter = option_text(o, rest, false);
        if (!letter && !exact) letter = option_text(o, rest, true);
        if (letter && !is_doubted(s, clause_begin(s, i), i) && !is_imagined(s, i)) return letter;
    }
    if (exact) return 0;
    for (int i = 1; i + 1 < s->n; i++) { /* "x is the answer" */
        if (!token_is(s, i, "is") || s->token[i].t.data < s->t.data) continue;
        int m = i + 1;
        while (token_is(s, m, "the|my|correct|right|best|final|only|most|therefore")) m++;
        const bool ends = m >= s->n || token_mark(s, m, ".!,") || token_is(s, m, "because|since|here");
        const bool said = token_is(s, m, "answer|choice|option") || (ends && token_is(s, m - 1, "correct|right|best"));
        if (!said || token_is(s, m + 1, "that|which")) continue;
        const int begin = clause_begin(s, i);
        const char *from = s->token[begin].t.data;
        if (from < s->t.data || from > s->token[i].t.data) continue;
        const char letter = option_text(o, (tare_text){from, s->token[i].t.data - from}, false);
        if (letter && !is_imagined(s, i)) return letter;
    }
    return 0;
}

/* ---------------------------------------------------------------- sentences */

/* Returns whether the sentence takes back the one before: "Wait", "No, that is wrong", "I made a
 * mistake". */
static bool takes_back(const struct sentence *s)
{
    int i = 0;
    if (sentence_takes_back(s->t)) return true;
    while (token_mark(s, i, "-,.>") || token_is(s, i, "hmm|hm|actually|oh|but|however|ah|well|ok|okay|and|yet")) i++;
    for (int k = i; k < s->n && k < i + 5 && !token_mark(s, k, ",;:"); k++) {
        const bool both = token_is(s, k, "that's|it's");
        if (!both && !(token_is(s, k, "that|this|it|which") && token_is(s, k + 1, "is|was|isn't|wasn't|can't|cannot|seems|turns")))
            continue;
        for (int m = k + 1; m < s->n && m < k + 6 && !token_mark(s, m, ",;:."); m++) {
            if (token_is(s, m, "wrong|incorrect|false|mistake|mistaken|error")) return !token_is(s, m - 1, "not");
            if (token_is(s, m, "right|correct|true") && (token_is(s, m - 1, "not|isn't|wasn't|n't|quite|be"))) return true;
            if (token_is(s, m, "because|that|option|to|for")) break;
        }
        return false;
    }
    return false;
}

/* A sentence of options and joining words only: "B", "**(B)**", "A and C", "B. colder". */
static void read_bare(const struct options *o, const struct sentence *s, tare_text t, int64_t begin, int64_t end, struct claim *c)
{
    int first = -1, last = -1;
    for (int i = 0; i < s->n; i++) {
        if (s->token[i].kind == T_OPTION) {
            if (first < 0) first = i;
            last = i;
        } else if (i == 0 && s->token[i].kind == T_NUMBER && token_mark(s, 1, ".)")) {
            continue; /* 1. B */
        } else if (s->token[i].kind != T_MARK && !token_is(s, i, "and|or|option|choice|answer|the|both")) {
            return;
        }
    }
    if (first < 0) return;
    for (int i = first; i <= last; i++)
        if (s->token[i].kind == T_OPTION && s->token[i].letter != s->token[first].letter) {
            c->kind = SAYS_SEVERAL;
            return;
        }
    int64_t after = end;
    while (after < t.size && strchr(" *_", t.data[after])) after++;
    const bool whole = (!begin || t.data[begin - 1] == '\n') &&
                       (after >= t.size || t.data[after] == '\n' || t.data[after - 1] == '\n' || t.data[end - 1] == '\n');
    c->letter = s->token[first].letter;
    const bool ends = after >= t.size && begin && t.data[begin - 1] != '\n'; /* "Let me think. B." */
    c->kind = !option_has(o, c->letter)            ? SAYS_NOTHING
              : whole || ends                      ? SAYS_ALONE
              : begin && t.data[begin - 1] != '\n' ? SAYS_NOTHING
                                                   : SAYS_LABEL;
}

/* Returns the beginning of the line before, if it announces an answer and nothing else: "Answer:",
 * "## Final answer". */
static int64_t heading_before(const struct options *o, tare_text t, int64_t begin)
{
    struct sentence s;
    int64_t end = begin, from;
    if (!begin || t.data[begin - 1] != '\n') return begin;
    while (end > 0 && text_is_space(t.data[end - 1])) end--;
    for (from = end; from > 0 && end - from < 120 && t.data[from - 1] != '\n';) from--;
    if (from > 0 && t.data[from - 1] != '\n') return begin;
    sentence_cut(o, text_slice(t, from, end), &s);
    int words = 0;
    bool noun = false, colon = false;
    for (int i = 0; i < s.n; i++) {
        words += s.token[i].kind != T_MARK;
        noun |= token_is(&s, i, "answer|choice|selection") || has_any(&s, i, ANCHOR_NOUN);
        if (s.token[i].kind == T_OPTION) return begin;
        colon = token_mark(&s, i, ":") || token_is(&s, i, "is");
    }
    return noun && (colon || words < 5) ? from : begin;
}

static void deny_options(const struct sentence *s, struct claim *c)
{
    for (int k = 0; k < s->n; k++) {
        if (s->token[k].kind != T_OPTION) continue;
        c->mentions = true;
        bool noun = false;
        const int j = before_fillers(s, k, &noun);
        const bool denied = (j < 0 || token_mark(s, j, ",;:\n") || token_is(s, j, "but|however|yet|and")) && is_denied_behind(s, k);
        const bool refused = token_is(s, j, "not") && has_noun(s, j, NEAR);
        if (denied || refused) c->denied |= 1u << (s->token[k].letter - 'A');
    }
}

struct claim claim_read(const struct options *o, tare_text t, int64_t begin, int64_t end)
{
    struct sentence s;
    struct claim c = {SAYS_NOTHING, 0, false, 0, false};
    const int64_t from = heading_before(o, t, begin);
    sentence_cut(o, text_slice(t, begin, end), &s);
    c.retracts = takes_back(&s);
    deny_options(&s, &c);
    if (from < begin) sentence_cut(o, text_slice(t, from, end), &s);
    for (int i = 0; i < s.n; i++)
        if (token_mark(&s, i, "?")) return c;
    for (int i = 0; c.mentions && i < s.n; i++) /* "but it could also be C" */
        if (token_is(&s, i, "could|might|may") && token_is(&s, i + 1, "also")) c.retracts = true;
    if ((c.letter = text_claimed(o, &s, t, true))) return c.kind = SAYS_ANSWER, c;
    for (int k = s.n - 1; k >= 0; k--) {
        if (s.token[k].kind != T_OPTION) continue;
        const enum strength claim = option_claimed(&s, k);
        if (!claim) continue;
        c.letter = s.token[k].letter;
        const tare_text at = s.token[k].t;
        const bool several = !option_has(o, c.letter) || names_second(&s, k) || names_earlier(&s, k) ||
                             labels_second(o, t, at.data + at.size - t.data, c.letter);
        c.kind = several ? SAYS_SEVERAL : claim == WEAK_CLAIM ? SAYS_WEAKLY : SAYS_ANSWER;
        for (int i = 0; i < k && !several; i++)
            if (token_is(&s, i, "also")) c.kind = SAYS_ALSO;
        return c;
    }
    for (int k = 1; k + 1 < s.n; k++) /* options B and C are right */
        if (s.token[k].kind == T_OPTION && token_is(&s, k + 1, "are") && token_is(&s, k + 2, "correct|right|both|true|valid") &&
            (token_is(&s, k - 1, "and") || token_mark(&s, k - 1, ",&")))
            return c.kind = SAYS_SEVERAL, c;
    if ((c.letter = text_claimed(o, &s, t, false))) return c.kind = SAYS_ANSWER, c;
    read_bare(o, &s, t, begin, end, &c);
    return c;
}

bool claim_refuses_box(const struct options *o, tare_text t, int64_t begin, int64_t end)
{
    struct sentence s;
    int64_t from = begin, to = end;
    while (from > 0 && begin - from < MAX_SENTENCE && !(from < begin && t.data[from - 1] == '\n')) {
        const int64_t at = sentence_begin(text_slice(t, 0, begin), begin);
        from = at;
        break;
    }
    while (to < t.size && strchr("}$*_ )", t.data[to])) to++;
    if (to < t.size) to = sentence_end(t, to);
    sentence_cut(o, text_slice(t, from, begin), &s);
    if (is_doubted(&s, clause_begin(&s, s.n), s.n) || is_imagined(&s, s.n)) return true;
    sentence_cut(o, text_slice(t, end, to), &s);
    for (int i = 0; i < s.n; i++)
        if (token_mark(&s, i, "?")) return true;
    return is_denied_behind(&s, -1) || is_hedged_behind(&s, -1);
}
