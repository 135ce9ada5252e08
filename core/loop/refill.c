/* Dynamic sampling (DAPO, arXiv 2503.14476, section 3.2): estimator or curriculum may drop groups (rollout_weight 0 for all their rollouts) and ask
 * for others in their place. The dropped groups leave the batch (the sums and records of the estimator's state still count them), as many new
 * prompts as were asked for are sampled and scored, and the estimator computes again on all of them; at most rollout.refill_rounds times a
 * step. compute is without effect on the estimator's state, so it may be called again. */
#include "loop/refill.h"

#include "base/log.h"
#include "batch/select.h"
#include "loop/step.h"

enum { KEPT = BATCH_ALL & ~BATCH_ESTIMATE }; /* the estimator computes again */

static bool dropped(const struct batch *b, int64_t m)
{
    for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++)
        if (b->rollout_weight[i] > 0) return false;
    return true;
}

/* The groups of a that were dropped leave; the others, then those of b, become b. */
static tare_status merge(struct estimator *est, const struct batch *a, struct batch *b, struct arena *arena, struct err *e)
{
    int64_t *kept, *left, n = 0;
    struct batch parts[2] = {*a, *b}, gone;
    TRY(arena_new_raw(arena, &kept, a->n_groups, e));
    TRY(arena_new_raw(arena, &left, a->n_groups, e));
    for (int64_t m = 0; m < a->n_groups; m++) {
        if (dropped(a, m))
            left[m - n] = m;
        else
            kept[n++] = m;
    }
    TRY(batch_select(a, (struct batch_indices){left, a->n_groups - n}, KEPT, arena, &gone, e));
    TRY(estimate_drop(est, &gone, arena, e));
    TRY(batch_select(a, (struct batch_indices){kept, n}, KEPT, arena, &parts[0], e));
    return batch_concat((struct batch_parts){parts, 2}, KEPT, arena, b, e);
}

static int64_t groups_wanted(const struct run *r)
{
    const int64_t estimator = estimate_metrics(r->learner.estimator)->refill_groups,
                  curriculum = curriculum_replaces(r->curriculum);
    return estimator > INT64_MAX - curriculum ? INT64_MAX : estimator + curriculum;
}

/* Said once: from here on the reader knows that steps may learn from less than was asked for. */
static void tell_short(struct run *r)
{
    const int64_t short_of = groups_wanted(r);
    if (short_of < 1 || r->refill_warned || r->comm.rank) return;
    r->refill_warned = true;
    log_warn(
        "step %lld: %s asks for %lld more group%s than rollout.refill_rounds = %lld rounds of %lld give; the step learns from what there is. Raise rollout.refill_rounds to fill it (said once)",
        (long long)r->step + 1, curriculum_replaces(r->curriculum) ? r->config->curriculum.plugin : r->config->estimator.plugin,
        (long long)short_of, short_of > 1 ? "s" : "", (long long)r->config->rollout.refill_rounds,
        (long long)r->config->rollout.prompts);
}

tare_status refill(struct run *r, struct err *e)
{
    const struct rollout_config *c = &r->config->rollout;
    for (int64_t round = 0; round < c->refill_rounds; round++) {
        const struct batch first = r->batch;
        int64_t want = groups_wanted(r);
        if (want > c->prompts) want = c->prompts;
        if (want < 1) break;
        TRY(step_collect(r, want, e));
        STAGE("refill", merge(r->learner.estimator, &first, &r->batch, &r->arena, e));
        STAGE("estimate", learner_estimate(r, e));
    }
    tell_short(r);
    observe_set(r->observe, "rollout/groups_sampled", (double)r->n_met);
    return TARE_OK;
}
