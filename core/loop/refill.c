/* Dynamic sampling (DAPO, arXiv 2503.14476, section 3.2). The estimator or the curriculum may drop
 * groups (rollout_weight 0 for all their rollouts) and ask for replacements. Dropped groups leave
 * the batch, though the estimator's sums and records still count them; as many new prompts as
 * requested are sampled and verified, and the estimator computes again on all groups. This repeats
 * at most rollout.refill_rounds times per step. `compute` does not change the estimator's state, so
 * it may be called again. */
#include "loop/refill.h"

#include "base/log.h"
#include "batch/select.h"
#include "loop/step.h"

/* all columns except those that the estimator computes again */
enum { KEPT = BATCH_ALL & ~BATCH_ESTIMATE };

static bool is_dropped(const struct batch *b, int64_t m)
{
    for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++)
        if (b->rollout_weight[i] > 0) return false;
    return true;
}

/* b becomes the groups of a that were not dropped, followed by those of b. */
static tare_status merge_groups(struct estimator *est, const struct batch *a, struct batch *b, struct arena *arena, struct err *e)
{
    int64_t *kept, *dropped, n = 0;
    struct batch parts[2] = {*a, *b}, removed;
    TRY(arena_new_raw(arena, &kept, a->n_groups, e));
    TRY(arena_new_raw(arena, &dropped, a->n_groups, e));
    for (int64_t m = 0; m < a->n_groups; m++) {
        if (is_dropped(a, m))
            dropped[m - n] = m;
        else
            kept[n++] = m;
    }
    TRY(batch_select(a, (struct batch_indices){dropped, a->n_groups - n}, KEPT, arena, &removed, e));
    TRY(estimate_drop(est, &removed, arena, e));
    TRY(batch_select(a, (struct batch_indices){kept, n}, KEPT, arena, &parts[0], e));
    return batch_concat((struct batch_parts){parts, 2}, KEPT, arena, b, e);
}

static int64_t groups_wanted(const struct run *r)
{
    const int64_t estimator = estimate_metrics(r->learner.estimator)->extra_groups,
                  curriculum = curriculum_extra_groups(r->curriculum);
    return estimator > INT64_MAX - curriculum ? INT64_MAX : estimator + curriculum;
}

/* Warns once that steps may train on fewer groups than requested. */
static void warn_still_short(struct run *r)
{
    const int64_t short_of = groups_wanted(r);
    if (short_of < 1 || r->refill_warned || r->comm.rank) return;
    r->refill_warned = true;
    log_warn(
        "step %lld: %s asks for %lld more group%s after rollout.refill_rounds = %lld rounds of %lld; training on the groups collected. Raise rollout.refill_rounds to fill the step (warned once)",
        (long long)r->step + 1, curriculum_extra_groups(r->curriculum) ? r->config->curriculum.plugin : r->config->estimator.plugin,
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
        STAGE("refill", merge_groups(r->learner.estimator, &first, &r->batch, &r->arena, e));
        STAGE("estimate", learner_estimate(r, e));
    }
    warn_still_short(r);
    observe_set(r->observe, "rollout/groups_sampled", (double)r->n_drawn);
    return TARE_OK;
}
