/* Unigram model: every token has a score, the logarithm of its probability. Of all segmentations of
 * a text into tokens, it takes the one with the largest total score (Kudo 2018), found from left to
 * right (Viterbi). Internal to core/data. */
#ifndef TARE_CORE_DATA_UNIGRAM_H
#define TARE_CORE_DATA_UNIGRAM_H

#include "data/symbols.h"
#include "data/tokenizer.h"
#include "data/trie.h"

struct unigram {
    struct trie trie; /* maps contents to ids */
    double *scores;   /* [n] by id */
    int64_t n, capacity;
    double lowest;
};

/* Adds the token with this id in v. */
tare_status unigram_add(struct unigram *u, const struct vocab *v, int32_t id, double score, struct err *e);
void unigram_free(struct unigram *u);

struct unigram_scratch {
    struct unigram_end *ends;
    int64_t n_ends;
};
void unigram_scratch_free(struct unigram_scratch *s);

struct viterbi { /* inputs of an encoding */
    const struct unigram *unigram;
    const struct vocab *vocab;
    const struct symbols *symbols;
};
/* A run of characters that no token covers becomes its byte tokens or the unknown token. */
tare_status unigram_encode(const struct viterbi *m, struct unigram_scratch *s, tare_text piece, struct token_ids *out,
                           struct err *e);

#endif
