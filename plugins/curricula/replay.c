/* replay: a share of each step is used for rows that were solved but are not mastered.
 *
 *   a row is waiting when     0 < p(x) <= most,    p(x): the pass rate of its last group
 *   floor(share n) of n rows  are the waiting rows that occurred longest ago, or all if fewer wait
 *   the others                are of the plain order; displaced rows occur in a later epoch
 *
 * A row that occurs again is sampled with the current policy; afterwards it waits again or not, by
 * its new pass rate. So hard rows whose first success is easily lost occur more than once an epoch.
 *
 * The idea to replay questions that are sometimes solved is from ExGRPO (Zhan et al. 2025, arXiv
 * 2510.02245), which keeps the old rollouts and trains on them off-policy, with importance weights,
 * questions of medium pass rate first. This plugin repeats the row and not the rollouts that solved
 * it. A curriculum sees neither tokens nor logprobs, and a step of this engine learns only from the
 * current policy's rollouts and from the rows' own completions; old groups would have to be stored
 * in every checkpoint with both. */
#include "common/curriculum.h"
#include "common/rows.h"

enum { P_SHARE, P_MOST, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_SHARE] = TARE_FLOAT_PARAM("share", "0.25", "share of a step that is used for waiting rows", 0, 1, TARE_PARAM_SWEEPABLE),
    [P_MOST] = TARE_FLOAT_PARAM("most", "0.5", "the largest pass rate of a waiting row", 0, 1,
                                TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
};

/* met: [R] for a waiting row, when it last occurred, as a number that grows with each group;
 * otherwise 0. */
struct replay {
    const tare_host *host;
    const tare_value *v;
    int64_t n, *met;
};

static void destroy(void *self)
{
    struct replay *x = self;
    x->host->release(x->host->ctx, x->met);
    x->host->release(x->host->ctx, x);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_host *host = setup->host;
    const int64_t n = setup->dataset->n_rows;
    struct replay *x = host->alloc(host->ctx, sizeof *x, 0);
    if (!x) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *x = (struct replay){.host = host, .v = setup->values, .n = n};
    x->met = host->alloc(host->ctx, (n + 1) * (int64_t)sizeof *x->met, 0);
    if (!x->met) {
        host->release(host->ctx, x);
        return tare_fail(error, TARE_E_NOMEM, "no memory for %lld rows", (long long)n);
    }
    *self = x;
    return TARE_OK;
}

/* Returns the waiting row that occurred longest ago, of those that are not taken, or -1. */
static int64_t oldest_waiting(const struct replay *x, const uint8_t *taken)
{
    int64_t best = -1;
    for (int64_t i = 0; i < x->n; i++)
        if (x->met[i] && !taken[i] && (best < 0 || x->met[i] < x->met[best])) best = i;
    return best;
}

static tare_status next(const void *self, const tare_draw *draw, tare_choice *out, tare_error *error)
{
    const struct replay *x = self;
    uint8_t *taken = x->host->alloc(x->host->ctx, x->n + 1, 0);
    if (!taken) return tare_fail(error, TARE_E_NOMEM, "no memory for %lld rows", (long long)x->n);
    for (int64_t k = 0; k < draw->n_drawn; k++) taken[draw->drawn[k]] = 1;
    for (int64_t k = 0; k < draw->n; k++) taken[draw->ordered[k]] = 1;
    const int64_t most = (int64_t)floor(x->v[P_SHARE].f * (double)draw->n);
    int64_t count = 0;
    for (; count < most; count++) {
        const int64_t i = oldest_waiting(x, taken);
        if (i < 0) break;
        taken[i] = 1;
        out->row[count] = i;
    }
    for (int64_t k = count; k < draw->n; k++) out->row[k] = draw->ordered[k - count];
    x->host->release(x->host->ctx, taken);
    return TARE_OK;
}

static tare_status apply(void *self, const tare_batch *groups, tare_error *error)
{
    struct replay *x = self;
    int64_t waiting = 0, last = 0;
    (void)error;
    for (int64_t i = 0; i < x->n; i++)
        if (x->met[i] > last) last = x->met[i];
    for (int64_t m = 0; m < groups->n_groups; m++) {
        int64_t right, verified;
        group_passes(groups, m, &right, &verified);
        if (!verified) continue;
        const int waits = right > 0 && (double)right <= x->v[P_MOST].f * (double)verified;
        x->met[row_of(groups, m)] = waits ? ++last : 0;
    }
    for (int64_t i = 0; i < x->n; i++) waiting += x->met[i] > 0;
    x->host->metric(x->host->ctx, "rows_waiting", (double)waiting, TARE_METRIC_LAST);
    return TARE_OK;
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct replay *x = self;
    (void)error;
    return counts_save(x->met, x->n, out);
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct replay *x = self;
    return counts_load(x->host, in, x->n, "rows", x->met, error);
}

CURRICULUM("replay", "rows that were solved but are not mastered occur again", ABOUT("after arXiv 2510.02245"), W_COUNT, 1,
           .save = save, .load = load, .next = next, .apply = apply)
