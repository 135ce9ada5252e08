/* The loss of a token: the objective's part, a plugin (the clip is in plugins/objectives/ppo.c), and
 * the terms that the host adds.
 *
 *   dL/dlogp = c (dv/dlogp + beta dKL/dlogp)   k1: 1;  k2: logp - ref;  k3: 1 - exp(ref - logp)
 *                                              (Schulman, "Approximating KL divergence")
 *   dL/dH    = c (dv/dH - lambda)
 *
 * An estimate K from sampled tokens has the gradient of the KL only if it is multiplied by the
 * token's probability: kl_weight = ratio uses r K, r = pi/old, with the derivative r (K +
 * dK/dlogp); kl_weight = score uses the same at r = 1. kl_place = reward omits it from the loss and
 * lowers the advantage of token t by beta sum_{s >= t} K_s at old: the return of the rewards -beta
 * K_s.
 *
 *   dL/dKL   = c (dv/dKL + beta)               exact: KL(pi || ref) over the whole vocabulary
 *
 * Truncated importance sampling (rollout_is = tis) multiplies v and its derivatives by min(exp(old
 * - sampled), cap), a constant.
 *
 * Off-policy tokens (traces mixed into a group), if the objective does not handle them: v = -f(pi)
 * A with f(pi) = pi / (pi + gamma), LUFFY's policy shaping (arXiv 2504.14945), where the
 * probability under the policy that wrote the trace counts as 1. df/dlogp = gamma pi / (pi +
 * gamma)^2: tokens that are unlikely under the policy keep a gradient. */
#include "update/loss.h"
#include "update/microbatch.h"

#include <math.h>

struct weighed {
    struct loss_term token;
    double dentropy, dkl;
    bool off; /* a token of a trace */
};

struct loss_term loss_kl_estimate(enum kl_form form, double logp, double ref)
{
    const double d = ref - logp;
    if (form == KL_K1) return (struct loss_term){-d, 1};
    if (form == KL_K2) return (struct loss_term){0.5 * d * d, -d};
    return (struct loss_term){exp(d) - d - 1, 1 - exp(d)}; /* k3 */
}

/* Returns K of a token as it enters the loss, by loss.kl_weight. ratio: pi/old. */
static struct loss_term weighted_kl(const struct loss_config *c, struct loss_term k, double ratio)
{
    if (c->kl_weight == KL_PLAIN) return k;
    const double r = c->kl_weight == KL_BY_RATIO ? ratio : 1;
    return (struct loss_term){r * k.value, r * (k.value + k.dlogp)};
}

static struct loss_term shaped_trace(double gamma, double logp, double advantage)
{
    const double pi = exp(logp), all = pi + gamma;
    return (struct loss_term){-pi / all * advantage, -gamma * pi / (all * all) * advantage};
}

/* p->ratio[t] = exp(logp - old) for each token of a block; 1 for off-policy traces, which have no
 * old policy. */
static tare_status compute_ratios(const struct policy_loss *p, const struct token_block *s, bool *finite, struct err *e)
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

/* Computes the objective's value and derivatives for token t, entry i of the block: shaped if it is
 * a trace that the objective does not handle, and multiplied by the truncated importance weight. */
static void weigh_token(const struct policy_loss *p, const struct objective_block *x, int64_t i, int64_t t, double logp,
                        struct weighed *out)
{
    const struct batch *b = p->b;
    const int64_t owner = p->columns.owner[t];
    const bool off = b->off_policy && b->off_policy[owner];
    struct loss_term v = {x->value[i], x->dlogprob[i]};
    double is = 1;
    if (off && !p->traces)
        v = shaped_trace(p->c->shaping, logp, b->token_advantage ? (double)b->token_advantage[t] : b->advantage[owner]);
    if (p->sampled && !off) is = fmin(exp((double)p->columns.old[t] - (double)p->sampled[t]), p->c->rollout_is_cap);
    *out = (struct weighed){{v.value * is, v.dlogp * is}, x->dentropy[i] * is, x->dkl ? x->dkl[i] * is : 0, off};
}

/* Makes the gradient NaN as well as the loss: its norm is the number that every rank checks before
 * the weights change. */
static void poison_block(const struct token_block *s, struct head_grad_row *coef, struct tally *tally)
{
    for (int64_t i = 0; i < s->n; i++) coef[i] = (struct head_grad_row){NAN, 0, 0};
    tally->loss = (double)NAN;
}

tare_status loss_policy_tokens(void *ctx, const struct token_block *s, struct head_grad_row *coef, struct tally *tally,
                               struct err *e)
{
    const struct policy_loss *p = ctx;
    const struct batch *b = p->b;
    const double lambda = p->c->entropy_coef, beta = p->c->kl_place == KL_IN_LOSS ? p->c->kl_coef : 0;
    const bool exact = s->kl && p->c->kl == KL_EXACT;
    struct objective_block x;
    bool finite;
    TRY(compute_ratios(p, s, &finite, e));
    if (!finite) {
        poison_block(s, coef, tally);
        return TARE_OK;
    }
    TRY(objective_compute(p->objective, s, &x, e));
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t t = s->token[i];
        const double logp = s->logprob[i], w = p->columns.weight[t];
        struct weighed v;
        struct loss_term k = {exact ? (double)s->kl[i] : 0, 0};
        if (!exact && b->ref_logprob) k = loss_kl_estimate(p->c->kl, logp, b->ref_logprob[t]);
        const double kl = k.value;
        k = weighted_kl(p->c, k, p->ratio[t]);
        weigh_token(p, &x, i, t, logp, &v);
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

tare_status loss_policy_share(void *ctx, int64_t rollout, double *share, struct err *e)
{
    const struct policy_loss *p = ctx;
    return objective_collect(p->objective, rollout, share, e);
}
