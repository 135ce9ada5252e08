/* Cutting text into the pieces that BPE works on. Each matcher gives the end of the first piece of [p, end) under one of the three
 * regular expressions of the known families; they are hand-written (a regex engine is an order of magnitude slower) and tested against
 * PCRE2. Any other expression runs on PCRE2. Internal to the data folder. Text is valid UTF-8. */
#ifndef TARE_CORE_DATA_PRETOKENIZE_H
#define TARE_CORE_DATA_PRETOKENIZE_H

#include "data/regex.h"

typedef const unsigned char *(*piece_matcher)(const unsigned char *p, const unsigned char *end);

extern const char PATTERN_GPT2[], PATTERN_QWEN2[], PATTERN_LLAMA3[];
const unsigned char *pretokenize_gpt2(const unsigned char *p, const unsigned char *end);
const unsigned char *pretokenize_qwen2(const unsigned char *p, const unsigned char *end);
const unsigned char *pretokenize_llama3(const unsigned char *p, const unsigned char *end);

/* What tokenizers mean by white space: Unicode's property White_Space. */
bool pretokenize_is_space(int32_t c);

enum split_kind { SPLIT_MATCHER, SPLIT_REGEX, SPLIT_DIGITS, SPLIT_WHITE_SPACE, SPLIT_METASPACE };
/* What becomes of a match: a piece of its own, nothing, the end of the piece before it, the beginning of the one after it. */
enum split_behavior { SPLIT_ISOLATED, SPLIT_REMOVED, SPLIT_WITH_PREVIOUS, SPLIT_WITH_NEXT };
enum metaspace_prefix { PREFIX_ALWAYS, PREFIX_FIRST, PREFIX_NEVER };

struct split { /* one step of the pre-tokenizer; every piece of a step goes through the next one */
    enum split_kind kind;
    piece_matcher match; /* SPLIT_MATCHER */
    struct regex regex;  /* SPLIT_REGEX */
    enum split_behavior behavior;
    bool individual; /* SPLIT_DIGITS: each numeric character on its own */
    struct metaspace {
        char mark[5]; /* one character: stands for a space */
        int mark_size;
        enum metaspace_prefix prefix; /* a mark is put in front of every text, of the first, of none */
        bool cut;                     /* a piece begins at each mark */
    } metaspace;
};

/* Chooses a matcher for a known expression, else compiles it. literal: the pattern is a plain string. */
tare_status pretokenize_regex(const char *pattern, int64_t n, bool literal, const char *where, struct split *out, struct err *e);
void pretokenize_free(struct split *s);

typedef tare_status (*piece_sink)(void *ctx, const unsigned char *text, int64_t n, struct err *e);

struct pretokenizer {
    const struct split *steps; /* [n_steps] */
    int64_t n_steps;
    piece_sink sink;
    void *ctx;                  /* of the sink */
    const unsigned char *first; /* where the whole text begins; NULL: this is a later part of it */
};
/* Calls the sink with every piece of text, in order. */
tare_status pretokenize(const struct pretokenizer *p, const unsigned char *text, int64_t n, struct err *e);

#endif
