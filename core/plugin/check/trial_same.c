/* Compares the outputs of two steps. */
#include "plugin/check/trial.h"

#include <math.h>
#include <string.h>

tare_status trial_same_numbers(const double *was, const double *is, int64_t n, const char *what, struct err *e)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&was[i], &is[i], sizeof *was))
            FAIL(e, TARE_E_PLUGIN, "%s: number %lld is %.17g instead of %.17g", what, (long long)i, is[i], was[i]);
    return TARE_OK;
}

static bool close_to(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * (1 + fabs(a));
}

tare_status trial_same_outputs(const struct trial *a, const struct trial *b, bool to_the_bit, const char *what, struct err *e)
{
    const struct {
        const char *name;
        const double *was, *is;
        int64_t n;
    } columns[] = {{"advantages", a->out.advantage, b->out.advantage, b->b.n_rollouts},
                   {"weights of rollouts", a->out.rollout_weight, b->out.rollout_weight, b->b.n_rollouts},
                   {"baselines", a->out.baseline, b->out.baseline, b->b.n_groups},
                   {"scales", a->out.scale, b->out.scale, b->b.n_groups},
                   {"confidences", a->out.confidence, b->out.confidence, b->b.n_groups}};
    for (int k = 0; k < 5; k++)
        for (int64_t i = 0; i < columns[k].n; i++) {
            const double was = columns[k].was[i], is = columns[k].is[i];
            if (to_the_bit ? memcmp(&was, &is, sizeof was) && !(isnan(was) && isnan(is)) : !close_to(was, is))
                FAIL(e, TARE_E_PLUGIN, "%s: %s: number %lld is %.17g instead of %.17g", what, columns[k].name, (long long)i, is,
                     was);
        }
    if (b->out.token_advantage)
        for (int64_t t = 0; t < b->b.n_tokens; t++) {
            const float was = a->out.token_advantage[t], is = b->out.token_advantage[t];
            if (!b->b.sampled[t]) continue;
            if (to_the_bit ? memcmp(&was, &is, sizeof was) != 0 : fabsf(was - is) > 1e-5f * (1 + fabsf(was)))
                FAIL(e, TARE_E_PLUGIN, "%s: token advantages: number %lld is %.9g instead of %.9g", what, (long long)t, (double)is,
                     (double)was);
        }
    return TARE_OK;
}

tare_status trial_same(const struct trial *a, const struct trial *b, const char *what, struct err *e)
{
    TRY(trial_same_outputs(a, b, true, what, e));
    if (a->out.extra_groups != b->out.extra_groups)
        FAIL(e, TARE_E_PLUGIN, "%s: extra_groups is %lld instead of %lld", what, (long long)b->out.extra_groups,
             (long long)a->out.extra_groups);
    TRY(trial_same_numbers(a->prepared, b->prepared, a->prepare_size, "prepared sums", e));
    TRY(trial_same_numbers(a->collected, b->collected, a->collect_size, "collected sums", e));
    return trial_same_numbers(a->records, b->records, a->b.n_groups * a->record_size, "records", e);
}
