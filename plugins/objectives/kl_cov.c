/* kl_cov: no clip, but a penalty on the few tokens with the highest covariance.
 *
 *   cov = (A - mean A)(logp - mean logp) over the minibatch
 *   v   = -r A + [token among the max(1, ratio n) largest cov] kl_coef |logp - old|
 *
 * Cui et al. 2025, "The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models"
 * (arXiv 2505.22617), KL-Cov, with |log r| as the estimate of the divergence from the old policy,
 * as in the authors' code. Of equal covariances the first token counts.
 */
#include "common/covariance.h"

enum { P_RATIO, P_COEF, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_RATIO] = TARE_FLOAT_PARAM("ratio", "2e-3", "share of the minibatch's tokens that are penalised", 0, 1,
                                 TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_COEF] = TARE_FLOAT_PARAM("kl_coef", "1", "weight of the penalty", 0, TARE_NO_MAX, TARE_PARAM_SWEEPABLE),
};

struct ranked {
    double cov;
    int64_t token;
};

/* A heap with the smallest of the chosen values on top. */
static int is_less(struct ranked a, struct ranked b)
{
    return a.cov < b.cov || (a.cov == b.cov && a.token > b.token);
}

static void sink_down(struct ranked *heap, int64_t n, int64_t at)
{
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_less(heap[child + 1], heap[child])) child++;
        if (!is_less(heap[child], heap[at])) return;
        const struct ranked swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

static tare_status annotate(const void *self, const tare_tokens *t, double *annotated, tare_error *error)
{
    const struct settings *s = self;
    const int64_t k = share_of(s->v[P_RATIO].f, t->n);
    struct ranked *heap = s->host->alloc(s->host->ctx, k * (int64_t)sizeof *heap, 0);
    if (!heap) return tare_fail(error, TARE_E_NOMEM, "no memory for %lld tokens", (long long)k);
    covariances(t, annotated);
    for (int64_t i = 0; i < k; i++) heap[i] = (struct ranked){annotated[i], i};
    for (int64_t i = k / 2; i >= 0; i--) sink_down(heap, k, i);
    for (int64_t i = k; i < t->n; i++) {
        if (!is_less(heap[0], (struct ranked){annotated[i], i})) continue;
        heap[0] = (struct ranked){annotated[i], i};
        sink_down(heap, k, 0);
    }
    for (int64_t i = 0; i < t->n; i++) annotated[i] = 0;
    for (int64_t i = 0; i < k; i++) annotated[heap[i].token] = 1;
    s->host->release(s->host->ctx, heap);
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        const double x = log_ratio(t, i), term = -exp(x) * t->advantage[i], beta = t->annotated[i] * s->v[P_COEF].f;
        put_outcome(out, i, term + beta * fabs(x), term + beta * ((x > 0) - (x < 0)), t->annotated[i] > 0);
    }
    return TARE_OK;
}

OBJECTIVE("kl_cov", "the plain surrogate with a penalty on the tokens of highest covariance", ABOUT("arXiv 2505.22617"), NO_WANTS,
          any_values, .flags = TARE_OBJECTIVE_OWN_CLIP | TARE_OBJECTIVE_OWN_DUAL_CLIP | TARE_OBJECTIVE_LOOKS_AHEAD,
          .sizes = one_number, .annotate = annotate, .compute = compute)
