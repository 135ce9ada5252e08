/* What the host decides for an attention: sequences cut into tiles, block tables one after the other, and for decoding the runs of keys that several
 * sequences share. Plain host code; the result is uploaded as it stands. */
#ifndef TARE_KERNELS_CUDA_ATTENTION_PLAN_H
#define TARE_KERNELS_CUDA_ATTENTION_PLAN_H

#include "attention.cuh"

#include <vector>

struct attn_plan {
    std::vector<attn_tile> tiles;
    std::vector<int32_t> tables;
    std::vector<attn_parts> parts; /* [queries] when split: queries stand in rows row0 .. of the batch */
    int64_t n_parts = 0;           /* partial results */
};

/* Tiles of at most `queries` queries of one sequence over all of its keys. */
void attention_plan_whole(attn_plan &p, const struct attn_seq *seqs, int64_t n, int64_t queries);

/* Sequences of one query each, in rows 0, 1, ... of the batch: keys cut where those that may be shared end, and on both sides in pieces of SPLIT_KEYS. So
 * a sequence is cut by what it is alone, and its sums do not depend on the batch. Pieces that neighbours share are one tile for at most `queries` of
 * them. */
void attention_plan_split(attn_plan &p, const struct attn_seq *seqs, int64_t n, int64_t queries);

/* True when every sequence has one query, in rows 0, 1, ... of the batch. */
bool attention_plan_decodes(const struct attn_seq *seqs, int64_t n);

/* A run of neighbours first .. first+n-1 that have their leading `shared` keys in common; of one sequence those that others might share. */
struct attn_run {
    int32_t first, n, shared;
};
std::vector<attn_run> attention_runs(const struct attn_seq *seqs, int64_t n, int64_t queries);

#endif
