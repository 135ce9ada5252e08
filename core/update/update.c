/* An iteration of the policy update: minibatches in a seeded order, with an optimizer step after
 * each. */
#include "update/update.h"

#include "base/rng.h"
#include "batch/turns.h"
#include "model/proof.h"
#include "update/loss.h"
#include "update/microbatch.h"
#include "update/optimizer.h"
#include "update/schedule.h"
#include "update/token_weights.h"

#include <math.h>
#include <string.h>

/* Shuffles groups by the seed and cuts them into minibatches of at least train.minibatch rollouts
 * (whole groups). end[k] is the end of minibatch k in order. Returns the number of minibatches. */
static int64_t cut_minibatches(const struct trainer *t, const struct batch *b, int64_t epoch, int64_t *order, int64_t *end)
{
    for (int64_t g = 0; g < b->n_groups; g++) order[g] = g;
    rng_shuffle(rng_derive(rng_derive(rng_key(t->seed, RNG_MINIBATCH), (uint64_t)b->step), (uint64_t)epoch), order, b->n_groups);
    int64_t n = 0, rollouts = 0;
    for (int64_t g = 0; g < b->n_groups; g++) {
        rollouts += b->group_begin[order[g] + 1] - b->group_begin[order[g]];
        if (rollouts >= t->train->minibatch || g == b->n_groups - 1) {
            end[n++] = g + 1;
            rollouts = 0;
        }
    }
    return n;
}

/* Work arrays of one iteration, in the batch's sizes. */
struct work {
    double *weight, *ratio, *shares; /* shares: [N, objective_collects] */
    int64_t *owner, *order, *end;
    float *old, *now, *now_entropy; /* now: before each minibatch, if the objective needs it */
    uint8_t *zero, *left_out;       /* [N] rollouts without a gradient (NULL: all are computed); those left out */
    struct {
        int64_t tokens;
        double entropy; /* when they were sampled */
    } missing;          /* tokens left out, of all minibatches */
};

static tare_status work_new(struct trainer *t, const struct batch *b, struct work *w, struct err *e)
{
    struct arena *a = &t->work;
    *w = (struct work){0};
    if (objective_uses(t->objective).looks_ahead) {
        TRY(arena_new(a, &w->now, b->n_tokens, e));
        TRY(arena_new(a, &w->now_entropy, b->n_tokens, e));
    }
    TRY(arena_new(a, &w->shares, b->n_rollouts * objective_collects(t->objective) + 1, e));
    TRY(arena_new(a, &w->ratio, b->n_tokens, e));
    TRY(arena_new(a, &w->weight, b->n_tokens, e));
    TRY(arena_new(a, &w->owner, b->n_tokens, e));
    TRY(arena_new(a, &w->order, b->n_groups, e));
    TRY(arena_new(a, &w->end, b->n_groups, e));
    TRY(arena_new(a, &w->old, b->n_tokens, e));
    for (int64_t i = 0; i < b->n_rollouts; i++)
        for (int64_t k = b->token_begin[i]; k < b->token_begin[i + 1]; k++) w->owner[k] = i;
    return TARE_OK;
}

/* Marks the rollouts whose advantages are all 0, if nothing but the advantage can give a token a
 * gradient. */
static tare_status find_zero(struct trainer *t, const struct loss_config *c, const struct batch *b, struct work *w, struct err *e)
{
    const bool other_terms = c->entropy_coef != 0 || (c->kl_coef > 0 && c->kl_place == KL_IN_LOSS);
    if (!t->train->skip_zero || other_terms || !objective_zero_at_zero(t->objective)) return TARE_OK;
    TRY(arena_new(&t->work, &w->zero, b->n_rollouts, e));
    TRY(arena_new(&t->work, &w->left_out, b->n_rollouts, e));
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        bool zero = b->token_advantage || b->advantage[i] == 0;
        for (int64_t k = b->token_begin[i]; zero && b->token_advantage && k < b->token_begin[i + 1]; k++)
            zero = !batch_is_sampled(b, k) || b->token_advantage[k] == 0;
        w->zero[i] = zero;
    }
    return TARE_OK;
}

