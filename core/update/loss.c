/* The loss token by token: what the objective gives (objective.h), and what the host adds to each.
 *
 *   dL/dlogp = c (dv/dlogp + beta dKL/dlogp)   k1: 1;  k2: logp - ref;  k3: 1 - exp(ref - logp)     (Schulman, "Approximating KL divergence")
 *   dL/dH    = c (dv/dH - lambda)
 *
 * An estimate K from sampled tokens has the gradient of the KL only with the token's probability in it: kl_weight = ratio takes r K, r = pi/old, with
 * the derivative r (K + dK/dlogp); score the same at r = 1. kl_place = reward leaves it out of the loss and lowers the advantage of token t by
 * beta sum_{s >= t} K_s at old: the return of the rewards -beta K_s.
 *
 *   dL/dKL   = c (dv/dKL + beta)               exact: KL(pi || ref) over the whole vocabulary
 *
 * Truncated importance sampling (rollout_is = tis) multiplies v and its derivatives by min(exp(old - sampled), cap), a constant.
 *
 * Off-policy tokens (traces mixed into a group), for an objective that does not treat them itself: v = -f(pi) A with f(pi) = pi / (pi + gamma),
 * LUFFY's policy shaping (arXiv 2504.14945), with the probability under the policy that wrote the trace taken as 1.
 * df/dlogp = gamma pi / (pi + gamma)^2: tokens that the policy finds unlikely keep a gradient.
 */
#include "update/token_weights.h"
#include "update/update.h"

#include "base/rng.h"
#include "model/proof.h"

#include <math.h>
#include <string.h>

struct policy_loss {
    struct objective *objective;
    const struct batch *b;
    const struct loss_config *c;
    struct objective_columns columns;
    double *ratio;        /* [T] */
    const float *sampled; /* [T] for truncated importance sampling; NULL: none */
    bool traces;          /* the objective treats them itself */
    bool stops;           /* a ratio that is not finite is an error; else it shows in the gradient's norm, on all ranks */
    bool first;           /* the weights are still those that sampled: measure the mismatch */
};

struct term {
    double value, dlogp;
};

struct weighed {
    struct term token;
    double dentropy, dkl;
    bool off; /* a trace's */
};

/* Estimates of KL(pi || ref) from one token, and their derivative in logp. */
static struct term kl_estimate(enum kl_form form, double logp, double ref)
{
    const double d = ref - logp;
    if (form == KL_K1) return (struct term){-d, 1};
    if (form == KL_K2) return (struct term){0.5 * d * d, -d};
    return (struct term){exp(d) - d - 1, 1 - exp(d)}; /* k3 */
}

/* K of a token in the loss, by loss.kl_weight. ratio: pi/old. */
static struct term weighted_kl(const struct loss_config *c, struct term k, double ratio)
{
    if (c->kl_weight == KL_PLAIN) return k;
    const double r = c->kl_weight == KL_BY_RATIO ? ratio : 1;
    return (struct term){r * k.value, r * (k.value + k.dlogp)};
}

static struct term shaped(double gamma, double logp, double advantage)
{
    const double pi = exp(logp), all = pi + gamma;
    return (struct term){-pi / all * advantage, -gamma * pi / (all * all) * advantage};
}

/* exp(logp - old) of each token of a block; 1 for a trace, which no old policy sampled. */
static tare_status ratios(const struct policy_loss *p, const struct token_block *s, bool *finite, struct err *e)
{
    const struct batch *b = p->b;
    *finite = true;
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t t = s->token[i], owner = p->columns.owner[t];
        const double logp = s->logprob[i], old = p->columns.old[t];
        p->ratio[t] = b->off_policy && b->off_policy[owner] ? 1 : exp(logp - old);
        *finite = *finite && isfinite(p->ratio[t]);
        if (!*finite && p->stops)
            FAIL(e, TARE_E_NOT_FINITE, "rollout %lld: the ratio of token %lld is not finite (logprob %g, was %g); lower train.lr",
                 (long long)owner, (long long)(t - b->token_begin[owner]), logp, old);
    }
    return TARE_OK;
}

