/* The score function of one rollout, computed by the forward and backward pass of updates. */
#include "update/score.h"
#include "update/microbatch.h"

struct score {
    double weight;
};

/* dL/dlogp = weight for every token: the gradient of weight * sum_t log pi(token t). */
static tare_status score_token(void *ctx, const struct token_block *s, struct head_grad_row *coef, struct tally *tally,
                               struct err *e)
{
    const struct score *score = ctx;
    (void)tally, (void)e;
    for (int64_t i = 0; i < s->n; i++) coef[i] = (struct head_grad_row){.logprob = (float)score->weight};
    return TARE_OK;
}

tare_status update_score(struct trainer *t, const struct batch *b, int64_t group, int64_t rollout, double weight, struct err *e)
{
    struct model *m = t->m;
    struct score score = {weight};
    struct tally tally = {0};
    double *only;
    arena_reset(&t->work);
    TRY(arena_new(&t->work, &only, b->n_rollouts, e));
    only[rollout] = 1;
    m->k->backend->zero(&m->ctx, t->grads.sum, t->grads.sum_bytes);
    return microbatch_run(t,
                          &(struct microbatch_job){.b = b,
                                                   .groups = &group,
                                                   .n_groups = 1,
                                                   .rollout_weight = only,
                                                   .m = m,
                                                   .loss = score_token,
                                                   .ctx = &score,
                                                   .tally = &tally},
                          e);
}
