/* The implicit process reward model (Cui et al. 2025, "Process Reinforcement through Implicit
 * Rewards", arXiv 2502.01456): a language model phi. Its log-ratio to a frozen reference is the
 * reward, and it is trained on the outcomes of whole rollouts.
 *
 *   r_t = beta (log phi(y_t) - log ref(y_t)),   s_i = sum of r_t over rollout i
 *   o_i in [0, 1]: the outcome of rollout i
 *   L = -1/N sum_i [o_i log sigma(s_i) + (1 - o_i) log(1 - sigma(s_i))]
 *     =  1/N sum_i [log(1 + exp s_i) - o_i s_i]
 *   dL/dlog phi(y_t) = beta (sigma(s_i) - o_i) / N          for every token t of rollout i
 */
#include "update/process_reward.h"
#include "update/microbatch.h"
#include "update/optimizer.h"
#include "update/supervised.h"
#include "update/update.h"

#include <math.h>

tare_status process_reward_compute(struct trainer *t, const struct batch *b, double beta, float *reward, float *ref, struct err *e)
{
    arena_reset(&t->work);
    TRY(update_logprobs(t, t->m, b, reward, NULL, e));
    TRY(update_logprobs(t, t->reference, b, ref, NULL, e));
    for (int64_t i = 0; i < b->n_tokens; i++) reward[i] = (float)(beta * ((double)reward[i] - (double)ref[i]));
    return TARE_OK;
}

double process_reward_largest(const struct batch *b)
{
    double most = 0;
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        double sum = 0;
        for (int64_t t = b->token_begin[i + 1] - 1; t >= b->token_begin[i]; t--) {
            sum += b->process_reward[t];
            most = fmax(most, fabs(sum));
        }
    }
    return most;
}

/* The released code divides the log-ratios by their largest return + 1e-6: with beta in both terms
 * the quotient is the same. */
void process_reward_normed(const struct batch *b, const struct process_config *c, double *out)
{
    const double divisor = c->norm == PROCESS_NORM_LARGEST ? process_reward_largest(b) + 1e-6 * c->beta : 1;
    for (int64_t t = 0; t < b->n_tokens; t++) out[t] = (double)b->process_reward[t] / divisor;
}

static double rollout_outcome(const struct batch *b, int64_t i)
{
    return fmin(fmax(b->reward[i], 0), 1);
}

static double rollout_return(const struct batch *b, int64_t i)
{
    double sum = 0;
    for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) sum += b->process_reward[t];
    return sum;
}

/* Pairs of a group are weighted by the difference of their outcomes; a group of equal outcomes
 * counts as 0.5. */
tare_status process_reward_accuracy(const struct batch *b, struct arena *a, double *accuracy, struct err *e)
{
    double groups = 0, *s;
    TRY(arena_new(a, &s, b->n_rollouts, e));
    for (int64_t i = 0; i < b->n_rollouts; i++) s[i] = rollout_return(b, i);
    for (int64_t m = 0; m < b->n_groups; m++) {
        double right = 0, all = 0;
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++)
            for (int64_t j = i + 1; j < b->group_begin[m + 1]; j++) {
                const double apart = rollout_outcome(b, i) - rollout_outcome(b, j);
                all += fabs(apart);
                if ((s[i] > s[j]) == (apart > 0)) right += fabs(apart);
            }
        groups += all > 0 ? right / all : 0.5;
    }
    *accuracy = b->n_groups ? groups / (double)b->n_groups : (double)NAN;
    return TARE_OK;
}

struct process_loss {
    const int64_t *owner; /* [T] rollout of a token */
    const double *dlogp;  /* [N] */
};

static tare_status process_token_loss(void *ctx, const struct token_block *s, struct head_grad_row *coef, struct tally *tally,
                                      struct err *e)
{
    const struct process_loss *x = ctx;
    (void)tally, (void)e;
    for (int64_t i = 0; i < s->n; i++) coef[i] = (struct head_grad_row){.logprob = (float)x->dlogp[x->owner[s->token[i]]]};
    return TARE_OK;
}

struct process_work {
    float *now;
    double *dlogp;
    int64_t *owner, *groups;
};

