/* Encodes one piece of text to ids with the tokenizer's model; a cache holds pieces seen before.
 * Internal to core/data. */
#ifndef TARE_CORE_DATA_PIECES_H
#define TARE_CORE_DATA_PIECES_H

#include "data/bpe.h"
#include "data/unigram.h"

struct token_model {
    struct vocab vocab;
    struct symbols symbols;
    bool is_unigram;
    struct merges merges; /* BPE */
    bool whole;           /* BPE: a piece that is a token is not split (ignore_merges) */
    struct unigram unigram;
};
void token_model_free(struct token_model *m);

/* Scratch memory and piece cache of one encoding thread, kept between calls. */
struct piece_scratch {
    struct piece_scratch *next; /* links the tokenizer's idle ones */
    struct bpe_scratch bpe;
    struct unigram_scratch unigram;
    struct cached_piece *cache;
};
tare_status piece_scratch_new(struct piece_scratch **out, struct err *e);
void piece_scratch_free(struct piece_scratch *s);

tare_status piece_encode(const struct token_model *m, struct piece_scratch *s, const unsigned char *piece, int64_t n,
                         struct token_ids *out, struct err *e);

#endif