static void count_left_out(struct work *w, const struct batch *b, const struct minibatch *part)
{
    if (!w->zero) return;
    for (int64_t g = 0; g < part->n; g++)
        for (int64_t i = b->group_begin[part->groups[g]]; i < b->group_begin[part->groups[g] + 1]; i++)
            for (int64_t k = b->token_begin[i]; w->left_out[i] && k < b->token_begin[i + 1]; k++) {
                if (!batch_is_sampled(b, k)) continue;
                w->missing.tokens++;
                if (b->entropy) w->missing.entropy += (double)b->entropy[k];
            }
}

static bool any_weight(const struct batch *b, const int64_t *groups, int64_t n)
{
    for (int64_t g = 0; g < n; g++)
        for (int64_t i = b->group_begin[groups[g]]; i < b->group_begin[groups[g] + 1]; i++)
            if (b->rollout_weight[i] > 0) return true;
    return false;
}

static double largest_advantage(const struct batch *b)
{
    double most = 0;
    for (int64_t i = 0; b->advantage && i < b->n_rollouts; i++) most = fmax(most, fabs(b->advantage[i]));
    for (int64_t k = 0; b->token_advantage && k < b->n_tokens; k++) most = fmax(most, fabs((double)b->token_advantage[k]));
    return most;
}

static int64_t longest_completion(const struct batch *b)
{
    int64_t most = 1;
    for (int64_t i = 0; i < b->n_rollouts; i++)
        if (batch_length(b, i) > most) most = batch_length(b, i);
    return most;
}

/* Passes the logprobs of the minibatch's tokens under the current weights to an objective that needs
 * them before the gradients (TARE_OBJECTIVE_LOOKS_AHEAD). */
static tare_status annotate_tokens(struct trainer *t, const struct batch *b, const struct work *w, const struct minibatch *part,
                                   struct err *e)
{
    if (w->now)
        TRY(microbatch_run(t,
                           &(struct microbatch_job){.b = b,
                                                    .groups = part->groups,
                                                    .n_groups = part->n,
                                                    .rollout_weight = b->rollout_weight,
                                                    .m = t->m,
                                                    .logprob = w->now,
                                                    .entropy = w->now_entropy},
                           e));
    return objective_annotate(t->objective, part->groups, part->n, w->now, w->now_entropy, e);
}

static tare_status run_minibatch(struct trainer *t, struct work *w, struct policy_loss *p, struct minibatch part,
                                 struct tally *total, struct err *e)
{
    const struct batch *b = p->b;
    const struct loss_config *c = t->loss;
    const bool exact = (c->kl_coef > 0 && c->kl == KL_EXACT) || objective_uses(t->objective).kl;
    const int64_t n_shares = objective_collects(t->objective);
    if (!any_weight(b, part.groups, part.n)) return TARE_OK;
    TRY(token_weights(b, c, &part, w->weight, e));
    TRY(annotate_tokens(t, b, w, &part, e));
    memset(w->shares, 0, (size_t)(b->n_rollouts * n_shares) * sizeof *w->shares);
    TRY(microbatch_run(t,
                       &(struct microbatch_job){.b = b,
                                                .groups = part.groups,
                                                .n_groups = part.n,
                                                .rollout_weight = b->rollout_weight,
                                                .zero = w->zero,
                                                .left_out = w->left_out,
                                                .m = t->m,
                                                .exact_kl = exact,
                                                .loss = loss_policy_tokens,
                                                .ctx = p,
                                                .tally = total,
                                                .share = loss_policy_share,
                                                .shares = w->shares,
                                                .n_shares = n_shares},
                       e));
    count_left_out(w, b, &part);
    objective_add(t->objective, w->shares, b->n_rollouts); /* 0 outside of the minibatch */
    return TARE_OK;
}

static tare_status run_minibatches(struct trainer *t, struct work *w, struct policy_loss *p, struct tally *total,
                                   struct update_report *r, struct err *e)
{
    const int64_t length = longest_completion(p->b);
    double grad_norm = 0;
    for (int64_t epoch = 0; epoch < t->train->epochs; epoch++) {
        const int64_t n = cut_minibatches(t, p->b, epoch, w->order, w->end);
        for (int64_t k = 0, begin = 0; k < n; begin = w->end[k], k++) {
            bool skipped = false;
            double norm = 0;
            p->first = r->optimizer_steps == 0;
            TRY(run_minibatch(t, w, p, (struct minibatch){w->order + begin, w->end[k] - begin, length}, total, e));
            TRY(optimizer_step(t, &norm, &r->lr, &skipped, e));
            r->optimizer_steps++;
            r->skipped += skipped;
            grad_norm += norm;
        }
    }
    r->grad_norm = grad_norm / (double)r->optimizer_steps;
    r->loss = total->loss / (double)r->optimizer_steps;
    return TARE_OK;
}

