/* Cutting text into the pieces that BPE works on. Each matcher gives the end of the first piece of [p, end) under one of the three
 * regular expressions of the known families; they are hand-written (a regex engine is an order of magnitude slower) and tested against
 * PCRE2. Any other expression runs on PCRE2. Internal to the data folder. Text is valid UTF-8. */
#ifndef TARE_CORE_PRETOKENIZE_H
#define TARE_CORE_PRETOKENIZE_H

#include "base/err.h"

#include <stdbool.h>

typedef const unsigned char *(*piece_matcher)(const unsigned char *p, const unsigned char *end);

extern const char PATTERN_GPT2[], PATTERN_QWEN2[], PATTERN_LLAMA3[];
const unsigned char *match_gpt2(const unsigned char *p, const unsigned char *end);
const unsigned char *match_qwen2(const unsigned char *p, const unsigned char *end);
const unsigned char *match_llama3(const unsigned char *p, const unsigned char *end);

enum split_kind { SPLIT_MATCHER, SPLIT_PCRE, SPLIT_DIGITS };

struct split { /* one step of the pre-tokenizer; every piece of a step goes through the next one */
    enum split_kind kind;
    piece_matcher match;            /* SPLIT_MATCHER */
    struct pcre2_real_code_8 *code; /* SPLIT_PCRE */
    bool individual;                /* SPLIT_DIGITS: each numeric character on its own */
};

/* Chooses a matcher for a known expression, else compiles it. literal: the pattern is a plain string. */
tare_status split_regex(const char *pattern, int64_t n, bool literal, const char *where, struct split *out, struct err *e);
void split_free(struct split *s);

typedef tare_status (*piece_sink)(void *ctx, const unsigned char *text, int64_t n, struct err *e);

struct pretokenizer {
    const struct split *steps; /* [n_steps] */
    int64_t n_steps;
    piece_sink sink;
    void *ctx; /* of the sink */
};
/* Calls the sink with every piece of text, in order. */
tare_status pretokenize(const struct pretokenizer *p, const unsigned char *text, int64_t n, struct err *e);

#endif
