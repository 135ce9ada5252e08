/* Reads English around and inside an answer as mathematics: "the point is (1, 2)", "x is at least
 * three", "1 in 4". */
#ifndef TARE_MATH_PROSE_H
#define TARE_MATH_PROSE_H

#include "math.h"

enum { PROSE_BYTES = 600, PROSE_ITEMS = 96, PROSE_NAMES = 160 };

enum role {
    ROLE_OPEN,    /* an open-class word: a name before a value, or what is counted after one */
    ROLE_DROP,    /* no effect on the value: articles, pronouns, auxiliaries, "approximately" */
    ROLE_IS,      /* is, equals */
    ROLE_TEX,     /* replaced by its TeX: minus, squared, infinity */
    ROLE_RELATE,  /* its TeX is a relation */
    ROLE_RATIO,   /* between two integers a fraction: 1 in 4; else as ROLE_DROP */
    ROLE_BASE,    /* in base 8 */
    ROLE_BETWEEN, /* between 1 and 2 */
    ROLE_CLOSED,  /* inclusive */
    ROLE_BOUND,   /* or more: its TeX is the relation of the preceding value to the one meant */
    ROLE_EXCEPT,  /* the following text is excluded */
    ROLE_SET,     /* its TeX is a set; a letter after it is the variable */
    ROLE_JOINT,   /* and, or */
    ROLE_WHERE,   /* a condition follows */
    ROLE_REASON,  /* an explanation of the value follows */
    ROLE_THEN,    /* the text before is a premise */
    ROLE_NOT,     /* negates or excludes: not, isn't, hardly, instead of */
    ROLE_FALSE,   /* a judgement: wrong, incorrect */
    ROLE_REFUSED, /* changes the value in an unsupported way: almost, between, twice */
};

/* Returns the role of the longest phrase at the start of the words; *used: its words, *tex: its
 * replacement. */
enum role phrase_role(const tare_text *words, int n, int *used, const char **tex);
bool is_in_phrase(tare_text w); /* true for a word inside a phrase: the out of "out of" */
/* Returns true for an auxiliary verb (has, would): after a value it begins a clause about it. */
bool is_auxiliary(tare_text w);
/* Returns true if the value may directly follow w, which is neither a verb of being nor a sign, and
 * remain unchanged: "the point (1, 2)", "costs 5". After a preposition the noun or verb that
 * governs it decides: "an area of 5", "rounds to 5". Other words may change the value: beyond 5,
 * the square of 5. */
bool may_precede(tare_text governor, tare_text w);
/* returns true if no word denies, rejects or changes the following text: "The area is" */
bool only_introduces(tare_text t);
bool is_kind_noun(tare_text w);   /* triangle, series: words less specific than the adjacent one */
bool is_answer_noun(tare_text w); /* answer, total, value: names without content */

/* denial.c: returns true if part of t is negated or called wrong. */
bool is_denied(tare_text t, tare_text part);
/* operated.c: return true if the words after the number at the start of part operate on it or
 * compare it, or if another number replaces it. */
bool is_multiple(tare_text w); /* 12 gross, four score, 3 tenths */
bool is_corrected(tare_text t, tare_text part);
bool is_operated(tare_text t, tare_text part);
bool is_month(tare_text w); /* dates.c */
/* claim.c: returns true unless the sentence around part mentions the answer and does not say that
 * part is it. guess: no anchor led to part. */
bool is_claimed(tare_text t, tare_text part, bool guess);
/* returns true if a text without a value is one word or a definition ("It is an ellipse.") */
bool states_words(tare_text t);
bool is_retracted(tare_text t, tare_text part); /* true if the next sentence retracts part */

bool is_bound(tare_text front);    /* "at least", "nearly", alone before a number */
bool is_qualified(tare_text tail); /* after a number: "if x > 0, otherwise 7", "or maybe 7" */

struct prose_item {
    tare_text t;
    bool word, text, stop; /* text: from \text{}; stop: the end of a sentence */
};

struct prose_cut {
    struct prose_item items[PROSE_ITEMS];
    int n, nested; /* nested: nested boxes */
    bool refused;  /* too long, or unreadable */
};

void cut_prose(struct prose_cut *out, tare_text t);

struct prose {
    char tex[2 * PROSE_BYTES];
    int64_t size;
    char names[PROSE_NAMES]; /* the words before the value */
    int64_t n_names;
    bool value;     /* there is a value; otherwise the words are the answer */
    bool bare_name; /* no sign between names and value: April 5 */
    bool no_words;  /* nothing to read: s is unchanged */
};

/* Reads s, which is folded, with its words. numbers: also reads numbers in words. false: s has no
 * words, or they cannot be read. */
bool read_prose(const char *s, int64_t n, bool numbers, struct prose *out);

#endif