/* For kl_place = reward, replaces *b by a copy: the KL from each token on is subtracted from its
 * advantage. Tokens of traces have no old policy, and no KL. */
static tare_status reward_kl(struct trainer *t, const struct loss_config *c, const float *old, const struct batch **b,
                             struct err *e)
{
    const struct batch *from = *b;
    struct batch *to;
    if (c->kl_place != KL_IN_REWARD || !(c->kl_coef > 0)) return TARE_OK;
    if (!from->ref_logprob)
        FAIL(e, TARE_E_SHAPE, "loss.kl_place = reward needs the reference policy's logprobs, and the batch has none");
    TRY(arena_new(&t->work, &to, 1, e));
    *to = *from;
    TRY(arena_new(&t->work, &to->token_advantage, from->n_tokens, e));
    for (int64_t i = 0; i < from->n_rollouts; i++) {
        double sum = 0;
        for (int64_t k = from->token_begin[i + 1] - 1; k >= from->token_begin[i]; k--) {
            if (!batch_is_sampled(from, k)) continue;
            if (!from->off_policy || !from->off_policy[i]) sum += loss_kl_estimate(c->kl, old[k], from->ref_logprob[k]).value;
            to->token_advantage[k] =
                (float)((from->token_advantage ? (double)from->token_advantage[k] : from->advantage[i]) - c->kl_coef * sum);
        }
    }
    *b = to;
    return TARE_OK;
}

tare_status update_run(struct trainer *t, const struct batch *b, struct update_report *r, struct err *e)
{
    *r = (struct update_report){0};
    if (!t->objective) FAIL(e, TARE_E_STATE, "the trainer has no objective");
    t->updates = t->skipped = 0;
    objective_forget(t->objective);
    if (!b->n_groups) return TARE_OK;
    struct work w;
    arena_reset(&t->work);
    TRY(work_new(t, b, &w, e));
    TRY(proof_weights_fault(t->m, e));
    struct tally sum = {0};
    struct loss_config loss = *t->loss;
    loss.kl_coef = schedule_kl_coef(t->loss, t->optimizer_steps, t->total_steps);
    struct policy_loss p = {.objective = t->objective,
                            .b = b,
                            .c = &loss,
                            .columns = {.old = b->logprob, .weight = w.weight, .owner = w.owner},
                            .ratio = w.ratio,
                            .stops = t->train->on_nonfinite == NONFINITE_STOP,
                            .traces = objective_treats_off_policy(t->objective)};
    if (t->loss->old_logprobs == OLD_RECOMPUTE) {
        TRY(update_logprobs(t, t->m, b, w.old, NULL, e));
        p.columns.old = w.old;
        p.columns.sampled = b->logprob;
        if (t->loss->rollout_is == ROLLOUT_IS_TIS) p.sampled = b->logprob;
    }
    TRY(reward_kl(t, &loss, p.columns.old, &p.b, e));
    TRY(find_zero(t, &loss, p.b, &w, e));
    TRY(objective_begin(t->objective, p.b, &p.columns, e));
    t->largest_advantage = largest_advantage(p.b);
    const tare_status status = run_minibatches(t, &w, &p, &sum, r, e);
    t->largest_advantage = 0;
    TRY(status);
    t->updates = r->optimizer_steps;
    t->skipped = r->skipped;
    const double all = sum.tokens + (double)w.missing.tokens;
    r->entropy = (sum.entropy + w.missing.entropy) / all;
    r->skipped_ratio = all > 0 ? (double)w.missing.tokens / all : 0;
    r->clip_fraction = sum.clipped / sum.tokens;
    r->approx_kl = sum.kl_old / sum.tokens;
    r->reference_kl = sum.kl_ref / sum.tokens;
    r->ratio_max = sum.ratio_max;
    r->mismatch = sum.mismatch;
    r->tokens = (int64_t)sum.tokens;
    return TARE_OK;
}

tare_status update_apply(struct trainer *t, int64_t step, struct err *e)
{
    return objective_apply(t->objective, step, t->updates, t->skipped, e);
}
