/* Host-side plan of an attention: sequences split into tiles, concatenated block tables, and for
 * decoding the runs of keys that several sequences share. Plain host code; the result is uploaded
 * unchanged. */
#ifndef TARE_KERNELS_CUDA_ATTENTION_PLAN_H
#define TARE_KERNELS_CUDA_ATTENTION_PLAN_H

#include "attention.cuh"

#include <vector>

struct attn_plan {
    std::vector<attn_tile> tiles;
    std::vector<int32_t> tables;
    /* [queries] when split; queries are in rows row0 .. of the batch */
    std::vector<attn_parts> parts;
    int64_t n_parts = 0; /* partial results */
};

/* Make tiles of at most `queries` queries of one sequence over all of its keys. */
void attention_plan_whole(attn_plan &p, const struct attn_seq *seqs, int64_t n, int64_t queries);

/* For sequences of one query each, in rows 0, 1, ... of the batch: split the keys where the
 * shareable ones end, and both parts into chunks of SPLIT_KEYS. The split depends on the sequence
 * alone, so its sums do not depend on the batch. Chunks shared by adjacent sequences are one tile
 * for at most `queries` of them. */
void attention_plan_split(attn_plan &p, const struct attn_seq *seqs, int64_t n, int64_t queries);

/* True if every sequence has one query, in rows 0, 1, ... of the batch. */
bool attention_plan_decodes(const struct attn_seq *seqs, int64_t n);

/* A run of adjacent sequences first .. first+n-1 that have their leading `shared` keys in common;
 * for a single sequence, the keys that others might share. */
struct attn_run {
    int32_t first, n, shared;
};
std::vector<attn_run> attention_runs(const struct attn_seq *seqs, int64_t n, int64_t queries);

#endif
