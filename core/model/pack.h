/* Packing for training: groups of one prompt with several completions become one batch without
 * padding. With sharing, a prompt's rows are computed once and the rows of its completions attend
 * to them; without it every completion has its own copy of the prompt. The rows of a group:
 *
 *   share:      p0 .. p(P-1) | completion 0: c0 .. c(n0-2) | completion 1: c0 .. c(n1-2) | ...
 *   no share:   p0 .. p(P-1) c0 .. c(n0-2) | p0 .. p(P-1) c0 .. c(n1-2) | ...
 *
 * The last token of a completion is a target but not an input. Context tokens of an episode are
 * inputs but not targets. Targets are ordered by group, completion and token; target i is predicted from forward.out_rows[i], so row i of the hidden
 * states [n_targets, C] belongs to target i. The first token of every completion is predicted from
 * the prompt's last row, which is therefore listed once for each completion.
 *
 * Key blocks are numbered from 0. The whole blocks of a shared prompt are shared; the keys of its
 * last, partly filled block are also written into the first own block of each completion, so that
 * key j of a sequence is at lane j % 16 as everywhere.
 *
 * All output is in the arena; prompts and completions are read during the call only. */
#ifndef TARE_CORE_MODEL_PACK_H
#define TARE_CORE_MODEL_PACK_H

#include "model/model.h"

struct pack_group {
    const int32_t *prompt;
    int64_t prompt_len; /* at least 1 */
    int64_t n;          /* completions; 0: the group adds nothing */
    const int32_t *const *completion;
    const int64_t *completion_len; /* may be 0: no target */
    /* Targets of each completion: 0 for context, which is an input only; NULL: all tokens are
     * targets. */
    const uint8_t *const *sampled;
};

struct packed_batch {
    struct forward_batch forward; /* n_out == n_targets */
    struct attn_seg *segs;        /* for model_train_forward; as many as forward.n_seqs */
    int64_t n_segs;
    int64_t n_blocks; /* key blocks that the cache must have */
    int64_t max_len;  /* number of positions: 1 + the largest in forward.pos */
    int64_t n_targets;
    int32_t *target; /* [n_targets] completion tokens, without context */
};

/* Returns the number of rows that pack_groups makes of one group, for cutting a batch into
 * micro-batches. */
int64_t pack_group_rows(const struct pack_group *g, bool share);
tare_status pack_groups(const struct pack_group *groups, int64_t n, bool share, struct arena *arena, struct packed_batch *out,
                        struct err *e);

#endif