/* The objective's value and derivatives for token t, place i of the block: shaped for a trace that it does not treat, times the weight of
 * truncated importance sampling. */
static void weigh(const struct policy_loss *p, const struct objective_block *x, int64_t i, int64_t t, double logp,
                  struct weighed *out)
{
    const struct batch *b = p->b;
    const int64_t owner = p->columns.owner[t];
    const bool off = b->off_policy && b->off_policy[owner];
    struct term v = {x->value[i], x->dlogprob[i]};
    double is = 1;
    if (off && !p->traces)
        v = shaped(p->c->shaping, logp, b->token_advantage ? (double)b->token_advantage[t] : b->advantage[owner]);
    if (p->sampled && !off) is = fmin(exp((double)p->columns.old[t] - (double)p->sampled[t]), p->c->rollout_is_cap);
    *out = (struct weighed){{v.value * is, v.dlogp * is}, x->dentropy[i] * is, x->dkl ? x->dkl[i] * is : 0, off};
}

/* A loss that is not finite makes the gradient so: the one number that every rank looks at before the weights move. */
static void spoil(const struct token_block *s, struct head_grad_row *coef, struct tally *tally)
{
    for (int64_t i = 0; i < s->n; i++) coef[i] = (struct head_grad_row){NAN, 0, 0};
    tally->loss = (double)NAN;
}

/* Fills coef for a block of tokens and counts. */
static tare_status policy_token_loss(void *ctx, const struct token_block *s, struct head_grad_row *coef, struct tally *tally,
                                     struct err *e)
{
    const struct policy_loss *p = ctx;
    const struct batch *b = p->b;
    const double lambda = p->c->entropy_coef, beta = p->c->kl_place == KL_IN_LOSS ? p->c->kl_coef : 0;
    const bool exact = s->kl && p->c->kl == KL_EXACT;
    struct objective_block x;
    bool finite;
    TRY(ratios(p, s, &finite, e));
    if (!finite) {
        spoil(s, coef, tally);
        return TARE_OK;
    }
    TRY(objective_compute(p->objective, s, tally->sums, &x, e));
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t t = s->token[i];
        const double logp = s->logprob[i], w = p->columns.weight[t];
        struct weighed v;
        struct term k = {exact ? (double)s->kl[i] : 0, 0};
        if (!exact && b->ref_logprob) k = kl_estimate(p->c->kl, logp, b->ref_logprob[t]);
        const double kl = k.value;
        k = weighted_kl(p->c, k, p->ratio[t]);
        weigh(p, &x, i, t, logp, &v);
        coef[i] =
            (struct head_grad_row){(float)(w * (v.token.dlogp + (exact ? 0 : beta * k.dlogp))), (float)(-w * (lambda - v.dentropy)),
                                   s->kl ? (float)(w * ((exact ? beta : 0) + v.dkl)) : 0};
        tally->loss += w * (v.token.value + beta * k.value - lambda * (double)s->entropy[i]);
        tally->entropy += s->entropy[i];
        tally->clipped += x.clipped[i];
        tally->kl_old += v.off ? 0 : (p->ratio[t] - 1) - (logp - (double)p->columns.old[t]); /* k3 of KL(old || pi) */
        tally->kl_ref += kl;
        tally->tokens++;
        tally->ratio_max = fmax(tally->ratio_max, p->ratio[t]);
        if (p->first && !v.off) tally->mismatch = fmax(tally->mismatch, fabs(logp - (double)b->logprob[t]));
    }
    return TARE_OK;
}

tare_status token_weights(const struct batch *b, const struct loss_config *c, const struct minibatch *part, double *weight,
                          struct err *e)
{
    const int64_t *groups = part->groups, n = part->n;
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
                    w /= rows * (double)(c->aggregation_length ? c->aggregation_length : part->length);
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
    double *weight, *ratio, *sums;
    int64_t *owner, *order, *end;
    float *old, *now, *now_entropy; /* now: before each minibatch, for an objective that asks */
};

