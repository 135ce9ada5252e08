/* tare plugin ABI, major 1: curricula, which choose the next rows and the rollouts of a finished
 * group that are kept.
 *
 * One training step, with `self` as it was before the step:
 *   next   (optional) chooses n rows to sample and the number of rollouts for each; called again
 *          for n more rows when groups are sampled in addition in the same step
 *   keep   (optional) chooses the rollouts of the new groups that enter the loss, and the number
 *          of groups to sample in addition
 *   ...advantages, the policy is updated...
 *   apply  (optional) the only function that changes the state; called in every step, with all
 *          groups that it sampled, those that were left out included
 *
 * Every rank calls every function with the same arguments, and the results must be equal. Random
 * choices therefore use host->random with a counter that is a number of the step (tare_draw.cursor,
 * for example), never a clock or an address. A killed run continues from a checkpoint with the
 * state that the last apply before it left, and its results must be bit-identical. */
#ifndef TARE_CURRICULUM_H
#define TARE_CURRICULUM_H

#include "batch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of tare_curriculum. */
enum {
    /* it reads tare_dataset.source_weight; the host refuses weights in data.train for others */
    TARE_CURRICULUM_READS_WEIGHTS = 1
};

/* The training rows, R rows of S files, in the order of the files. */
typedef struct tare_dataset {
    uint32_t struct_size, flags;
    int64_t n_rows, n_sources;
    int64_t prompts_per_step, group_size; /* rollout.prompts and rollout.group_size */
    const uint64_t *prompt_uid;           /* [R] equal in every run */
    const int32_t *source;                /* [R] the index of the file in data.train */
    /* [S] as in data.train (a.jsonl:0.7), finite and above 0; 1 where none is given */
    const double *source_weight;
    const tare_column *column; /* [n_wants]; those on the axis ROW are set */
} tare_dataset;

/* The input of next. */
typedef struct tare_draw {
    uint32_t struct_size, flags;
    int64_t step, n; /* n: rows to choose, 1 or more */
    int64_t cursor;  /* rows chosen in the run before these */
    /* [n] the next rows of the plain order: epoch after epoch over all rows, by data.shuffle and
     * run.seed */
    const int64_t *ordered;
    const int64_t *drawn; /* [n_drawn] rows chosen earlier in this step, not part of the state yet */
    int64_t n_drawn;
} tare_draw;

/* The output of next. */
typedef struct tare_choice {
    uint32_t struct_size, flags;
    int64_t *row; /* [n] -1 on entry; every entry must be written; a row may occur twice */
    /* [n] rollout.group_size on entry; each at least 1, with a total of at most group_size * n */
    int64_t *n_rollouts;
} tare_choice;

/* The output of keep. */
typedef struct tare_kept {
    uint32_t struct_size, flags;
    uint8_t *fate; /* [N] TARE_FATE_KEPT on entry; a group without a kept rollout is left out */
    /* groups to sample in addition: at most rollout.prompts at a time, and rollout.refill_rounds
     * times in a step */
    int64_t extra_groups;
} tare_kept;

/* The function table of a curriculum. Its batches have rollouts without a reward too (verdicts
 * TIMED_OUT and CRASHED, reward 0). */
typedef struct tare_curriculum {
    TARE_HEAD;
    /* [serial] [const] Chooses rows. NULL: the plain order. */
    tare_status (*next)(const void *self, const tare_draw *draw, tare_choice *out, tare_error *error);
    /* [serial] [const] Chooses the rollouts that are kept. NULL: all. */
    tare_status (*keep)(const void *self, const tare_batch *groups, tare_kept *out, tare_error *error);
    /* [serial] Updates the state. groups: all of the step in the order in which they were chosen,
     * with the column "fate". */
    tare_status (*apply)(void *self, const tare_batch *groups, tare_error *error);
} tare_curriculum;

#ifdef __cplusplus
}
#endif
#endif
