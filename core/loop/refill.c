/* Dynamic sampling (DAPO, arXiv 2503.14476, section 3.2): an estimator may drop groups (row_weight 0 for all their rollouts) and ask for others in
 * their place. The dropped groups leave the batch, as many new prompts as were asked for are sampled and scored, and the estimator computes again on all
 * of them; at most rollout.refill_rounds times a step. compute is without effect on the estimator's state, so it may be called again. */
#include "loop/run.h"

#include "batch/select.h"

#include <string.h>

enum { KEPT = BATCH_ALL & ~BATCH_ESTIMATE }; /* the estimator computes again */

static bool dropped(const struct batch *b, int64_t m)
{
    for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++)
        if (b->row_weight[i] > 0) return false;
    return true;
}

/* The groups of a that were not dropped, then those of b. */
static tare_status merge(const struct batch *a, const struct batch *b, struct arena *arena, struct batch *out, struct err *e)
{
    int64_t *kept, n = 0;
    struct batch parts[2] = {*a, *b};
    TRY(arena_new_raw(arena, int64_t, a->n_groups, &kept, e));
    for (int64_t m = 0; m < a->n_groups; m++)
        if (!dropped(a, m)) kept[n++] = m;
    TRY(batch_select(a, (struct batch_indices){kept, n}, KEPT, arena, &parts[0], e));
    return batch_concat((struct batch_parts){parts, 2}, KEPT, arena, out, e);
}

/* A prompt that the step has met already, dropped or not, draws anew. */
static void count_occurrences(struct batch *more, const uint64_t *uids, int64_t n)
{
    for (int64_t m = 0; m < more->n_groups; m++)
        for (int64_t k = 0; k < n; k++) more->occurrence[m] += uids[k] == more->prompt_uid[m];
}

tare_status stage_refill(struct run *r, struct err *e)
{
    const int64_t rounds = r->config->rollout.refill_rounds;
    struct arena *a = &r->arena;
    uint64_t *seen;
    int64_t n_seen = r->batch.n_groups, sampled = r->batch.n_groups;
    TRY(arena_new(a, uint64_t, n_seen * (rounds + 1), &seen, e));
    memcpy(seen, r->batch.prompt_uid, (size_t)n_seen * sizeof *seen);
    for (int64_t round = 0; round < rounds; round++) {
        int64_t want = estimate_metrics(r->estimator)->refill_groups;
        if (want > r->config->rollout.prompts) want = r->config->rollout.prompts;
        if (want < 1) break;
        struct batch first = r->batch, merged;
        r->batch = (struct batch){.step = first.step};
        TRY(stage_data(r, want, e));
        count_occurrences(&r->batch, seen, n_seen);
        memcpy(seen + n_seen, r->batch.prompt_uid, (size_t)want * sizeof *seen);
        n_seen += want, sampled += want;
        TRY(stage_rollout(r, e));
        TRY(stage_verify(r, e));
        TRY(stage_gather(r, e));
        TRY(cluster_assign(&r->cluster, &r->batch, a, e));
        TRY(stage_reference(r, e));
        TRY(merge(&first, &r->batch, a, &merged, e));
        r->batch = merged;
        TRY(estimate_run(r->estimator, &r->batch, a, e));
    }
    observe_set(r->observe, "rollout/groups_sampled", (double)sampled);
    return TARE_OK;
}