static tare_status work_new(struct trainer *t, const struct batch *b, struct work *w, struct err *e)
{
    struct arena *a = &t->work;
    *w = (struct work){0};
    if (objective_needs(t->objective) & TARE_OBJECTIVE_PASS) {
        TRY(arena_new(a, &w->now, b->n_tokens, e));
        TRY(arena_new(a, &w->now_entropy, b->n_tokens, e));
    }
    TRY(arena_new(a, &w->sums, objective_sums(t->objective) + 1, e));
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

/* Before the minibatch's gradients: an objective that asks for it gets the logprobs of all its tokens under the current weights. */
static tare_status prepare(struct trainer *t, const struct batch *b, const struct work *w, const struct minibatch *part,
                           struct err *e)
{
    if (!objective_prepares(t->objective)) return TARE_OK;
    if (w->now)
        TRY(microbatch_run(t,
                           &(struct microbatch_job){.b = b,
                                                    .groups = part->groups,
                                                    .n_groups = part->n,
                                                    .row_weight = b->row_weight,
                                                    .m = t->m,
                                                    .logprob = w->now,
                                                    .entropy = w->now_entropy},
                           e));
    return objective_prepare(t->objective, part->groups, part->n, w->now, w->now_entropy, e);
}

static tare_status run_minibatch(struct trainer *t, const struct work *w, struct policy_loss *p, struct minibatch part,
                                 struct tally *total, struct err *e)
{
    const struct batch *b = p->b;
    const struct loss_config *c = t->loss;
    const bool exact = (c->kl_coef > 0 && c->kl == KL_EXACT) || (objective_needs(t->objective) & TARE_OBJECTIVE_KL);
    if (!any_weight(b, part.groups, part.n)) return TARE_OK;
    TRY(token_weights(b, c, &part, w->weight, e));
    TRY(prepare(t, b, w, &part, e));
    return microbatch_run(t,
                          &(struct microbatch_job){.b = b,
                                                   .groups = part.groups,
                                                   .n_groups = part.n,
                                                   .row_weight = b->row_weight,
                                                   .m = t->m,
                                                   .exact_kl = exact,
                                                   .loss = policy_token_loss,
                                                   .ctx = p,
                                                   .tally = total,
                                                   .n_sums = objective_sums(t->objective)},
                          e);
}

static tare_status run_minibatches(struct trainer *t, struct work *w, struct policy_loss *p, struct tally *total,
                                   struct update_report *r, struct err *e)
{
    const int64_t length = longest(p->b);
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

/* kl_place = reward: a copy of *b whose token advantages have lost the KL from the token on. A trace's tokens have no old policy, and no KL. */
static tare_status reward_kl(struct trainer *t, const float *old, const struct batch **b, struct err *e)
{
    const struct loss_config *c = t->loss;
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
            if (!from->off_policy || !from->off_policy[i]) sum += kl_estimate(c->kl, old[k], from->ref_logprob[k]).value;
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
    t->collected = NULL;
    if (!b->n_groups) return TARE_OK;
    struct work w;
    arena_reset(&t->work);
    TRY(work_new(t, b, &w, e));
    TRY(weights_fault(t->m, e));
    struct tally sum = {.sums = w.sums};
    struct policy_loss p = {.objective = t->objective,
                            .b = b,
                            .c = t->loss,
                            .columns = {.old = b->logprob, .sampled = b->logprob, .weight = w.weight, .owner = w.owner},
                            .ratio = w.ratio,
                            .stops = t->train->on_nonfinite == NONFINITE_STOP,
                            .traces = objective_needs(t->objective) & TARE_OBJECTIVE_TRACES};
    if (t->loss->old_logprobs == OLD_RECOMPUTE) {
        TRY(update_logprobs(t, t->m, b, w.old, NULL, e));
        p.columns.old = w.old;
        if (t->loss->rollout_is == ROLLOUT_IS_TIS) p.sampled = b->logprob;
    }
    TRY(reward_kl(t, p.columns.old, &p.b, e));
    TRY(objective_begin(t->objective, p.b, &p.columns, e));
    TRY(run_minibatches(t, &w, &p, &sum, r, e));
    t->collected = w.sums;
    r->entropy = sum.entropy / sum.tokens;
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
    const double *collected = t->collected;
    t->collected = NULL;
    return collected ? objective_apply(t->objective, step, collected, e) : TARE_OK;
}
