#include "rollout/session.h"

#include "rollout/sampler.h"

#include <stddef.h>

enum { USUAL_TOKENS = 2048, FORGET_AT = 64 };

struct entry { /* of a request in the session; owns its group's blocks */
    struct drawing how;
    struct sample_request request;
    int32_t blocks[];
};

static struct entry *entry_of(const struct group *g)
{
    return (struct entry *)(void *)((char *)(uintptr_t)g->how - offsetof(struct entry, how));
}

/* ---- life */

static int64_t session_blocks(const struct sampler *s, const struct session_options *o)
{
    const int64_t context = s->model->shape.max_position, usual = context < USUAL_TOKENS ? context : USUAL_TOKENS;
    const int64_t most = s->model->k->backend->cache_most(&s->model->ctx) / sampler_block_bytes(s->model) / o->share;
    const int64_t wanted = kv_blocks_for(context) + (o->batch - 1) * kv_blocks_for(usual), least = kv_blocks_for(usual);
    if (s->kv_tokens) return kv_blocks_for(s->kv_tokens);
    if (wanted <= most) return wanted;
    return most > least ? most : least;
}

tare_status session_open(struct sampler *s, const struct session_options *o, struct err *e)
{
    struct scheduler *d = &s->sched;
    if (o->batch < 1 || o->batch > 1 << 20)
        FAIL(e, TARE_E_RANGE, "rollout.batch = %lld: must be 1 to %d", (long long)o->batch, 1 << 20);
    arena_reset(&s->run);
    s->n_log = 0;
    if (s->speculation.drafts) drafts_clear(s->speculation.drafts);
    TRY(model_positions(s->model, s->model->shape.max_position, e));
    TRY(sampler_cache(s, session_blocks(s, o), e));
    const int64_t context = kv_blocks_for(s->model->shape.max_position);
    d->episodes = false;
    s->episodes.how = NULL;
    TRY(scheduler_open(d, o->batch, context < d->pool.n ? context : d->pool.n, &s->run, e));
    TRY(sampler_scratch_new(s, e));
    d->groups = NULL;
    d->seqs = NULL;
    d->n_groups = d->n_seqs = d->remaining = d->group_capacity = d->seq_capacity = 0;
    d->eager = true;
    s->listener = o->listener;
    return TARE_OK;
}

static void free_entry(const struct group *g)
{
    struct entry *entry = entry_of(g);
    mem_free((void *)(uintptr_t)entry->how.stop);
    mem_free(entry);
}

void session_close(struct sampler *s)
{
    struct scheduler *d = &s->sched;
    if (!s->listener) return;
    for (int64_t i = 0; i < d->n_groups; i++) free_entry(&d->groups[i]);
    mem_free(d->groups);
    mem_free(d->seqs);
    d->groups = NULL;
    d->seqs = NULL;
    d->n_groups = d->n_seqs = d->remaining = d->n_running = d->group_capacity = d->seq_capacity = 0;
    d->eager = false;
    s->listener = NULL;
}

/* ---- requests */

static tare_status check_request(const struct sampler *s, const struct session_request *r, struct group *g, struct err *e)
{
    const int64_t context = s->model->shape.max_position, n = r->sample.prompt_len, capacity = s->sched.pool.n * KV_BLOCK;
    const char *where = r->sample.where ? r->sample.where : "a prompt";
    TRY(sampler_check_params(r->params, e));
    if (r->sample.n_samples < 1)
        FAIL(e, TARE_E_RANGE, "%s: %lld samples: must be at least 1", where, (long long)r->sample.n_samples);
    if (n < 1) FAIL(e, TARE_E_INVALID, "%s has no tokens; a model needs at least one", where);
    if (n >= context)
        FAIL(e, TARE_E_RANGE, "%s has %lld tokens; at most %lld fit in the model's context of %lld with a new one", where,
             (long long)n, (long long)context - 1, (long long)context);
    TRY(sampler_check_ids(s, &r->sample, 1, e));
    g->limit = r->params->max_new_tokens < context - n ? r->params->max_new_tokens : context - n;
    g->request = &r->sample;
    if (scheduler_group_need(g) > s->sched.pool.n)
        FAIL(
            e, TARE_E_RANGE,
            "%s has %lld tokens, and with up to %lld new ones it does not fit in the key/value cache of %lld tokens; ask for fewer new tokens, or serve with a larger rollout.kv_tokens",
            where, (long long)n, (long long)g->limit, (long long)capacity);
    return TARE_OK;
}

