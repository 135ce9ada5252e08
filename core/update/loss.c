/* The PPO-clipped objective and its gradient, token by token (see update.h for the formula).
 *
 *   dL/dlogp = -c A r                 where the unclipped term is the smaller one, else 0
 *            + c beta dKL/dlogp       k1: 1;  k2: logp - ref;  k3: 1 - exp(ref - logp)     (Schulman, "Approximating KL divergence")
 *   dL/dH    = -c lambda
 *   dL/dKL   = c beta                 exact: KL(pi || ref) over the whole vocabulary
 *
 * dual_clip (Ye et al. 2020): for A < 0 the term is bounded below by dual_clip * A. Truncated importance sampling (rollout_is = tis) multiplies a
 * token's term by min(exp(old - sampled), cap), a constant.
 *
 * Off-policy tokens (traces mixed into a group): -f(pi) A with f(pi) = pi / (pi + gamma), unclipped: LUFFY (arXiv 2504.14945), policy shaping, with
 * the probability under the policy that wrote the trace taken as 1. df/dlogp = gamma pi / (pi + gamma)^2: tokens that the policy finds unlikely keep a gradient.
 */
#include "update/update.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

struct policy_loss {
    const struct batch *b;
    const struct loss_config *c;
    const float *old;     /* [T] */
    const float *sampled; /* [T] for truncated importance sampling; NULL: none */
    const double *weight; /* [T] c_t */
    const int64_t *owner; /* [T] rollout of a token */
    bool first;           /* the weights are still those that sampled: measure the mismatch */
};

struct term {
    double value, dlogp;
};

/* Estimates of KL(pi || ref) from one token, and their derivative in logp. */
static struct term kl_estimate(enum kl_form form, double logp, double ref)
{
    const double d = ref - logp;
    if (form == KL_K1) return (struct term){-d, 1};
    if (form == KL_K2) return (struct term){0.5 * d * d, -d};
    return (struct term){exp(d) - d - 1, 1 - exp(d)}; /* k3 */
}

/* -min(r A, clip(r) A), with its derivative in logp; sets *clipped when the clip decides. */
static struct term surrogate(const struct loss_config *c, double ratio, double advantage, bool *clipped)
{
    const double high = c->clip_high > 0 ? c->clip_high : c->clip;
    const double bounded = fmin(fmax(ratio, 1 - c->clip), 1 + high);
    *clipped = bounded * advantage < ratio * advantage;
    if (*clipped) return (struct term){-bounded * advantage, 0};
    if (c->dual_clip > 0 && advantage < 0 && ratio > c->dual_clip) {
        *clipped = true;
        return (struct term){-c->dual_clip * advantage, 0};
    }
    return (struct term){-ratio * advantage, -ratio * advantage};
}

static struct term shaped(double gamma, double logp, double advantage)
{
    const double pi = exp(logp), all = pi + gamma;
    return (struct term){-pi / all * advantage, -gamma * pi / (all * all) * advantage};
}

static tare_status policy_token_loss(void *ctx, const int64_t *token, int64_t n, const float *logprob, const float *entropy,
                                     const float *kl, struct head_grad_row *coef, struct tally *tally, struct err *e)
{
    const struct policy_loss *p = ctx;
    const struct batch *b = p->b;
    for (int64_t i = 0; i < n; i++) {
        const int64_t t = token[i];
        const double logp = logprob[i], old = p->old[t], w = p->weight[t];
        const double advantage = b->token_advantage ? (double)b->token_advantage[t] : b->advantage[p->owner[t]];
        const bool off = b->off_policy && b->off_policy[p->owner[t]];
        const double ratio = off ? 1 : exp(logp - old);
        if (!isfinite(ratio))
            FAIL(e, TARE_E_NOT_FINITE, "rollout %lld: the ratio of token %lld is not finite (logprob %g, was %g); lower train.lr",
                 (long long)p->owner[t], (long long)(t - b->token_begin[p->owner[t]]), logp, old);
        bool clipped = false;
        struct term s = off ? shaped(p->c->shaping, logp, advantage) : surrogate(p->c, ratio, advantage, &clipped);
        if (p->sampled && !off) {
            const double is = fmin(exp(old - (double)p->sampled[t]), p->c->rollout_is_cap);
            s = (struct term){s.value * is, s.dlogp * is};
        }
        struct term k = {0, 0};
        if (kl)
            k.value = kl[i];
        else if (b->ref_logprob)
            k = kl_estimate(p->c->kl, logp, b->ref_logprob[t]);
        const double beta = p->c->kl_coef, lambda = p->c->entropy_coef;
        coef[i] = (struct head_grad_row){(float)(w * (s.dlogp + (kl ? 0 : beta * k.dlogp))), (float)(-w * lambda),
                                         kl ? (float)(w * beta) : 0};
        tally->loss += w * (s.value + beta * k.value - lambda * (double)entropy[i]);
        tally->entropy += entropy[i];
        tally->clipped += clipped;
        tally->kl_old += off ? 0 : (ratio - 1) - (logp - old); /* k3 of KL(old || pi) */
        tally->kl_ref += k.value;
        tally->tokens++;
        tally->ratio_max = fmax(tally->ratio_max, ratio);
        if (p->first && !off) tally->mismatch = fmax(tally->mismatch, fabs(logp - (double)b->logprob[t]));
    }
    return TARE_OK;
}

