/* Splits text into the pieces that the model encodes. A matcher returns the end of the first piece
 * of [p, end) under one of the three regular expressions of the known families. The matchers are
 * hand-written (a regex engine is an order of magnitude slower) and tested against PCRE2; any other
 * expression runs on PCRE2. Internal to core/data. Text is valid UTF-8. */
#ifndef TARE_CORE_DATA_PRETOKENIZE_H
#define TARE_CORE_DATA_PRETOKENIZE_H

#include "data/regex.h"

typedef const unsigned char *(*piece_matcher)(const unsigned char *p, const unsigned char *end);

extern const char PATTERN_GPT2[], PATTERN_QWEN2[], PATTERN_LLAMA3[];
const unsigned char *pretokenize_gpt2(const unsigned char *p, const unsigned char *end);
const unsigned char *pretokenize_qwen2(const unsigned char *p, const unsigned char *end);
const unsigned char *pretokenize_llama3(const unsigned char *p, const unsigned char *end);

/* Returns whether `tokenizers` treats the character as white space: Unicode's property
 * White_Space. */
bool pretokenize_is_space(int32_t c);

enum split_kind { SPLIT_MATCHER, SPLIT_REGEX, SPLIT_DIGITS, SPLIT_WHITE_SPACE, SPLIT_METASPACE };
/* A match becomes a separate piece, is removed, ends the piece before it, or begins the one after
 * it. */
enum split_behavior { SPLIT_ISOLATED, SPLIT_REMOVED, SPLIT_WITH_PREVIOUS, SPLIT_WITH_NEXT };
enum metaspace_prefix { PREFIX_ALWAYS, PREFIX_FIRST, PREFIX_NEVER };

struct split { /* one step of the pre-tokenizer; the next step splits each of its pieces */
    enum split_kind kind;
    piece_matcher match; /* SPLIT_MATCHER */
    struct regex regex;  /* SPLIT_REGEX */
    enum split_behavior behavior;
    bool individual; /* SPLIT_DIGITS: each numeric character separately */
    struct metaspace {
        char mark[5]; /* one character that replaces a space */
        int mark_size;
        /* put a mark in front of every text, the first text, or none */
        enum metaspace_prefix prefix;
        bool cut; /* begin a piece at each mark */
    } metaspace;
};

/* Chooses the matcher of a known expression, or compiles the expression. literal: the pattern is a
 * plain string. */
tare_status pretokenize_regex(const char *pattern, int64_t n, bool literal, const char *where, struct split *out, struct err *e);
void pretokenize_free(struct split *s);

typedef tare_status (*piece_sink)(void *ctx, const unsigned char *text, int64_t n, struct err *e);

struct pretokenizer {
    const struct split *steps; /* [n_steps] */
    int64_t n_steps;
    piece_sink sink;
    void *ctx;                  /* argument of the sink */
    const unsigned char *first; /* start of the whole text; NULL: this is a later part of it */
};
/* Calls the sink with each piece of text, in order. */
tare_status pretokenize(const struct pretokenizer *p, const unsigned char *text, int64_t n, struct err *e);

#endif
