/* What the host decides for an attention: sequences cut into tiles, block tables one after the other, and for decoding the runs of keys that several
 * sequences share. Plain host code; the result is uploaded as it stands. */
#ifndef TARE_CUDA_ATTENTION_PLAN_H
#define TARE_CUDA_ATTENTION_PLAN_H

#include "attention.cuh"

#include <vector>

struct attn_plan {
    std::vector<attn_tile> tiles;
    std::vector<int32_t> tables;
    std::vector<attn_parts> parts; /* [queries] when split: queries stand in rows row0 .. of the batch */
    int64_t n_parts = 0;           /* partial results a key/value head */
};

/* Tiles of at most `queries` queries of one sequence over all of its keys. */
void attention_plan_whole(attn_plan &p, const struct attn_seq *seqs, int64_t n, int64_t queries);

/* Sequences of one query each, in rows 0, 1, ... of the batch: keys cut in pieces of SPLIT_KEYS, leading blocks that neighbours share taken once for
 * at most `queries` of them. */
void attention_plan_split(attn_plan &p, const struct attn_seq *seqs, int64_t n, int64_t queries);

/* True when every sequence has one query, in rows 0, 1, ... of the batch. */
bool attention_plan_decodes(const struct attn_seq *seqs, int64_t n);

/* A run of neighbours first .. first+n-1 that have their leading `shared` blocks in common. */
struct attn_run {
    int32_t first, n, shared;
};
std::vector<attn_run> attention_runs(const struct attn_seq *seqs, int64_t n, int64_t queries);

#endif