static tare_status process_work_new(struct trainer *t, const struct batch *b, struct process_work *w, struct err *e)
{
    arena_reset(&t->work);
    TRY(arena_new(&t->work, &w->now, b->n_tokens, e));
    TRY(arena_new(&t->work, &w->dlogp, b->n_rollouts, e));
    TRY(arena_new(&t->work, &w->owner, b->n_tokens, e));
    TRY(arena_new(&t->work, &w->groups, b->n_groups, e));
    for (int64_t m = 0; m < b->n_groups; m++) w->groups[m] = m;
    for (int64_t i = 0; i < b->n_rollouts; i++)
        for (int64_t k = b->token_begin[i]; k < b->token_begin[i + 1]; k++) w->owner[k] = i;
    return TARE_OK;
}

/* Computes the returns of the groups under the current weights, the loss, and its derivatives. Adds
 * the number of rollouts in the loss to r->rollouts. */
static tare_status group_losses(struct trainer *t, const struct microbatch_job *forward, double beta, struct process_work *w,
                                struct process_reward_report *r, struct err *e)
{
    const struct batch *b = forward->b;
    double n = 0, loss = 0;
    TRY(microbatch_run(t, forward, e));
    for (int64_t g = 0; g < forward->n_groups; g++)
        for (int64_t i = b->group_begin[forward->groups[g]]; i < b->group_begin[forward->groups[g] + 1]; i++)
            n += b->rollout_weight[i] > 0;
    for (int64_t g = 0; g < forward->n_groups; g++)
        for (int64_t i = b->group_begin[forward->groups[g]]; i < b->group_begin[forward->groups[g] + 1]; i++) {
            if (!(b->rollout_weight[i] > 0)) continue;
            double s = 0;
            for (int64_t k = b->token_begin[i]; k < b->token_begin[i + 1]; k++)
                s += beta * ((double)w->now[k] - (double)b->process_ref[k]);
            loss += (fmax(s, 0) + log1p(exp(-fabs(s))) - rollout_outcome(b, i) * s) / n;
            w->dlogp[i] = beta * (1 / (1 + exp(-s)) - rollout_outcome(b, i)) / n;
        }
    r->loss += loss;
    r->rollouts += (int64_t)n;
    return TARE_OK;
}

static tare_status process_step(struct trainer *t, const struct microbatch_job *forward, double beta, struct process_work *w,
                                struct process_reward_report *r, struct err *e)
{
    struct process_loss x = {w->owner, w->dlogp};
    struct microbatch_job job = *forward;
    struct tally tally = {0};
    double norm;
    bool skipped;
    const int64_t before = r->rollouts;
    TRY(group_losses(t, forward, beta, w, r, e));
    if (r->rollouts == before) return TARE_OK;
    job.logprob = NULL;
    job.loss = process_token_loss;
    job.ctx = &x;
    job.tally = &tally;
    TRY(microbatch_run(t, &job, e));
    TRY(optimizer_step(t, &norm, &r->lr, &skipped, e));
    r->grad_norm += norm;
    r->optimizer_steps++;
    return TARE_OK;
}

tare_status process_reward_update(struct trainer *t, const struct batch *b, const struct process_config *c,
                                  struct process_reward_report *r, struct err *e)
{
    struct process_work w;
    *r = (struct process_reward_report){0};
    TRY(process_work_new(t, b, &w, e));
    for (int64_t first = 0, m = 0; m < b->n_groups; first = m) {
        int64_t rollouts = 0;
        for (; m < b->n_groups && (!c->minibatch || rollouts < c->minibatch); m++)
            rollouts += b->group_begin[m + 1] - b->group_begin[m];
        const struct microbatch_job forward = {.b = b,
                                               .groups = w.groups + first,
                                               .n_groups = m - first,
                                               .rollout_weight = b->rollout_weight,
                                               .m = t->m,
                                               .logprob = w.now};
        TRY(process_step(t, &forward, c->beta, &w, r, e));
    }
    if (!r->optimizer_steps) return TARE_OK;
    r->loss /= (double)r->optimizer_steps;
    r->grad_norm /= (double)r->optimizer_steps;
    return TARE_OK;
}

struct train_config process_reward_train_config(const struct config *c)
{
    struct train_config own = supervised_train_config(&c->train, c->process_reward.lr, c->process_reward.max_grad_norm);
    own.weight_decay = 0;
    return own;
}
