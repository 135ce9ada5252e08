/* The micro-batches that take most memory, for planning a run. On a counting backend nothing is
 * computed, so measuring them costs next to nothing.
 *
 * A row costs more than a target, and a micro-batch has at most train.micro_tokens rows, or is one
 * longer rollout. So the largest have as many rows as possible, up to train.micro_tokens; and of
 * those the ones with the most completion rows have the most targets. */
#include "update/largest.h"
#include "update/microbatch.h"

#include "model/pack.h"

struct lengths {
    int64_t prompt, completion, one_more; /* the first `one_more` completions have a token more */
};

static int64_t larger_count(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller_count(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Computes the lengths at which all rollouts of `l` together have the maximum number of rows. */
static struct lengths lengths_of(const struct train_config *train, const struct update_largest *l)
{
    const int64_t rollouts = l->groups * l->rollouts, prompts = train->prompt_sharing ? l->groups : rollouts;
    const int64_t most = larger_count(train->micro_tokens, prompts), of_completions = rollouts * (l->completion - 1);
    if (prompts * l->prompt + of_completions <= most) return (struct lengths){l->prompt, l->completion, 0};
    const int64_t wanted = (most - of_completions + prompts - 1) / prompts;
    struct lengths x = {.prompt = larger_count(1, smaller_count(wanted, l->prompt))};
    const int64_t remaining = smaller_count(larger_count(most - prompts * x.prompt, 0), of_completions);
    x.completion = remaining / rollouts + 1;
    x.one_more = remaining % rollouts;
    return x;
}

static tare_status no_loss(void *ctx, const struct token_block *s, struct head_grad_row *coef, struct tally *tally, struct err *e)
{
    (void)ctx, (void)s, (void)coef, (void)tally, (void)e;
    return TARE_OK;
}

static tare_status run_passes(struct trainer *t, const struct update_largest *l, struct pack_group *parts, int64_t n, struct err *e)
{
    struct microbatch_job job = {.m = t->m, .exact_kl = l->exact_kl, .loss = no_loss};
    TRY(microbatch_alone(t, &job, parts, n, e));
    if (!l->forward) return TARE_OK;
    job = (struct microbatch_job){.m = t->m};
    TRY(microbatch_alone(t, &job, parts, n, e));
    job.m = t->reference;
    return t->reference ? microbatch_alone(t, &job, parts, n, e) : TARE_OK;
}

static tare_status count_memory(struct trainer *t, const struct update_largest *l, struct lengths x, struct update_memory *out,
                                struct err *e)
{
    const int64_t rollouts = l->groups * l->rollouts;
    const int32_t *ids, **completion;
    int64_t *length, rows = 0, targets = 0;
    struct pack_group *parts;
    arena_reset(&t->work);
    arena_reset(&t->pack);
    TRY(arena_new(&t->work, &ids, larger_count(x.prompt, x.completion + 1), e));
    TRY(arena_new(&t->work, &completion, rollouts, e));
    TRY(arena_new(&t->work, &length, rollouts, e));
    TRY(arena_new(&t->work, &parts, l->groups, e));
    for (int64_t i = 0; i < rollouts; i++) {
        completion[i] = ids;
        length[i] = x.completion + (i < x.one_more);
        targets += length[i];
    }
    for (int64_t g = 0; g < l->groups; g++) {
        parts[g] = (struct pack_group){.prompt = ids,
                                       .prompt_len = x.prompt,
                                       .n = l->rollouts,
                                       .completion = completion + g * l->rollouts,
                                       .completion_len = length + g * l->rollouts};
        rows += pack_group_rows(&parts[g], t->train->prompt_sharing);
    }
    out->rows = larger_count(out->rows, rows);
    out->targets = larger_count(out->targets, targets);
    return run_passes(t, l, parts, l->groups, e);
}

static int64_t cache_bytes(const struct model *m, const struct kv_cache *c)
{
    return c->n_layers * 2 * kv_cache_bytes(m, c->n_blocks);
}

tare_status update_count(struct trainer *t, const struct update_largest *l, struct update_memory *out, struct err *e)
{
    const struct update_largest one = {1, 1, l->prompt, l->completion, l->exact_kl, l->forward};
    *out = (struct update_memory){0};
    TRY(count_memory(t, l, lengths_of(t->train, l), out, e));
    if (l->prompt + l->completion - 1 > t->train->micro_tokens)
        TRY(count_memory(t, &one, (struct lengths){l->prompt, l->completion, 0}, out, e));
    out->activations = arena_tensor_bytes(&t->acts) + cache_bytes(t->m, &t->cache);
    out->head = arena_tensor_bytes(&t->head);
    out->reference = cache_bytes(t->reference ? t->reference : t->m, &t->ref_cache) + cache_bytes(t->m, &t->own_cache);
    return TARE_OK;
}
