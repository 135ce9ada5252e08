/* Dynamic sampling (DAPO, arXiv 2503.14476, section 3.2): an estimator may drop groups (row_weight 0 for all their rollouts) and ask for others in
 * their place. The dropped groups leave the batch, as many new prompts as were asked for are sampled and scored, and the estimator computes again on all
 * of them; at most rollout.refill_rounds times a step. compute is without effect on the estimator's state, so it may be called again. */
#include "loop/run.h"

#include <string.h>

/* Copies pieces of equal width from two arrays: what is kept of a, then all of b. NULL in a: NULL. */
#define MERGE(FIELD, WIDTH, KEPT_A, N_B)                                                                                           \
    do {                                                                                                                           \
        if (a->FIELD) {                                                                                                            \
            TRY(arena_push_raw(arena, (WIDTH) * ((KEPT_A) + (N_B)) * (int64_t)sizeof *a->FIELD, (void **)&out->FIELD, e));         \
            memcpy(out->FIELD + (WIDTH) * (KEPT_A), b->FIELD, (size_t)((WIDTH) * (N_B)) * sizeof *a->FIELD);                       \
        }                                                                                                                          \
    } while (0)
#define KEEP(FIELD, WIDTH, TO, FROM, N)                                                                                            \
    do {                                                                                                                           \
        if (a->FIELD)                                                                                                              \
            memcpy(out->FIELD + (WIDTH) * (TO), a->FIELD + (WIDTH) * (FROM), (size_t)((WIDTH) * (N)) * sizeof *a->FIELD);          \
    } while (0)

static bool dropped(const struct batch *b, int64_t m)
{
    for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++)
        if (b->row_weight[i] > 0) return false;
    return true;
}

static void count_kept(const struct batch *a, int64_t *groups, int64_t *rollouts, int64_t *prompt_tokens, int64_t *tokens)
{
    *groups = *rollouts = *prompt_tokens = *tokens = 0;
    for (int64_t m = 0; m < a->n_groups; m++) {
        if (dropped(a, m)) continue;
        ++*groups;
        *rollouts += a->group_begin[m + 1] - a->group_begin[m];
        *prompt_tokens += a->prompt_begin[m + 1] - a->prompt_begin[m];
        *tokens += a->token_begin[a->group_begin[m + 1]] - a->token_begin[a->group_begin[m]];
    }
}

static void keep_group(const struct batch *a, struct batch *out, int64_t m, int64_t *to)
{
    const int64_t g = to[0]++, first = a->group_begin[m], n = a->group_begin[m + 1] - first;
    const int64_t prompt = a->prompt_begin[m + 1] - a->prompt_begin[m], token = a->token_begin[first];
    KEEP(row, 1, g, m, 1);
    KEEP(prompt_uid, 1, g, m, 1);
    KEEP(occurrence, 1, g, m, 1);
    KEEP(cluster, 1, g, m, 1);
    KEEP(prompt_ids, 1, to[2], a->prompt_begin[m], prompt);
    KEEP(finish, 1, to[1], first, n);
    KEEP(off_policy, 1, to[1], first, n);
    KEEP(completion, 1, to[1], first, n);
    KEEP(reward, 1, to[1], first, n);
    KEEP(component, a->n_components, to[1], first, n);
    KEEP(verdict, 1, to[1], first, n);
    KEEP(extracted, 1, to[1], first, n);
    KEEP(reason, 1, to[1], first, n);
    const int64_t tokens = a->token_begin[first + n] - token;
    KEEP(ids, 1, to[3], token, tokens);
    KEEP(logprob, 1, to[3], token, tokens);
    KEEP(entropy, 1, to[3], token, tokens);
    KEEP(ref_logprob, 1, to[3], token, tokens);
    for (int64_t i = 0; i < n; i++) out->token_begin[to[1] + i + 1] = to[3] + a->token_begin[first + i + 1] - token;
    to[1] += n, to[2] += prompt, to[3] += tokens;
    out->group_begin[g + 1] = to[1];
    out->prompt_begin[g + 1] = to[2];
}

/* The groups of a that were not dropped, then those of b, in the arena. Outputs of the estimator are left out: it computes again. */
static tare_status merge(const struct batch *a, const struct batch *b, struct arena *arena, struct batch *out, struct err *e)
{
    int64_t groups, rollouts, prompt_tokens, tokens, to[4] = {0};
    count_kept(a, &groups, &rollouts, &prompt_tokens, &tokens);
    *out = (struct batch){.step = a->step,
                          .n_groups = groups + b->n_groups,
                          .n_rollouts = rollouts + b->n_rollouts,
                          .n_tokens = tokens + b->n_tokens,
                          .n_components = a->n_components,
                          .n_clusters = a->n_clusters};
    MERGE(row, 1, groups, b->n_groups);
    MERGE(prompt_uid, 1, groups, b->n_groups);
    MERGE(occurrence, 1, groups, b->n_groups);
    MERGE(cluster, 1, groups, b->n_groups);
    MERGE(prompt_ids, 1, prompt_tokens, b->prompt_begin[b->n_groups]);
    MERGE(finish, 1, rollouts, b->n_rollouts);
    MERGE(off_policy, 1, rollouts, b->n_rollouts);
    MERGE(completion, 1, rollouts, b->n_rollouts);
    MERGE(reward, 1, rollouts, b->n_rollouts);
    MERGE(component, a->n_components, rollouts, b->n_rollouts);
    MERGE(verdict, 1, rollouts, b->n_rollouts);
    MERGE(extracted, 1, rollouts, b->n_rollouts);
    MERGE(reason, 1, rollouts, b->n_rollouts);
    MERGE(ids, 1, tokens, b->n_tokens);
    MERGE(logprob, 1, tokens, b->n_tokens);
    MERGE(entropy, 1, tokens, b->n_tokens);
    MERGE(ref_logprob, 1, tokens, b->n_tokens);
    TRY(arena_new(arena, int64_t, out->n_groups + 1, &out->group_begin, e));
    TRY(arena_new(arena, int64_t, out->n_groups + 1, &out->prompt_begin, e));
    TRY(arena_new(arena, int64_t, out->n_rollouts + 1, &out->token_begin, e));
    for (int64_t m = 0; m < a->n_groups; m++)
        if (!dropped(a, m)) keep_group(a, out, m, to);
    for (int64_t m = 0; m < b->n_groups; m++) {
        out->group_begin[groups + m + 1] = rollouts + b->group_begin[m + 1];
        out->prompt_begin[groups + m + 1] = prompt_tokens + b->prompt_begin[m + 1];
    }
    for (int64_t i = 0; i < b->n_rollouts; i++) out->token_begin[rollouts + i + 1] = tokens + b->token_begin[i + 1];
    return TARE_OK;
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
