#include "rollout/sampler.h"

#include <math.h>

/* ---- life */

tare_status sampler_new(struct model *m, int64_t max_batch, int64_t kv_tokens, struct sampler **out, struct err *e)
{
    *out = NULL;
    if (max_batch < 0 || max_batch > 1 << 20)
        FAIL(e, TARE_E_RANGE, "rollout.batch = %lld: must be 0 to %d", (long long)max_batch, 1 << 20);
    if (kv_tokens < 0) FAIL(e, TARE_E_RANGE, "rollout.kv_tokens = %lld: must be 0 or more", (long long)kv_tokens);
    OWNED(sampler_free_at) struct sampler *s = NULL;
    TRY(mem_new((int64_t)sizeof *s, (void **)&s, e));
    s->model = m;
    s->max_batch = max_batch;
    s->kv_tokens = kv_tokens;
    s->prefill_rows = PREFILL_ROWS;
    arena_init(&s->run, "sampler");
    model_arena_init(m, &s->scratch, "sampler scratch");
    TRY(decoder_new(m, &s->decoder, e));
    speculate_begin(s);
    if (kernels_staging_bytes(m->k, (int64_t)sizeof *s->draw_memory)) {
        s->draw_memory = m->k->backend->alloc(&m->ctx, (int64_t)sizeof *s->draw_memory);
        if (!s->draw_memory) return kernels_no_memory(m->k, &m->ctx, "the drawn tokens", (int64_t)sizeof *s->draw_memory, e);
    }
    *out = s;
    s = NULL;
    return TARE_OK;
}

void sampler_free(struct sampler *s)
{
    if (!s) return;
    decoder_free(s->decoder);
    speculate_free(&s->speculation);
    if (s->cache.layers) kv_cache_free(s->model, &s->cache);
    if (s->draw_memory) s->model->k->backend->release(&s->model->ctx, s->draw_memory);
    kv_blocks_free(&s->sched.pool);
    arena_free(&s->run);
    arena_free(&s->scratch);
    mem_free(s->log);
    mem_free(s->refill);
    mem_free(s->report_ids);
    mem_free(s->episodes.turns);
    mem_free(s);
}

void sampler_free_at(struct sampler **p)
{
    sampler_free(*p);
}

void sampler_watch(struct sampler *s, const struct sample_watch *watch)
{
    s->watch = watch ? *watch : (struct sample_watch){0};
}

struct sampler_stats sampler_stats(const struct sampler *s)
{
    struct sampler_stats stats = s->stats;
    stats.blocks_peak = s->sched.pool.peak;
    stats.preemptions = s->sched.preemptions;
    stats.parked_drops = s->sched.parked_drops;
    stats.grown = s->run.grown + s->scratch.grown + s->grown_elsewhere;
    return stats;
}

/* ---- the cache */

int64_t sampler_block_bytes(const struct model *m)
{
    return m->shape.layers * 2 * kv_cache_bytes(m, 1);
}

/* Computes the size of the cache if the user gave none: enough for the batch if every completion
 * runs to its limit, but no more than a quarter of the machine's memory, or half of a device's free
 * memory; with less, sequences are preempted when blocks run out. */
static int64_t automatic_blocks(const struct sampler *s, int64_t max_batch)
{
    const int64_t most = s->model->k->backend->cache_most(&s->model->ctx) / sampler_block_bytes(s->model);
    int64_t wanted = scheduler_batch_need(&s->sched, max_batch), least = 1;
    for (int64_t i = 0; i < s->sched.n_groups; i++) {
        const int64_t need = scheduler_group_need(&s->sched.groups[i]);
        if (need > least) least = need;
    }
    wanted += wanted / 8; /* the next call's prompts may be slightly longer */
    if (wanted > most) wanted = most;
    return wanted > least ? wanted : least;
}

tare_status sampler_cache(struct sampler *s, int64_t n, struct err *e)
{
    if (n <= s->cache.n_blocks) return TARE_OK;
    if (s->cache.layers) kv_cache_free(s->model, &s->cache);
    s->cache = (struct kv_cache){0};
    s->grown_elsewhere++;
    TRY(kv_blocks_init(&s->sched.pool, n, e));
    const tare_status status = kv_cache_new(s->model, s->model->shape.layers, n, &s->cache, e);
    if (status) {
        s->cache = (struct kv_cache){0};
        return err_prefix(e, "key/value cache of %lld tokens (%lld MiB); set rollout.kv_tokens or rollout.batch lower",
                          (long long)(n * KV_BLOCK), (long long)(n * sampler_block_bytes(s->model) >> 20));
    }
    return TARE_OK;
}

