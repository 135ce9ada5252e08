/* rae: rewards minus a moving mean of their role's rewards, kept over the run. For games with
 * several roles.
 *
 *   convention paper:      b <- alpha b + (1 - alpha) mean,   A[i] = R[i] - b   b starts at 0
 *   (2)
 *   convention prime-rl:   A[i] = R[i] - b,   b <- alpha b + (1 - alpha) mean
 *   b starts at the first mean
 *
 * mean: the mean of the role's rewards in the step. Liu et al. 2025, "SPIRAL: Self-Play on Zero-Sum
 * Games Incentivizes Reasoning via Multi-Agent Multi-Turn Reinforcement Learning", section 3,
 * equation 2 and algorithm 1 (arXiv 2506.24119): role-conditioned advantage estimation. The paper
 * processes trajectories one by one and computes the advantage after the baseline has moved, A =
 * alpha (R - b); prime-rl processes groups and computes it before. Here the baseline moves once per
 * step, which equals their result if a role has one trajectory, or one group, in the step. With
 * more, the order of the rollouts matters there but not here.
 *
 * A role is a cluster of prompts: a field of the row names the role, and codebook.plugin = field
 * with codebook.field.field = role makes clusters of them. Prompts without a cluster (-1, and all
 * prompts without a codebook) share one separate baseline; the host refuses a cluster that the
 * codebook does not have. It has no scale, and no group: rollout.group_size may be 1.
 */
#include "common/estimator.h"
#include "common/state.h"

#include <math.h>
#include <string.h>

enum { P_ALPHA, P_CONVENTION, P_COUNT };
enum { PAPER, PRIME_RL };
static const char *const CONVENTIONS[] = {"paper", "prime-rl", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_ALPHA] = TARE_FLOAT_PARAM("alpha", "0.95", "alpha, the share of the baseline that is kept from one step to the next (eq. 2)",
                                 0, 1, TARE_PARAM_SWEEPABLE),
    [P_CONVENTION] = TARE_CHOICE_PARAM("convention", "paper",
                                       "paper: the baseline is updated before the advantage is computed; prime-rl: after it",
                                       CONVENTIONS, TARE_PARAM_LOCKED_ON_RESUME),
};

enum { W_CLUSTER, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_CLUSTER] = {.name = "cluster", .axis = TARE_AXIS_GROUP, .type = TARE_I32, .flags = TARE_WANT_OPTIONAL, .width = 1},
};

struct role {
    double b, met; /* met: 1 when the role has had rewards */
};
struct rae {
    const tare_host *host;
    const tare_value *v;
    int64_t n;         /* clusters, and one for prompts without a cluster */
    struct role *each; /* [n] */
};

static void destroy(void *self)
{
    struct rae *s = self;
    s->host->release(s->host->ctx, s->each);
    s->host->release(s->host->ctx, s);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_host *host = setup->host;
    struct rae *s = host->alloc(host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory for the estimator");
    *s = (struct rae){.host = host, .v = setup->values, .n = (setup->n_clusters > 0 ? setup->n_clusters : 0) + 1};
    s->each = host->alloc(host->ctx, s->n * (int64_t)sizeof *s->each, 0);
    if (!s->each) {
        destroy(s);
        return tare_fail(error, TARE_E_NOMEM, "no memory for the baselines of %lld roles", (long long)setup->n_clusters);
    }
    *self = s;
    return TARE_OK;
}

/* ---------------------------------------- sums, before and after the step: [n, 2] of R and 1 */

static int64_t role_of(const struct rae *s, const tare_batch *batch, int64_t group)
{
    const int32_t *cluster = TARE_COLUMN(batch, W_CLUSTER, int32_t), k = cluster ? cluster[group] : -1;
    return k >= 0 && k < s->n - 1 ? k : s->n - 1;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)error;
    out->prepare = out->collect = 2 * ((const struct rae *)self)->n;
    return TARE_OK;
}

static tare_status add_rewards(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    double *S = sum + 2 * role_of(self, batch, group);
    (void)error;
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) {
        S[0] += batch->reward[i];
        S[1] += 1;
    }
    return TARE_OK;
}

/* Returns the role after a step with these sums; without rewards it does not change. */
static struct role moved_role(const struct rae *s, int64_t k, const double *sum)
{
    struct role r = s->each[k];
    if (!(sum[2 * k + 1] > 0)) return r;
    const double mean = sum[2 * k] / sum[2 * k + 1], alpha = s->v[P_ALPHA].f;
    if (!(r.met > 0) && s->v[P_CONVENTION].i == PRIME_RL) r.b = mean;
    return (struct role){alpha * r.b + (1 - alpha) * mean, 1};
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const struct rae *s = self;
    (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t k = role_of(s, batch, m);
        const double after = moved_role(s, k, prepared).b;
        const double before = s->each[k].met > 0 ? s->each[k].b : after;
        const double b = s->v[P_CONVENTION].i == PAPER ? after : before;
        for (int64_t i = batch->group_begin[m]; i < batch->group_begin[m + 1]; i++) out->advantage[i] = batch->reward[i] - b;
        out->baseline[m] = b;
    }
    return TARE_OK;
}

static tare_status apply(void *self, const tare_update *update, tare_error *error)
{
    struct rae *s = self;
    (void)error;
    for (int64_t k = 0; k < s->n; k++) s->each[k] = moved_role(s, k, update->collected);
    return TARE_OK;
}

/* ---------------------------------------- state: n, then b and met of each role */

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct rae *s = self;
    (void)error;
    return state_write(out, s->n, s->each, s->n * (int64_t)sizeof *s->each);
}

static tare_status check(const void *entry, int64_t k, tare_error *error)
{
    const struct role *r = entry;
    if (!isfinite(r->b) || (r->met != 0 && r->met != 1))
        return tare_fail(error, TARE_E_CORRUPT, "the baseline of role %lld makes no sense", (long long)k);
    return TARE_OK;
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct rae *s = self;
    const struct state_entries of = {s->n, sizeof *s->each, "roles", check};
    return state_load(s->host, in, &of, s->each, error);
}

static tare_status describe(const void *self, const tare_stream *out, tare_error *error)
{
    const struct rae *s = self;
    (void)error;
    tare_status status = state_numbers(out, "{", "b", &s->each->b, s->n, 2);
    if (!status) status = state_numbers(out, ",", "met", &s->each->met, s->n, 2);
    return status ? status : tare_print(out, "}");
}

STATEFUL("rae", "rewards minus a moving mean of their role's rewards", "arXiv 2506.24119, equation 2", .create = create,
         .destroy = destroy, .save = save, .load = load, .sizes = sizes, .prepare = add_rewards, .compute = compute,
         .collect = add_rewards, .apply = apply, .describe = describe)
