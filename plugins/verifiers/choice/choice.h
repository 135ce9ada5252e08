/* Internal to the choice verifier: finds the option that a text names. */
#ifndef TARE_CHOICE_H
#define TARE_CHOICE_H

#include "common/text.h"

enum { MAX_OPTIONS = 26 };

struct options {
    char letters[MAX_OPTIONS];
    int n, n_choices;
    tare_text choices[MAX_OPTIONS]; /* [n_choices] option texts */
    bool lowercase;
};

struct chosen {
    char letter;      /* 0: none */
    const char *rule; /* static text */
};

/* Reads a cleaned text (choice_clean). Pure. */
struct chosen choice_extract(const struct options *o, tare_text t);
char choice_of_gold(const struct options *o, tare_text answer);

/* Writes t, the text after the thought, to `to`, which has capacity for it, with blanks for
 * what is not the model's answer: programs in fences, struck out text, comments, control tokens. */
tare_text choice_clean(tare_text t, char *to);

/* ---------------------------------------------------------------- options, as they are written (options.c) */

/* OTHER: an answer, but not a single valid option: a letter out of range, or several */
enum named { NONE, ONE, OTHER };

bool option_has(const struct options *o, char letter);
/* Reads a text that should be one option and nothing else: the content of a box. */
enum named option_boxed(const struct options *o, tare_text t, char *letter);
/* Returns whether a line is one decorated letter. with_text: text may follow "B)" or "B.". */
bool option_line(const struct options *o, tare_text line, bool with_text, char *letter);
/* Returns the option with this text; 0: none, or several. loose: a reason, or the unit of a number,
 * may follow the text. */
char option_text(const struct options *o, tare_text t, bool loose);

/* ---------------------------------------------------------------- sentences (tokens.c) */

enum { MAX_SENTENCE = 600 };

enum token_kind { T_WORD, T_OPTION, T_NUMBER, T_MARK, T_SCRIPT /* a run of an unspaced script */ };

struct token {
    enum token_kind kind;
    tare_text t;
    char mark;   /* T_MARK: , ; : = - > ( ) | / & + . ? # \n; '>' is any arrow, '-' any dash */
    char letter; /* T_OPTION */
    bool marked; /* T_OPTION: in brackets, quotes, bold, or followed by ) . or : */
};

struct sentence {
    tare_text t;
    int n;
    struct token token[MAX_SENTENCE];
};

void sentence_cut(const struct options *o, tare_text t, struct sentence *s);
/* Returns where the sentence that ends at `end` begins. */
int64_t sentence_begin(tare_text t, int64_t end);
/* Returns where the sentence that holds position i ends. */
int64_t sentence_end(tare_text t, int64_t i);
bool token_is(const struct sentence *s, int i, const char *words); /* words: "is|was" */
bool token_mark(const struct sentence *s, int i, const char *marks);

/* ---------------------------------------------------------------- claims (claim.c) */

enum claim_kind {
    SAYS_NOTHING,
    SAYS_ALONE,   /* a line with nothing but the option: an answer if no other line says otherwise */
    SAYS_LABEL,   /* an option and its text, as in a list of options */
    SAYS_WEAKLY,  /* "so B": an answer, but not against a box */
    SAYS_ANSWER,  /* the answer is B */
    SAYS_SEVERAL, /* an answer that is not one option */
    SAYS_ALSO,    /* one more option */
    SAYS_BACK     /* the sentence before is wrong */
};

struct claim {
    enum claim_kind kind;
    char letter;
    bool retracts;   /* it also takes back the sentence before */
    uint32_t denied; /* options that it calls wrong, by bits from A */
    bool mentions;   /* it names options */
};

struct claim claim_read(const struct options *o, tare_text t, int64_t begin, int64_t end);
/* Returns whether the words around a box make it no answer: denied, reported, imagined, asked. */
bool claim_refuses_box(const struct options *o, tare_text t, int64_t begin, int64_t end);

#endif