static tare_status fit_cache(struct sampler *s, int64_t max_batch, struct err *e)
{
    int64_t n = kv_blocks_for(s->kv_tokens);
    if (!n) {
        if (s->cache.n_blocks && s->cache.n_blocks >= scheduler_batch_need(&s->sched, max_batch)) return TARE_OK;
        n = automatic_blocks(s, max_batch);
    }
    return sampler_cache(s, n, e);
}

/* ---- one call */

tare_status sampler_check_params(const struct sample_params *p, struct err *e)
{
    if (!(p->temperature >= 0) || !isfinite(p->temperature))
        FAIL(e, TARE_E_RANGE, "temperature = %g: must be at least 0 (0: greedy)", p->temperature);
    if (!(p->top_p > 0 && p->top_p <= 1)) FAIL(e, TARE_E_RANGE, "top_p = %g: must be above 0 and at most 1 (1: off)", p->top_p);
    if (!(p->min_p >= 0 && p->min_p <= 1)) FAIL(e, TARE_E_RANGE, "min_p = %g: must be 0 to 1 (0: off)", p->min_p);
    if (p->top_k < 0) FAIL(e, TARE_E_RANGE, "top_k = %lld: must be 0 or more (0: off)", (long long)p->top_k);
    if (p->max_new_tokens < 1) FAIL(e, TARE_E_RANGE, "max_new_tokens = %lld: must be at least 1", (long long)p->max_new_tokens);
    return TARE_OK;
}

tare_status sampler_check_ids(const struct sampler *s, const struct sample_request *requests, int64_t n, struct err *e)
{
    const int64_t vocab = s->model->shape.vocab;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < requests[i].prompt_len; k++)
            if (requests[i].prompt[k] < 0 || requests[i].prompt[k] >= vocab)
                FAIL(e, TARE_E_RANGE, "%s: token %lld of the prompt is %d: must be 0 to %lld",
                     requests[i].where ? requests[i].where : "a prompt", (long long)k, requests[i].prompt[k], (long long)vocab - 1);
    return TARE_OK;
}

static int64_t batch_of(const struct sampler *s)
{
    const int64_t batch = s->max_batch ? s->max_batch : AUTO_BATCH;
    return batch < s->sched.n_seqs ? batch : s->sched.n_seqs;
}

/* Sets the same sampling parameters for all groups of a run. */
static tare_status set_drawing(struct sampler *s, const struct sample_params *p, struct err *e)
{
    struct drawing *how;
    int32_t *stop;
    TRY(arena_new(&s->run, &how, 1, e));
    TRY(arena_new(&s->run, &stop, p->n_stop + s->model->n_eos, e));
    *how = (struct drawing){.params = p, .stop = stop, .n_stop = draw_stops(s->model, p, stop)};
    for (int64_t i = 0; i < s->sched.n_groups; i++) s->sched.groups[i].how = how;
    return TARE_OK;
}

tare_status sampler_scratch_new(struct sampler *s, struct err *e)
{
    TRY(arena_new_raw(&s->run, &s->stretches, s->sched.max_batch, e));
    return arena_new_raw(&s->run, &s->ended, s->sched.max_batch, e);
}

static tare_status start_job(struct sampler *s, const struct sample_job *job, struct err *e)
{
    const struct sample_params *p = job->params;
    const int64_t context = s->model->shape.max_position;
    struct scheduler_work work = {job->requests, job->n, p->max_new_tokens, context, job->key};
    int64_t longest = 1;
    if (job->episodes) work.max_new = job->episodes->max_tokens ? job->episodes->max_tokens : context;
    s->n_log = 0;
    arena_reset(&s->run);
    if (s->speculation.drafts) drafts_clear(s->speculation.drafts);
    TRY(sampler_check_params(p, e));
    TRY(sampler_check_ids(s, job->requests, job->n, e));
    TRY(scheduler_enqueue(&s->sched, &work, &s->run, e));
    TRY(set_drawing(s, p, e));
    for (int64_t i = 0; i < job->n; i++) {
        const int64_t len = job->requests[i].prompt_len + s->sched.groups[i].limit;
        if (len > longest) longest = len;
    }
    TRY(model_positions(s->model, longest, e));
    const int64_t batch = batch_of(s);
    TRY(fit_cache(s, batch, e));
    TRY(episodes_begin(s, job->episodes, e));
    TRY(scheduler_start(&s->sched, batch, &s->run, e));
    return sampler_scratch_new(s, e);
}

