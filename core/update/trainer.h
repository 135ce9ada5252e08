/* A model in training: its gradients, the moments of AdamW, and the arenas of the passes. One
 * trainer serves reinforcement learning and supervised training. */
#ifndef TARE_CORE_UPDATE_TRAINER_H
#define TARE_CORE_UPDATE_TRAINER_H

#include "batch/batch.h"
#include "config/config.h"
#include "model/grads.h"
#include "model/model.h"
#include "update/objective.h"

struct second_optimizer;

struct trainer {
    struct model *m;
    struct model *reference; /* NULL unless a KL coefficient or an estimator needs it */
    const struct train_config *train;
    const struct loss_config *loss;
    struct objective *objective; /* owned by the caller; NULL: supervised steps only */
    /* Optimizer steps of the last update_run, and those of them that were skipped because the
     * gradient was not finite. */
    int64_t updates, skipped;
    double temperature; /* of pi and pi_old */
    uint64_t seed;
    int64_t total_steps;             /* optimizer steps of the whole run, for the schedule */
    int64_t optimizer_steps;         /* number done; saved */
    double largest_advantage;        /* in magnitude, of the update in progress; 0: no policy update */
    bool overflow;                   /* the last error was a gradient that is not finite, found by all ranks */
    int64_t gradient_shards;         /* dist.gradient_shards; 1 unless set */
    struct grads grads;              /* sums of this optimizer step */
    float *moment1, *moment2;        /* [n_own]; with dist.shard = none [n_params] */
    int64_t moment_bytes;            /* size of both moments together; the second optimizer's have the same size */
    struct second_optimizer *second; /* supervised.c; NULL: none */
    struct kv_cache cache;           /* one layer; grows as needed */
    /* all layers of the reference; also for a pass of the policy if one cache fits both */
    struct kv_cache ref_cache;
    struct kv_cache own_cache; /* for the policy, if the reference has another shape */
    /* A micro-batch's packing, activations, and logits; the arrays of an iteration. */
    struct arena pack, acts, head, work;
};

struct trainer_options {
    struct model *reference; /* NULL: none */
    const struct train_config *train;
    const struct loss_config *loss;
    double temperature; /* of the rollouts; 0 means 1 */
    uint64_t seed;
    int64_t total_steps;
};
tare_status trainer_new(struct model *m, const struct trainer_options *o, struct trainer **out, struct err *e);
void trainer_free(struct trainer *t);

#endif
