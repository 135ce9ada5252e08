/* tare plugin ABI, major 1, since minor 2: curricula, which rows come next and what of a finished group is kept.
 *
 * One training step, with `self` as it was before the step:
 *   next   which n rows are sampled, and how many rollouts each; n more rows where groups are replaced in the same step    (optional)
 *   keep   which rollouts of the new groups are learnt from, and how many groups are sampled in addition                   (optional)
 *   ...advantages, the policy is updated...
 *   apply  the only function that changes the state; once a step, with all groups that it sampled, replaced ones too       (optional)
 *
 * Every rank calls every function with the same arguments, so each has to give the same result: chance comes from host->random, whose
 * counter is a number of the step (tare_draw.cursor, say), never from a clock or an address. A run that is killed goes on from a
 * checkpoint with the state that the last apply before it left, and has to come to the same bits.
 */
#ifndef TARE_CURRICULUM_H
#define TARE_CURRICULUM_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Descriptor needs of a curriculum. */
enum {
    TARE_CURRICULUM_WEIGHTS = 1 /* it reads tare_rows.weight; a host refuses weights in data.train for one that does not */
};

/* The training rows, in the order of the files. Unlike other views it lives until destroy returns. */
typedef struct tare_rows {
    uint32_t struct_size, flags;
    int64_t n, n_sources;        /* R rows of S files */
    int64_t prompts, group_size; /* rollout.prompts and rollout.group_size */
    const uint64_t *prompt_uid;  /* [R] the same in every run */
    const int32_t *source;       /* [R] the file of data.train, from 0 */
    const double *weight;        /* [S] as data.train has them (a.jsonl:0.7), finite and above 0; 1 where it has none */
    const double *level;         /* [R] of the row; NaN: none */
} tare_rows;

/* What is asked of next. */
typedef struct tare_draw {
    uint32_t struct_size, flags;
    int64_t step, n; /* n: rows to choose, 1 or more */
    int64_t cursor;  /* rows chosen in the run before these */
    const int64_t
        *ordered;         /* [n] the next ones of the plain order: epoch after epoch over all rows, by data.shuffle and run.seed */
    const int64_t *drawn; /* [n_drawn] rows chosen earlier in this step, which the state does not know of yet */
    int64_t n_drawn;
} tare_draw;

/* What becomes of a rollout. */
enum {
    TARE_ROLLOUT_KEPT = 0,
    TARE_ROLLOUT_LEFT_OUT = 1, /* the estimator does not see it, the loss neither */
    TARE_ROLLOUT_COUNTED = 2   /* the estimator sees it, the loss does not */
};

/* Sampled and judged groups, the same on every rank. M groups, N rollouts. */
typedef struct tare_groups {
    uint32_t struct_size, flags;
    int64_t step, n_groups, n_rollouts;
    const int64_t *row;         /* [M] which of tare_rows */
    const int64_t *group_begin; /* [M+1] rollouts of group m are group_begin[m] .. group_begin[m+1]-1 */
    const double *reward;       /* [N] finite */
    const int32_t *verdict;     /* [N] tare_verdict_code of the first verifier; TARE_TIMED_OUT, TARE_CRASHED: nobody judged it */
    const int64_t *length;      /* [N] tokens of the completion, EOS included */
    const uint8_t *finish;      /* [N] tare_finish */
    const uint8_t *fate;        /* [N] what keep said (TARE_ROLLOUT_...); NULL in keep */
    int64_t n_before;           /* in keep: groups of this step that were sampled before these */
} tare_groups;

typedef struct tare_curriculum {
    uint32_t struct_size, flags;
    /* values: [n_params] in table order */
    tare_status (*create)(const tare_host *host, const tare_value *values, const tare_rows *rows, void **self, tare_error *error);
    void (*destroy)(void *self);
    tare_status (*save)(const void *self, const tare_stream *out, tare_error *error); /* [const] NULL: no state */
    tare_status (*load)(void *self, const tare_stream *in, tare_error *error);        /* NULL: no state */
    /* [const] row: [n], -1 on entry, each to be written; a row may come twice. rollouts: [n], rollout.group_size on entry; may be
     * changed to 1 and more, such that their sum is not above n * group_size. NULL: the plain order */
    tare_status (*next)(const void *self, const tare_draw *draw, int64_t *row, int64_t *rollouts, tare_error *error);
    /* [const] fate: [N], TARE_ROLLOUT_KEPT on entry. replace: 0 on entry; how many groups to sample in addition, at most
     * rollout.prompts at a time and rollout.refill_rounds times a step. Groups of which nothing is kept leave. NULL: all is kept */
    tare_status (*keep)(const void *self, const tare_groups *groups, uint8_t *fate, int64_t *replace, tare_error *error);
    /* the only writer. groups: all of the step, in the order in which they were chosen */
    tare_status (*apply)(void *self, const tare_groups *groups, tare_error *error);
    /* [const] the state as one JSON object, for people; NULL: {} */
    tare_status (*describe)(const void *self, const tare_stream *out, tare_error *error);
} tare_curriculum;

#ifdef __cplusplus
}
#endif
#endif