static tare_status new_entry(const struct sampler *s, const struct session_request *r, struct entry **out, struct err *e)
{
    const int64_t blocks = kv_blocks_for(r->sample.prompt_len);
    struct entry *entry;
    int32_t *stop;
    TRY(mem_new((int64_t)sizeof *entry + blocks * (int64_t)sizeof *entry->blocks, (void **)&entry, e));
    const tare_status status = mem_new((r->params->n_stop + s->model->n_eos) * (int64_t)sizeof *stop, (void **)&stop, e);
    if (status) {
        mem_free(entry);
        return status;
    }
    entry->request = r->sample;
    entry->how = (struct drawing){.params = r->params,
                                  .stop = stop,
                                  .n_stop = draw_stops(s->model, r->params, stop),
                                  .owner = r->owner,
                                  .prompt_rows = r->prompt_rows,
                                  .token_rows = r->token_rows};
    *out = entry;
    return TARE_OK;
}

tare_status session_add(struct sampler *s, const struct session_request *r, struct err *e)
{
    struct group g = {0};
    struct entry *entry;
    if (!s->listener) FAIL(e, TARE_E_STATE, "the sampler has no session");
    TRY(check_request(s, r, &g, e));
    TRY(scheduler_reserve(&s->sched, r->sample.n_samples, e));
    TRY(new_entry(s, r, &entry, e));
    g.request = &entry->request;
    g.how = &entry->how;
    g.blocks = entry->blocks;
    scheduler_join(&s->sched, &g, r->key);
    return TARE_OK;
}

void session_drop(struct sampler *s, const void *owner)
{
    struct scheduler *d = &s->sched;
    for (int64_t i = 0; i < d->n_groups; i++) {
        const struct group *g = &d->groups[i];
        if (g->how->owner != owner) continue;
        for (int64_t k = g->first; g->remaining && k < g->first + g->request->n_samples; k++)
            if (!d->seqs[k].done) scheduler_finish(d, k, FINISH_STOP);
    }
    scheduler_compact(d);
}

/* ---- iterations */

/* Removes requests that have ended, and their part of the log, which is read only to compute
 * sequences again. */
static tare_status remove_ended(struct sampler *s, struct err *e)
{
    struct scheduler *d = &s->sched;
    struct group *ended; /* their entries are read until nothing points to them */
    int64_t *map, n = 0, n_ended = 0;
    arena_reset(&s->scratch);
    TRY(arena_new_raw(&s->scratch, &map, d->n_seqs, e));
    TRY(arena_new_raw(&s->scratch, &ended, d->n_groups, e));
    for (int64_t i = 0; i < d->n_groups; i++)
        if (!d->groups[i].remaining) ended[n_ended++] = d->groups[i];
    scheduler_remove_ended(d, map);
    for (int64_t i = 0; i < n_ended; i++) free_entry(&ended[i]);
    for (int64_t i = 0; i < s->n_log; i++) {
        struct drawn token = s->log[i];
        token.seq = (int32_t)map[token.seq];
        if (token.seq >= 0) s->log[n++] = token;
    }
    s->n_log = n;
    return TARE_OK;
}

tare_status session_iterate(struct sampler *s, struct err *e)
{
    const struct scheduler *d = &s->sched;
    int64_t ended = 0;
    if (d->remaining) TRY(sampler_iterate(s, NULL, e));
    for (int64_t i = 0; i < d->n_groups; i++) ended += !d->groups[i].remaining;
    return ended == d->n_groups || (ended > FORGET_AT && 2 * ended > d->n_groups) ? remove_ended(s, e) : TARE_OK;
}

int64_t session_remaining(const struct sampler *s)
{
    return s->sched.remaining;
}

struct session_state session_state(const struct sampler *s)
{
    const struct scheduler *d = &s->sched;
    return (struct session_state){
        .remaining = d->remaining, .running = d->n_running, .blocks = d->pool.n, .blocks_used = d->pool.n - d->pool.n_free};
}
