/* A small model with a trainer, and the score functions of a batch's rollouts as `tare variance`
 * computes them. */
#ifndef TARE_TESTS_VARIANCE_RIG_H
#define TARE_TESTS_VARIANCE_RIG_H

#include "engine.h"
#include "objective.h"

#include "../model/small.h"
#include "lab/variance/measure.h"
#include "lab/variance/sketch.h"
#include "update/score.h"
#include "update/update.h"

struct rig {
    struct model *m;
    struct trainer *t;
    struct train_config train;
    struct loss_config loss;
    struct arena a;
    struct batch b;
};

/* longest: length of the longest completion. The caller fills the batch. */
static inline struct rig rig_open(enum aggregation aggregation, int64_t longest, bool tied)
{
    struct rig r = {.train = plain_train(1000, 400), .loss = plain_loss(aggregation)};
    r.train.lr = 0, r.train.max_grad_norm = 0;
    r.loss.aggregation_length = longest;
    arena_init(&r.a, "rig");
    r.m = small_model("qwen2", tied, NULL);
    return r;
}

/* The trainer borrows the loss and train settings, so it is made inside the rig. */
static inline void rig_train(struct rig *r)
{
    struct err e = {0};
    assert_ok(trainer_new(
                  r->m,
                  &(struct trainer_options){.train = &r->train, .loss = &r->loss, .temperature = 1, .seed = 1, .total_steps = 100},
                  &r->t, &e),
              &e);
    set_objective(r->t, "ppo", NULL);
    assert_ok(update_logprobs(r->t, r->m, &r->b, r->b.logprob, NULL, &e), &e);
}

static inline void rig_close(struct rig *r)
{
    free_trainer(r->t);
    model_free(r->m);
    arena_free(&r->a);
}

/* Return an earlier rollout of the group with the same single token; -1 if none. */
static inline int64_t rig_same(const struct batch *b, int64_t group, int64_t i)
{
    const int64_t at = b->token_begin[i];
    for (int64_t j = b->group_begin[group]; j < i && b->token_begin[i + 1] == at + 1; j++)
        if (b->token_begin[j + 1] == b->token_begin[j] + 1 && b->ids[b->token_begin[j]] == b->ids[at]) return j;
    return -1;
}

/* Make a pool of the rollouts of b with their score functions. width 0: gradients are kept
 * whole. */
static inline struct variance_pool rig_pool(struct rig *r, const struct batch *b, int64_t width)
{
    struct err e = {0};
    struct sketch s;
    struct variance_pool p = {.batch = *b, .aggregation = r->loss.aggregation, .length = (double)r->loss.aggregation_length};
    assert_ok(sketch_new(r->m->n_params, width, 1, &s, &e), &e);
    p.width = s.width;
    p.sketched = width;
    arena_init(&p.arena, "pool");
    assert_ok(mem_new(b->n_rollouts * (int64_t)sizeof(double), (void **)&p.square, &e), &e);
    assert_ok(mem_new(b->n_rollouts * p.width * (int64_t)sizeof(float), (void **)&p.vector, &e), &e);
    for (int64_t m = 0; m < b->n_groups; m++)
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) {
            const int64_t tokens = b->token_begin[i + 1] - b->token_begin[i];
            const int64_t same = rig_same(b, m, i);
            if (same >= 0) {
                memcpy(p.vector + i * p.width, p.vector + same * p.width, (size_t)p.width * sizeof *p.vector);
                p.square[i] = p.square[same];
                continue;
            }
            assert_ok(update_score(r->t, b, m, i, pool_weight(&p, tokens), &e), &e);
            sketch_of(&s, NULL, r->t->grads.sum, p.vector + i * p.width, &p.square[i]);
        }
    sketch_free(&s);
    assert_ok(pool_finish(&p, 1, &e), &e);
    return p;
}

#endif
