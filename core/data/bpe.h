/* Byte-pair encoding of one piece: among neighbouring pairs the one with the lowest rank is merged, the leftmost of equals first, until no
 * pair is in the table (Sennrich et al. 2016; on bytes as in GPT-2, or on characters as SentencePiece does). Internal to the data folder. */
#ifndef TARE_CORE_DATA_BPE_H
#define TARE_CORE_DATA_BPE_H

#include "data/symbols.h"
#include "data/tokenizer.h"
#include "data/vocab.h"

struct merge_slot {
    uint64_t pair;        /* left << 32 | right; all ones: free */
    int32_t rank, joined; /* joined: id of the token both make */
};

struct merges {
    struct merge_slot *slots;
    int64_t n_slots; /* a power of two */
};

tare_status bpe_merges_new(struct merges *m, int64_t n, struct err *e);
/* An earlier rank for the same pair stays. */
void bpe_merges_add(struct merges *m, int32_t left, int32_t right, int32_t rank, int32_t joined);
const struct merge_slot *bpe_merges_find(const struct merges *m, int32_t left, int32_t right); /* NULL: none */
void bpe_merges_free(struct merges *m);

/* What an encoding thread merges in. */
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
