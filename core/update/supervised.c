/* Supervised steps, and a second optimizer of the same weights for steps between policy updates
 * (ReLIFT).
 *
 *   L = -1/T sum_t log p(t) - lambda/T sum_t H_t         over the T tokens of all rows, context excluded
 */
#include "update/supervised.h"
#include "update/microbatch.h"
#include "update/optimizer.h"

#include "batch/turns.h"
#include "model/proof.h"

#include <stdlib.h>

struct supervised {
    double weight, entropy_coef; /* 1/T, lambda */
};

static tare_status supervised_token_loss(void *ctx, const struct token_block *s, struct head_grad_row *coef, struct tally *tally,
                                         struct err *e)
{
    const struct supervised *x = ctx;
    (void)e;
    for (int64_t i = 0; i < s->n; i++) {
        coef[i] = (struct head_grad_row){.logprob = (float)-x->weight,
                                         .entropy = x->entropy_coef > 0 ? (float)(-x->weight * x->entropy_coef) : 0};
        tally->loss -= x->weight * (double)s->logprob[i];
        tally->entropy += s->entropy[i];
    }
    return TARE_OK;
}

tare_status supervised_step(struct trainer *t, const struct batch *b, double entropy_coef, struct supervised_report *r,
                            struct err *e)
{
    struct supervised x = {1 / (double)batch_count_sampled(b, 0, b->n_tokens), entropy_coef};
    struct tally sum = {0};
    int64_t *groups;
    bool skipped;
    arena_reset(&t->work);
    TRY(proof_weights_fault(t->m, e));
    TRY(arena_new(&t->work, &groups, b->n_groups, e));
    for (int64_t g = 0; g < b->n_groups; g++) groups[g] = g;
    TRY(microbatch_run(
        t,
        &(struct microbatch_job){
            .b = b, .groups = groups, .n_groups = b->n_groups, .m = t->m, .loss = supervised_token_loss, .ctx = &x, .tally = &sum},
        e));
    r->loss = sum.loss;
    r->entropy = x.weight * sum.entropy;
    return optimizer_step(t, &r->grad_norm, &r->lr, &skipped, e);
}

/* ---------------------------------------------------------------- between policy updates */

struct train_config supervised_train_config(const struct train_config *c, double lr, double max_grad_norm)
{
    struct train_config own = *c;
    own.lr = lr;
    own.max_grad_norm = max_grad_norm;
    own.schedule = SCHEDULE_CONSTANT;
    own.warmup_steps = 0;
    own.warmup_ratio = 0;
    return own;
}

tare_status supervised_add_second(struct trainer *t, const struct config *c, struct err *e)
{
    struct model *m = t->m;
    const int64_t bytes = t->moment_bytes;
    struct second_optimizer *s = calloc(1, sizeof *s);
    if (!s) FAIL(e, TARE_E_NOMEM, "no memory for the trainer");
    t->second = s;
    s->own = supervised_train_config(&c->train, c->relift.lr > 0 ? c->relift.lr : c->train.lr, c->relift.max_grad_norm);
    s->train = &s->own;
    s->temperature = 1;
    s->moment1 = m->k->backend->alloc(&m->ctx, bytes / 2);
    s->moment2 = m->k->backend->alloc(&m->ctx, bytes / 2);
    if (!s->moment1 || !s->moment2) return kernels_no_memory(m->k, &m->ctx, "the moments of the supervised updates", bytes, e);
    t->moment_bytes += bytes;
    return TARE_OK;
}

void supervised_free_second(struct trainer *t)
{
    struct second_optimizer *s = t->second;
    if (!s) return;
    if (s->moment1) t->m->k->backend->release(&t->m->ctx, s->moment1);
    if (s->moment2) t->m->k->backend->release(&t->m->ctx, s->moment2);
    free(s);
}

/* Swaps the trainer's optimizer with the second one. */
static void swap_optimizers(struct trainer *t)
{
    struct second_optimizer *s = t->second;
    const struct second_optimizer first = {.train = t->train,
                                           .moment1 = t->moment1,
                                           .moment2 = t->moment2,
                                           .optimizer_steps = t->optimizer_steps,
                                           .temperature = t->temperature};
    t->train = s->train;
    t->moment1 = s->moment1;
    t->moment2 = s->moment2;
    t->optimizer_steps = s->optimizer_steps;
    t->temperature = s->temperature;
    s->train = first.train;
    s->moment1 = first.moment1;
    s->moment2 = first.moment2;
    s->optimizer_steps = first.optimizer_steps;
    s->temperature = first.temperature;
}

tare_status supervised_second_step(struct trainer *t, const struct batch *b, double entropy_coef, struct supervised_report *r,
                                   struct err *e)
{
    swap_optimizers(t);
    const tare_status status = supervised_step(t, b, entropy_coef, r, e);
    swap_optimizers(t);
    return status;
}
