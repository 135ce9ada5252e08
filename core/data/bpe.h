/* Byte-pair encoding of one piece of text: repeatedly merges the neighbouring pair with the lowest
 * rank, the leftmost on ties, until no pair is in the table (Sennrich et al. 2016; on bytes as in
 * GPT-2, or on characters as in SentencePiece). Internal to core/data. */
#ifndef TARE_CORE_DATA_BPE_H
#define TARE_CORE_DATA_BPE_H

#include "data/symbols.h"
#include "data/tokenizer.h"
#include "data/vocab.h"

struct merge_slot {
    uint64_t pair;        /* left << 32 | right; all ones: empty slot */
    int32_t rank, joined; /* joined: id of the merged token */
};

struct merges {
    struct merge_slot *slots;
    int64_t n_slots; /* a power of two */
};

tare_status bpe_merges_new(struct merges *m, int64_t n, struct err *e);
/* Adds a merge. A pair that is in the table keeps its earlier rank. */
void bpe_merges_add(struct merges *m, int32_t left, int32_t right, int32_t rank, int32_t joined);
/* NULL if absent */
const struct merge_slot *bpe_merges_find(const struct merges *m, int32_t left, int32_t right);
void bpe_merges_free(struct merges *m);

/* Scratch memory of one encoding thread. */
struct bpe_scratch {
    struct bpe_node *nodes;
    struct bpe_heap_item *heap;
    int64_t n_nodes, n_heap; /* capacities */
};
void bpe_scratch_free(struct bpe_scratch *s);

struct bpe {
    const struct vocab *vocab;
    const struct merges *merges;
    const struct symbols *symbols;
};
tare_status bpe_encode(const struct bpe *b, struct bpe_scratch *s, const unsigned char *piece, int64_t n, struct token_ids *out,
                       struct err *e);

#endif