/* c_t for the tokens of one minibatch. A rollout with row_weight 0 is in no mean; a group without any is in none either. */
static tare_status token_weights(const struct batch *b, const struct loss_config *c, const int64_t *groups, int64_t n,
                                 int64_t length, double *weight, struct err *e)
{
    double m = 0, rows = 0, tokens = 0;
    for (int64_t g = 0; g < n; g++) {
        double in_group = 0;
        for (int64_t i = b->group_begin[groups[g]]; i < b->group_begin[groups[g] + 1]; i++) {
            in_group += b->row_weight[i];
            tokens += b->row_weight[i] * (double)(b->token_begin[i + 1] - b->token_begin[i]);
        }
        rows += in_group;
        m += in_group > 0;
    }
    for (int64_t g = 0; g < n; g++) {
        double in_group = 0;
        for (int64_t i = b->group_begin[groups[g]]; i < b->group_begin[groups[g] + 1]; i++) in_group += b->row_weight[i];
        for (int64_t i = b->group_begin[groups[g]]; i < b->group_begin[groups[g] + 1]; i++) {
            const double count = (double)(b->token_begin[i + 1] - b->token_begin[i]);
            if (!(count > 0)) FAIL(e, TARE_E_INVALID, "rollout %lld has no token", (long long)i);
            double w = b->row_weight[i];
            if (w > 0) {
                if (c->aggregation == AGGREGATE_TOKEN)
                    w /= tokens;
                else if (c->aggregation == AGGREGATE_CONSTANT)
                    w /= rows * (double)(c->aggregation_length ? c->aggregation_length : length);
                else
                    w /= count * in_group * m;
            }
            for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) weight[t] = w;
        }
    }
    return TARE_OK;
}

/* Groups in seeded order, cut into minibatches of at least train.minibatch rollouts (whole groups). end[k]: end of minibatch k in order. */
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
    double *weight;
    int64_t *owner, *order, *end;
    float *old;
};

static tare_status work_new(struct arena *a, const struct batch *b, struct work *w, struct err *e)
{
    TRY(arena_new(a, double, b->n_tokens, &w->weight, e));
    TRY(arena_new(a, int64_t, b->n_tokens, &w->owner, e));
    TRY(arena_new(a, int64_t, b->n_groups, &w->order, e));
    TRY(arena_new(a, int64_t, b->n_groups, &w->end, e));
    TRY(arena_new(a, float, b->n_tokens, &w->old, e));
    for (int64_t i = 0; i < b->n_rollouts; i++)
        for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) w->owner[t] = i;
    return TARE_OK;
}

static bool any_weight(const struct batch *b, const int64_t *groups, int64_t n)
{
    for (int64_t g = 0; g < n; g++)
        for (int64_t i = b->group_begin[groups[g]]; i < b->group_begin[groups[g] + 1]; i++)
            if (b->row_weight[i] > 0) return true;
    return false;
}

static int64_t longest(const struct batch *b)
{
    int64_t most = 1;
    for (int64_t i = 0; i < b->n_rollouts; i++)
        if (b->token_begin[i + 1] - b->token_begin[i] > most) most = b->token_begin[i + 1] - b->token_begin[i];
    return most;
}

static tare_status run_minibatches(struct trainer *t, const struct batch *b, struct work *w, struct policy_loss *p,
                                   struct tally *total, struct update_report *r, struct err *e)
{
    const struct loss_config *c = t->loss;
    double grad_norm = 0;
    for (int64_t epoch = 0; epoch < t->train->epochs; epoch++) {
        const int64_t n = cut_minibatches(t, b, epoch, w->order, w->end);
        for (int64_t k = 0, begin = 0; k < n; begin = w->end[k], k++) {
            const int64_t *groups = w->order + begin, count = w->end[k] - begin;
            bool skipped = false;
            double norm = 0;
            p->first = r->optimizer_steps == 0;
            if (any_weight(b, groups, count)) {
                TRY(token_weights(b, c, groups, count, longest(b), w->weight, e));
                TRY(microbatch_run(t,
                                   &(struct microbatch_job){.b = b,
                                                            .groups = groups,
                                                            .n_groups = count,
                                                            .row_weight = b->row_weight,
                                                            .m = t->m,
                                                            .exact_kl = c->kl_coef > 0 && c->kl == KL_EXACT,
                                                            .loss = policy_token_loss,
                                                            .ctx = p,
                                                            .tally = total},
                                   e));
            }
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

tare_status update_run(struct trainer *t, const struct batch *b, struct update_report *r, struct err *e)
{
    *r = (struct update_report){0};
    if (!b->n_groups) return TARE_OK;
    struct work w;
    arena_reset(&t->work);
    TRY(work_new(&t->work, b, &w, e));
    tare_status status = TARE_OK;
    struct tally sum = {0};
    struct policy_loss p = {.b = b, .c = t->loss, .old = b->logprob, .weight = w.weight, .owner = w.owner};
    if (t->loss->old_logprobs == OLD_RECOMPUTE) {
        status = update_logprobs(t, t->m, b, w.old, NULL, e);
        p.old = w.old;
        if (t->loss->rollout_is == ROLLOUT_IS_TIS) p.sampled = b->logprob;
    }
    if (!status) status = run_minibatches(t, b, &w, &p, &sum, r, e);
    r->entropy = sum.entropy / sum.tokens;
    r->clip_fraction = sum.clipped / sum.tokens;
    r->approx_kl = sum.kl_old / sum.tokens;
    r->reference_kl = sum.kl_ref / sum.tokens;
    r->ratio_max = sum.ratio_max;
    r->mismatch = sum.mismatch;
    r->tokens = (int64_t)sum.tokens;
    return status;
}
