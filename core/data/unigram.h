/* A unigram model of pieces: every token has a score, the logarithm of its probability, and of all ways to write a text as tokens the one
 * with the largest sum of scores is taken (Kudo 2018), found from left to right (Viterbi). Internal to the data folder. */
#ifndef TARE_CORE_DATA_UNIGRAM_H
#define TARE_CORE_DATA_UNIGRAM_H

#include "data/symbols.h"
#include "data/tokenizer.h"
#include "data/trie.h"

struct unigram {
    struct trie trie; /* of the tokens, by id */
    double *scores;   /* [n] by id */
    int64_t n, capacity;
    double lowest;
};

/* The token that v has as id. */
tare_status unigram_add(struct unigram *u, const struct vocab *v, int32_t id, double score, struct err *e);
void unigram_free(struct unigram *u);

struct unigram_scratch {
    struct unigram_end *ends;
    int64_t n_ends;
};
void unigram_scratch_free(struct unigram_scratch *s);

struct viterbi { /* what encoding reads */
    const struct unigram *unigram;
    const struct vocab *vocab;
    const struct symbols *symbols;
};
/* Characters that no token covers become, a run of them at once, their byte tokens or the unknown token. */
tare_status unigram_encode(const struct viterbi *m, struct unigram_scratch *s, tare_text piece, struct token_ids *out,
                           struct err *e);

#endif
