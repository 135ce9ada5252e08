/* What a scan of a completion finds: boxes, formulas and the words that announce an answer. */
#ifndef TARE_MATH_SCAN_H
#define TARE_MATH_SCAN_H

#include "math.h"

enum { KEPT = 64 };

struct span {
    int64_t begin, end; /* with its delimiters */
    int64_t inner, inner_end;
};

struct scan {
    tare_text t;
    struct span box[2 * KEPT], env[2 * KEPT]; /* the last ones, oldest first */
    int boxes, envs;
    int64_t final_at, answer_at; /* after the last anchor; -1: none */
    int64_t open_box;            /* start of the last box that is never closed; -1: none */
    int64_t open_formula;        /* start of a formula that is never closed; -1: none */
    bool hope;                   /* "I hope it is correct" follows the final answer */
    int64_t comments_end;        /* end of the last HTML comment; each <!-- before it is closed */
};

static inline bool at_text(tare_text t, int64_t i, const char *s)
{
    return text_starts(t, i, s, false);
}

/* Returns the end of the HTML comment that starts at i, which is invisible to a reader; i: none. */
static inline int64_t after_comment(const struct scan *s, int64_t i)
{
    if (s->t.data[i] != '<' || i >= s->comments_end || !at_text(s->t, i, "<!--")) return i;
    int64_t k = i + 4;
    while (k < s->comments_end && !at_text(s->t, k, "-->")) k++;
    return k < s->comments_end ? k + 3 : i;
}

/* ---------------------------------------------------------------- boxes and formulas (marks.c) */

void find_boxes(struct scan *s);
void find_environments(struct scan *s); /* $..$, \(..\), \[..\] */

/* ---------------------------------------------------------------- anchors (anchor.c) */

int64_t skip_filler(tare_text t, int64_t i);
/* Sets final_at, answer_at and hope. */
void find_anchors(struct scan *s);
/* Finds the last value that a word of another language announces: "Antwort: 12", "答案是 12". false:
 * none; out->refused: it says that there are several, or that it is not sure. */
bool take_foreign(const struct scan *s, struct found *out);

/* ---------------------------------------------------------------- texts that were cut off (unfinished.c) */

/* Returns whether the text stops in the middle: after an operator, a conjunction, a preposition or an article. */
bool is_unfinished(tare_text t);
/* Returns whether the digits that end at i are the label of a list's item: "2. Then add". */
bool is_list_label(tare_text t, int64_t first, int64_t i);
/* Returns the text without a last line that only speaks to the reader: "Let me know if ...". */
tare_text without_closing(tare_text t);
/* Returns the text without a clause at its end that holds no answer: "because 4 buses are too few", ", not 4". *keep: the clause still says under which
 * condition the answer holds. */
tare_text main_clause(const struct scan *s, tare_text t, bool *keep);
/* Returns whether the text asks for a value instead of giving it: "Find x", "What is 3 + 4?". */
bool is_request(tare_text t);

/* ---------------------------------------------------------------- corrections (doubt.c) */

/* Returns whether the sentence around a box reports, imagines or asks about it. */
bool is_reported(tare_text t, int64_t begin, int64_t end);
/* Returns whether one of the next sentences says that the answer before i was a mistake. */
bool is_regretted(tare_text t, int64_t i);
/* Returns the start of the sentence behind i that begins as a correction does; -1: none. */
int64_t correction_at(tare_text t, int64_t i);
/* Returns whether the words in front of the value state it: "it is 5", "the correct count is 5". */
bool is_restated(tare_text t, tare_text part);

#endif
