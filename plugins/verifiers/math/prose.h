/* English around and inside an answer, as mathematics: "the point is (1, 2)", "x is at least three", "1 in 4". */
#ifndef TARE_MATH_PROSE_H
#define TARE_MATH_PROSE_H

#include "math.h"

enum { PROSE_BYTES = 600, PROSE_ITEMS = 96, PROSE_NAMES = 160 };

enum role {
    ROLE_OPEN,    /* a word of the open classes: a name in front of a value, what is counted after one */
    ROLE_DROP,    /* says nothing about the value: articles, pronouns, auxiliaries, "approximately" */
    ROLE_IS,      /* is, equals */
    ROLE_TEX,     /* stands for its TeX: minus, squared, infinity */
    ROLE_RELATE,  /* its TeX is a relation */
    ROLE_RATIO,   /* between two whole numbers a fraction: 1 in 4; else as ROLE_DROP */
    ROLE_BASE,    /* in base 8 */
    ROLE_BETWEEN, /* between 1 and 2 */
    ROLE_CLOSED,  /* inclusive */
    ROLE_BOUND,   /* or more: its TeX is the relation of the value before it to what is meant */
    ROLE_EXCEPT,  /* what follows is taken out */
    ROLE_SET,     /* its TeX is a set; a letter after it is the variable */
    ROLE_JOINT,   /* and, or */
    ROLE_WHERE,   /* what follows is a condition */
    ROLE_REASON,  /* what follows explains the value */
    ROLE_THEN,    /* what comes before is a premise */
    ROLE_NOT,     /* negates, or takes out: not, isn't, hardly, instead of */
    ROLE_FALSE,   /* judges: wrong, incorrect */
    ROLE_REFUSED, /* changes the value in a way that is not read: almost, between, twice */
};

/* The role of the longest phrase at the start of the words; *used: its words, *tex: what it stands for. */
enum role phrase_role(const tare_text *words, int n, int *used, const char **tex);
bool is_in_phrase(tare_text w); /* the out of "out of" */
bool is_auxiliary(tare_text w); /* has, would: a verb, so that a clause about the value begins when it stands after one */
/* May the value stand right after w, which is no verb of being and no sign, and still be what is meant? "the point (1, 2)", "costs 5"; after a
 * preposition: by the noun or verb that governs it, "an area of 5", "rounds to 5". Other words may change it: beyond 5, the square of 5. */
bool may_precede(tare_text governor, tare_text w);
bool only_introduces(tare_text t); /* words of which none denies, judges or changes what follows: "The area is" */
bool is_kind_noun(tare_text w);    /* triangle, series: words that say less than the one beside them */
bool is_answer_noun(tare_text w);  /* answer, total, value: names that name nothing */

/* denial.c. Is the part of t governed by a negation, or judged to be wrong? */
bool is_denied(tare_text t, tare_text part);
/* operated.c. Do the words after the number that part starts with compute with it or compare it? Does another number take its place after it? */
bool is_multiple(tare_text w); /* 12 gross, four score, 3 tenths */
bool is_corrected(tare_text t, tare_text part);
bool is_operated(tare_text t, tare_text part);
bool is_month(tare_text w); /* dates.c */
/* claim.c. Does the sentence around part, where it speaks of the answer, say that part is it? guess: no anchor led to it. */
bool is_claimed(tare_text t, tare_text part, bool guess);
bool states_words(tare_text t);                 /* is a text without a value one word, or a sentence that says what something is? */
bool is_retracted(tare_text t, tare_text part); /* the sentence after it takes it back */

bool is_bound(tare_text front);    /* "at least", "nearly", and nothing else in front of a number */
bool is_qualified(tare_text tail); /* after a number: "if x > 0, otherwise 7", "or maybe 7" */

struct prose_item {
    tare_text t;
    bool word, text, stop; /* text: from \text{}; stop: the end of a sentence */
};

struct prose_cut {
    struct prose_item items[PROSE_ITEMS];
    int n, nested; /* nested: boxes in boxes */
    bool refused;  /* too much, or what cannot be read */
};

void cut_prose(struct prose_cut *out, tare_text t);

struct prose {
    char tex[2 * PROSE_BYTES];
    int64_t size;
    char names[PROSE_NAMES]; /* the words in front of the value */
    int64_t n_names;
    bool value;     /* there is one; else the words are the answer */
    bool bare_name; /* no sign stands between names and value: April 5 */
    bool no_words;  /* nothing to read: s as it is */
};

/* s, folded, with its words read; numbers: those in words, too. false: it has none, or they say what cannot be read. */
bool read_prose(const char *s, int64_t n, bool numbers, struct prose *out);

#endif