tare_status sampler_reserve(struct sampler *s, const struct sample_request *requests, int64_t n, int64_t max_new,
                            struct sampler_need *out, struct err *e)
{
    const struct scheduler_work work = {requests, n, max_new, s->model->shape.max_position, rng_key(0, RNG_TRAIN)};
    arena_reset(&s->run);
    TRY(scheduler_enqueue(&s->sched, &work, &s->run, e));
    *out = (struct sampler_need){.batch = batch_of(s), .alone = scheduler_group_need(&s->sched.groups[0])};
    out->blocks = scheduler_batch_need(&s->sched, out->batch);
    return fit_cache(s, out->batch, e);
}

struct sampler_memory sampler_memory(const struct sampler *s)
{
    return (struct sampler_memory){.cache_blocks = s->cache.n_blocks,
                                   .cache = s->cache.n_blocks * sampler_block_bytes(s->model),
                                   .forward = arena_tensor_bytes(&s->scratch) + decoder_bytes(s->decoder),
                                   .token = (int64_t)sizeof *s->log};
}

/* Sorts the log by sequence; the tokens of a sequence stay in order. */
static tare_status collect_output(const struct sampler *s, struct arena *arena, struct sample_output *out, struct err *e)
{
    const struct scheduler *d = &s->sched;
    *out = (struct sample_output){.n = d->n_seqs, .n_tokens = s->n_log};
    TRY(arena_new_raw(arena, &out->token_begin, d->n_seqs + 1, e));
    TRY(arena_new_raw(arena, &out->ids, s->n_log, e));
    TRY(arena_new_raw(arena, &out->logprob, s->n_log, e));
    TRY(arena_new_raw(arena, &out->entropy, s->n_log, e));
    TRY(arena_new_raw(arena, &out->finish, d->n_seqs, e));
    out->token_begin[0] = 0;
    for (int64_t i = 0; i < d->n_seqs; i++) {
        out->token_begin[i + 1] = out->token_begin[i] + d->seqs[i].n;
        out->finish[i] = d->seqs[i].finish;
    }
    for (int64_t i = s->n_log - 1; i >= 0; i--) {
        const struct drawn *x = &s->log[i];
        const int64_t at = out->token_begin[x->seq] + --d->seqs[x->seq].n;
        out->ids[at] = x->id;
        out->logprob[at] = x->logprob;
        out->entropy[at] = x->entropy;
    }
    return s->episodes.how ? episodes_collect(s, arena, out, e) : TARE_OK;
}

tare_status sampler_iterate(struct sampler *s, const volatile int *cancelled, struct err *e)
{
    struct scheduler *d = &s->sched;
    if (cancelled && *cancelled) FAIL(e, TARE_E_CANCELLED, "sampling was interrupted");
    scheduler_admit(d);
    if (d->n_running > d->admitted)
        TRY(prefill(s, cancelled, e));
    else if (!d->n_running)
        FAIL(e, TARE_E_STATE, "%lld sequences wait and none can run", (long long)d->remaining);
    return d->n_running ? decode(s, e) : TARE_OK;
}

tare_status sampler_run(struct sampler *s, const struct sample_job *job, struct arena *arena, struct sample_output *out,
                        struct err *e)
{
    *out = (struct sample_output){0};
    TRY(start_job(s, job, e));
    while (s->sched.remaining) {
        if (s->watch.round) TRY(s->watch.round(s->watch.ctx, e));
        if (s->sched.n_parked) TRY(episodes_ask(s, e));
        if (job->cancelled && *job->cancelled) FAIL(e, TARE_E_CANCELLED, "sampling was interrupted");
        if (s->sched.n_parked == s->sched.remaining) continue; /* all wait, or have ended */
        TRY(sampler_iterate(s, job->cancelled, e));
    }
    return collect_output(s, arena, out, e);
}
