/* tare plugin ABI, major 1, since minor 2: curricula, which choose the next rows and the rollouts
 * of a finished group that are kept.
 *
 * One training step, with `self` as it was before the step:
 *   next   (optional) chooses n rows to sample and the number of rollouts for each; called again
 *          for n more rows when groups are replaced in the same step
 *   keep   (optional) chooses the rollouts of the new groups that enter the loss, and the number
 *          of groups to sample in addition
 *   ...advantages, the policy is updated...
 *   apply  (optional) the only function that changes the state; called once per step, with all
 *          groups that it sampled, including replaced ones
 *
 * Every rank calls every function with the same arguments, and the results must be equal. Random
 * choices therefore use host->random with a counter that is a number of the step (tare_draw.cursor,
 * for example), never a clock or an address. A killed run continues from a checkpoint with the
 * state that the last apply before it left, and its results must be bit-identical. */
#ifndef TARE_CURRICULUM_H
#define TARE_CURRICULUM_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Descriptor needs of a curriculum. */
enum {
    /* it reads tare_rows.weight; a host refuses weights in data.train for a curriculum without this
     * bit */
    TARE_CURRICULUM_WEIGHTS = 1
};

/* The training rows, in the order of the files. Unlike other views it lives until destroy returns.
 */
typedef struct tare_rows {
    uint32_t struct_size, flags;
    int64_t n, n_sources;        /* R rows of S files */
    int64_t prompts, group_size; /* rollout.prompts and rollout.group_size */
    const uint64_t *prompt_uid;  /* [R] equal in every run */
    const int32_t *source;       /* [R] the index of the file in data.train */
    /* [S] as in data.train (a.jsonl:0.7), finite and above 0; 1 where none is given */
    const double *weight;
    const double *level; /* [R] the row's level; NaN: none */
} tare_rows;

/* The input of next. */
typedef struct tare_draw {
    uint32_t struct_size, flags;
    int64_t step, n; /* n: rows to choose, 1 or more */
    int64_t cursor;  /* number of rows chosen in the run before these */
    const int64_t
        /* [n] the next rows of the plain order: epoch after epoch over all rows, by data.shuffle
         * and run.seed */
        *ordered;
    /* [n_drawn] rows chosen earlier in this step, which are not part of the state yet */
    const int64_t *drawn;
    int64_t n_drawn;
} tare_draw;

/* The fate of a rollout. */
enum {
    TARE_ROLLOUT_KEPT = 0,
    TARE_ROLLOUT_LEFT_OUT = 1, /* neither the estimator nor the loss sees it */
    TARE_ROLLOUT_COUNTED = 2   /* the estimator sees it, the loss does not */
};

/* Sampled groups with their verdicts, equal on every rank. M groups, N rollouts. */
typedef struct tare_groups {
    uint32_t struct_size, flags;
    int64_t step, n_groups, n_rollouts;
    const int64_t *row; /* [M] index into tare_rows */
    /* [M+1] rollouts of group m are group_begin[m] .. group_begin[m+1]-1 */
    const int64_t *group_begin;
    const double *reward; /* [N] finite */
    /* [N] tare_verdict_code of the first verifier; TARE_TIMED_OUT and TARE_CRASHED: no verdict */
    const int32_t *verdict;
    const int64_t *length; /* [N] tokens of the completion, EOS included */
    const uint8_t *finish; /* [N] tare_finish */
    const uint8_t *fate;   /* [N] the output of keep (TARE_ROLLOUT_...); NULL in keep */
    int64_t n_before;      /* in keep: number of groups sampled earlier in this step */
} tare_groups;

/* The function table of a curriculum. Only create and destroy are required. */
typedef struct tare_curriculum {
    uint32_t struct_size, flags;
    /* Creates an instance. values: [n_params] in table order. rows: lives until destroy returns. */
    tare_status (*create)(const tare_host *host, const tare_value *values, const tare_rows *rows, void **self, tare_error *error);
    void (*destroy)(void *self);
    /* [const] NULL: no state */
    tare_status (*save)(const void *self, const tare_stream *out, tare_error *error);
    tare_status (*load)(void *self, const tare_stream *in, tare_error *error); /* NULL: no state */
    /* [const] Chooses n rows. row: [n], -1 on entry, every entry must be written; a row may occur
     * twice. rollouts: [n], rollout.group_size on entry; each at least 1, with a total of at most
     * group_size * n. NULL: the plain order. */
    tare_status (*next)(const void *self, const tare_draw *draw, int64_t *row, int64_t *rollouts, tare_error *error);
    /* [const] Chooses the rollouts that are kept. fate: [N], TARE_ROLLOUT_KEPT on entry. *replace:
     * 0 on entry; the number of groups to sample in addition, at most rollout.prompts at a time and
     * rollout.refill_rounds times per step. Groups without a kept rollout are dropped. NULL: all
     * are kept. */
    tare_status (*keep)(const void *self, const tare_groups *groups, uint8_t *fate, int64_t *replace, tare_error *error);
    /* The only function that changes the state. groups: all groups of the step, in the order in
     * which they were chosen. */
    tare_status (*apply)(void *self, const tare_groups *groups, tare_error *error);
    /* [const] Writes the state as one JSON object, for display; NULL: {}. */
    tare_status (*describe)(const void *self, const tare_stream *out, tare_error *error);
} tare_curriculum;

#ifdef __cplusplus
}
#endif
#endif
