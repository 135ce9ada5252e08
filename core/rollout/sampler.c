/* Runs what the scheduler decides. One turn of the loop:
 *
 *   admit     sequences from the queue
 *   prefill   the prompts that are not in the cache, several packed into one forward pass, long ones cut; the last row of a prompt gives the
 *             logits from which the first tokens of all its samples are drawn
 *   refill    the tokens of sequences that were put back: the same forward, no logits
 *   decode    one row a running sequence: its newest token in, the next one out
 *
 * Tokens go to a log in the order they are drawn; the output is the log sorted by sequence, so memory follows the tokens there are and not
 * the longest that was allowed. */
#include "model/layer.h"
#include "rollout/decoder.h"
#include "rollout/rows.h"
#include "rollout/scheduler.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { LOGIT_ROWS = 64, PREFILL_ROWS = 2048, AUTO_BATCH = 256 };

struct drawn { /* one token */
    int64_t seq;
    int32_t id;
    float logprob, entropy;
};

struct sampler {
    struct model *model;
    int64_t max_batch, kv_tokens, prefill_rows;
    struct kv_cache cache;
    struct scheduler sched;
    struct arena run, scratch; /* of one sampler_run; of one forward pass */
    struct drawn *log;
    int64_t n_log, log_capacity;
    int32_t *refill; /* ids of the sequences that are computed again */
    int64_t refill_capacity;
    int64_t grown_elsewhere; /* log, refill and cache */
    struct sampler_stats stats;
    struct draw_room *room;  /* in the backend's memory; NULL where that is the host's */
    struct decoder *decoder; /* NULL: a token at a time */
    /* of the current run */
    const struct sample_params *params;
    int32_t *stop; /* [n_stop] ids that end a completion */
    int64_t n_stop;
};

/* What a draw reads beside the logits, and what it gives. */
struct draw_room {
    struct sample_row rows[LOGIT_ROWS];
    struct drawn_rows {
        int32_t token[LOGIT_ROWS];
        float logprob[LOGIT_ROWS], entropy[LOGIT_ROWS];
    } drawn;
};

/* A stretch of one sequence that goes through the model for its keys. */
struct stretch {
    const int32_t *ids, *blocks;
    int64_t n, pos;
    int64_t group; /* whose first tokens the last row gives; -1: none wanted */
};

/* ---- life */

tare_status sampler_new(struct model *m, int64_t max_batch, int64_t kv_tokens, struct sampler **out, struct err *e)
{
    *out = NULL;
    if (max_batch < 0 || max_batch > 1 << 20) FAIL(e, TARE_E_RANGE, "rollout.batch = %lld: 0 to %d", (long long)max_batch, 1 << 20);
    if (kv_tokens < 0) FAIL(e, TARE_E_RANGE, "rollout.kv_tokens = %lld: 0 or more", (long long)kv_tokens);
    struct sampler *s;
    TRY(mem_new((int64_t)sizeof *s, (void **)&s, e));
    s->model = m;
    s->max_batch = max_batch;
    s->kv_tokens = kv_tokens;
    s->prefill_rows = PREFILL_ROWS;
    arena_init(&s->run, "sampler");
    model_arena_init(m, &s->scratch, "sampler scratch");
    *out = s;
    tare_status status = TARE_OK;
    TRY_TO(status, failed, decoder_new(m, &s->decoder, e));
    if (!kernels_room(m->k, (int64_t)sizeof *s->room)) return TARE_OK;
    s->room = m->k->backend->alloc(&m->ctx, (int64_t)sizeof *s->room);
    if (s->room) return TARE_OK;
    status = kernels_no_memory(m->k, &m->ctx, "the tokens that are drawn", (int64_t)sizeof *s->room, e);
failed:
    sampler_free(s);
    *out = NULL;
    return status;
}

void sampler_free(struct sampler *s)
{
    if (!s) return;
    decoder_free(s->decoder);
    if (s->cache.layers) kv_cache_free(s->model, &s->cache);
    if (s->room) s->model->k->backend->release(&s->model->ctx, s->room);
    kv_blocks_free(&s->sched.pool);
    arena_free(&s->run);
    arena_free(&s->scratch);
    mem_free(s->log);
    mem_free(s->refill);
    mem_free(s);
}

void sampler_prefill_rows(struct sampler *s, int64_t rows)
{
    s->prefill_rows = rows < 1 ? 1 : rows;
}

struct sampler_stats sampler_stats(const struct sampler *s)
{
    struct sampler_stats stats = s->stats;
    stats.blocks_peak = s->sched.pool.peak;
    stats.preemptions = s->sched.preemptions;
    stats.grown = s->run.grown + s->scratch.grown + s->grown_elsewhere;
    return stats;
}

/* ---- the cache */

static int64_t block_bytes(const struct model *m)
{
    return m->shape.layers * 2 * kv_cache_bytes(m, 1);
}

/* Without a size from the user: what the batch needs when every completion runs to its limit, but no more than a quarter of the machine's
 * memory, or half of what a device has left; beyond that sequences are put back when blocks run out. */
static int64_t automatic_blocks(const struct sampler *s, int64_t max_batch)
{
    const int64_t most = s->model->k->backend->cache_most(&s->model->ctx) / block_bytes(s->model);
    int64_t wanted = scheduler_batch_need(&s->sched, max_batch), least = 1;
    for (int64_t i = 0; i < s->sched.n_groups; i++) {
        const int64_t need = scheduler_group_need(&s->sched.groups[i]);
        if (need > least) least = need;
    }
    wanted += wanted / 8; /* the next call's prompts may be a little longer */
    if (wanted > most) wanted = most;
    return wanted > least ? wanted : least;
}

static tare_status fit_cache(struct sampler *s, int64_t max_batch, struct err *e)
{
    int64_t n = kv_blocks_for(s->kv_tokens);
    if (!n) {
        if (s->cache.n_blocks && s->cache.n_blocks >= scheduler_batch_need(&s->sched, max_batch)) return TARE_OK;
        n = automatic_blocks(s, max_batch);
    }
    if (n <= s->cache.n_blocks) return TARE_OK;
    if (s->cache.layers) kv_cache_free(s->model, &s->cache);
    s->cache = (struct kv_cache){0};
    s->grown_elsewhere++;
    TRY(kv_blocks_init(&s->sched.pool, n, e));
    const tare_status status = kv_cache_new(s->model, s->model->shape.layers, n, &s->cache, e);
    if (status) {
        s->cache = (struct kv_cache){0};
        return err_prefix(e, "key/value cache of %lld tokens (%lld MiB); set rollout.kv_tokens or rollout.batch lower",
                          (long long)(n * KV_BLOCK), (long long)(n * block_bytes(s->model) >> 20));
    }
    return TARE_OK;
}

/* ---- drawing tokens */

static tare_status remember(struct sampler *s, struct drawn token, struct err *e)
{
    if (s->n_log == s->log_capacity) {
        TRY(mem_grow((void **)&s->log, &s->log_capacity, s->n_log + 1, (int64_t)sizeof *s->log, e));
        s->grown_elsewhere++;
    }
    s->log[s->n_log++] = token;
    return TARE_OK;
}

static bool is_stop(const struct sampler *s, int32_t id)
{
    for (int64_t i = 0; i < s->n_stop; i++)
        if (s->stop[i] == id) return true;
    return false;
}

static tare_status stop_ids(struct sampler *s, struct err *e)
{
    const struct sample_params *p = s->params;
    TRY(arena_new(&s->run, &s->stop, p->n_stop + s->model->n_eos, e));
    s->n_stop = 0;
    for (int64_t i = 0; i < p->n_stop; i++) s->stop[s->n_stop++] = p->stop[i];
    if (!p->ignore_eos)
        for (int64_t i = 0; i < s->model->n_eos; i++) s->stop[s->n_stop++] = s->model->eos[i];
    return TARE_OK;
}

static tare_status accept_token(struct sampler *s, struct drawn token, struct err *e)
{
    struct sequence *q = &s->sched.seqs[token.seq];
    const struct group *g = &s->sched.groups[q->group];
    if (!isfinite(token.logprob))
        FAIL(e, TARE_E_NOT_FINITE,
             "%s: the logits after token %lld of sample %lld are not finite; the weights have overflowed or hold NaN",
             g->request->where ? g->request->where : "a prompt", (long long)q->n, (long long)(token.seq - g->first));
    TRY(remember(s, token, e));
    q->last = token.id;
    q->n++;
    s->stats.new_tokens++;
    if (is_stop(s, token.id))
        scheduler_finish(&s->sched, token.seq, FINISH_STOP);
    else if (q->n == g->limit)
        scheduler_finish(&s->sched, token.seq, FINISH_LENGTH);
    return TARE_OK;
}

static struct sample_row draw_of(const struct sampler *s, const struct sequence *q)
{
    const struct sample_params *p = s->params;
    return (struct sample_row){.key = {q->key.k[0], q->key.k[1]},
                               .position = (uint64_t)q->n,
                               .temperature = (float)p->temperature,
                               .top_p = (float)p->top_p,
                               .min_p = (float)p->min_p,
                               .top_k = p->top_k < s->model->shape.vocab ? (int32_t)p->top_k : 0};
}

/* Draws the next token of sequences seqs[0 .. n-1], n <= LOGIT_ROWS, from logits with ld floats a row (0: all from one row). */
static tare_status draw(struct sampler *s, const int64_t *seqs, int64_t n, const float *logits, int64_t ld, struct err *e)
{
    const struct model *m = s->model;
    struct sample_row rows[LOGIT_ROWS] = {0};
    struct drawn_rows host, *to = s->room ? &s->room->drawn : &host;
    for (int64_t i = 0; i < n; i++) {
        const struct sequence *q = &s->sched.seqs[seqs[i]];
        rows[i] = draw_of(s, q);
    }
    kernels_at(&m->ctx, "drawing tokens", -1);
    KERNEL(m->k, &m->ctx, sample, .token = to->token, .logprob = to->logprob, .entropy = to->entropy, .logits = logits, .ld = ld,
           .rows = to_backend(m, s->room ? s->room->rows : NULL, rows, n * (int64_t)sizeof *rows), .r = n, .v = m->shape.vocab);
    const struct drawn_rows *got = from_backend(m, &host, to, (int64_t)sizeof host);
    TRY(model_finish(m, e));
    for (int64_t i = 0; i < n; i++)
        TRY(accept_token(s, (struct drawn){seqs[i], got->token[i], got->logprob[i], got->entropy[i]}, e));
    return TARE_OK;
}

/* ---- the forward pass */

static tare_status rows_forward(struct sampler *s, const struct rows *r, float **hidden, struct err *e)
{
    const struct forward_batch b = rows_batch(r);
    return model_forward(s->model, &s->cache, &b, &s->scratch, hidden, e);
}

static tare_status logits_new(struct sampler *s, int64_t rows, float **logits, struct err *e)
{
    const int64_t n = rows < LOGIT_ROWS ? rows : LOGIT_ROWS;
    return tensor_new_raw(&s->scratch, logits, n * s->model->shape.vocab, e);
}

/* ---- prefill */

/* The first tokens of one prompt's samples, from its row of logits. */
static tare_status draw_first(struct sampler *s, int64_t group, const float *logits, struct err *e)
{
    const struct group *g = &s->sched.groups[group];
    for (int64_t k = 0; k < g->request->n_samples; k += LOGIT_ROWS) {
        int64_t seqs[LOGIT_ROWS], n = 0;
        for (; n < LOGIT_ROWS && k + n < g->request->n_samples; n++) seqs[n] = g->first + k + n;
        TRY(draw(s, seqs, n, logits, 0, e));
    }
    return TARE_OK;
}

/* hidden [n, C]: the last rows of the prompts of groups[0 .. n-1]. Prompts with one sample are drawn together, a row each. */
static tare_status first_tokens(struct sampler *s, const float *hidden, const int64_t *groups, int64_t n, struct err *e)
{
    const int64_t vocab = s->model->shape.vocab;
    float *logits;
    TRY(logits_new(s, n, &logits, e));
    for (int64_t at = 0; at < n; at += LOGIT_ROWS) {
        const int64_t rows = n - at < LOGIT_ROWS ? n - at : LOGIT_ROWS;
        model_logits(s->model, hidden + at * s->model->shape.hidden, rows, logits);
        for (int64_t i = 0; i < rows;) {
            int64_t singles[LOGIT_ROWS], m = 0;
            for (; i + m < rows && s->sched.groups[groups[at + i + m]].request->n_samples == 1; m++)
                singles[m] = s->sched.groups[groups[at + i + m]].first;
            if (m)
                TRY(draw(s, singles, m, logits + i * vocab, vocab, e));
            else
                TRY(draw_first(s, groups[at + i], logits + i * vocab, e));
            i += m ? m : 1;
        }
    }
    for (int64_t i = 0; i < n; i++) s->sched.groups[groups[i]].drawn = true;
    return TARE_OK;
}

/* Brings the keys of all stretches into the cache, as many rows a forward pass as allowed. The groups whose prompts end in a pass draw
 * their first tokens before the next one. ended: room for n groups. Sequences that finish here give blocks back, and nothing takes any before
 * the templates are copied. */
static tare_status run_stretches(struct sampler *s, const struct stretch *list, int64_t n, const volatile int *cancelled,
                                 int64_t *ended, struct err *e)
{
    int64_t at = 0, done = 0; /* stretch, rows of it that are computed */
    while (at < n) {
        if (cancelled && *cancelled) FAIL(e, TARE_E_CANCELLED, "sampling was interrupted");
        struct rows r;
        int64_t n_ended = 0;
        TRY(rows_new(&s->scratch, s->prefill_rows, n - at < s->prefill_rows ? n - at : s->prefill_rows, &r, e));
        while (at < n && r.t < s->prefill_rows) {
            const struct stretch *x = &list[at];
            const int64_t room = s->prefill_rows - r.t, rows = x->n - done < room ? x->n - done : room;
            const bool end = done + rows == x->n, wanted = end && x->group >= 0;
            rows_add(&r, x->ids + done, rows, x->pos + done, x->blocks, wanted);
            if (wanted) ended[n_ended++] = x->group;
            done = end ? 0 : done + rows;
            at += end;
        }
        float *hidden;
        TRY(rows_forward(s, &r, &hidden, e));
        if (n_ended) TRY(first_tokens(s, hidden, ended, n_ended, e));
    }
    return TARE_OK;
}

static tare_status copy_templates(struct sampler *s, struct err *e)
{
    const struct model *m = s->model;
    const struct attn_shape shape = model_attn_shape(m);
    const int64_t n = s->sched.n_copies, bytes = n * (int64_t)sizeof *s->sched.copy_to;
    int32_t *room;
    if (!n) return TARE_OK;
    TRY(backend_room(m, &s->scratch, 2 * bytes, &room, e));
    const int32_t *to = to_backend(m, room, s->sched.copy_to, bytes);
    const int32_t *from = to_backend(m, room ? room + n : NULL, s->sched.copy_from, bytes);
    for (int64_t l = 0; l < s->cache.n_layers; l++)
        KERNEL(m->k, &m->ctx, kv_copy, .kv = s->cache.layers[l], .shape = shape, .to = to, .from = from, .n = n);
    return TARE_OK;
}

/* The stretches of sequences that were put back. Their ids are gathered from the log in one walk. */
static tare_status refill_stretches(struct sampler *s, struct stretch *list, int64_t *n, struct err *e)
{
    struct scheduler *d = &s->sched;
    int64_t total = 0, *fill; /* [n_running] where the next id of a sequence goes */
    *n = 0;
    for (int64_t i = d->admitted; i < d->n_running; i++) {
        const struct sequence *q = &d->seqs[d->running[i]];
        total += q->running && q->n > 1 ? q->n : 0;
    }
    if (!total) return TARE_OK;
    if (total > s->refill_capacity) {
        TRY(mem_grow((void **)&s->refill, &s->refill_capacity, total, (int64_t)sizeof *s->refill, e));
        s->grown_elsewhere++;
    }
    arena_reset(&s->scratch);
    TRY(arena_new_raw(&s->scratch, &fill, d->n_seqs, e));
    for (int64_t i = 0; i < d->n_seqs; i++) fill[i] = -1;
    total = 0;
    for (int64_t i = d->admitted; i < d->n_running; i++) {
        const struct sequence *q = &d->seqs[d->running[i]];
        if (!q->running || q->n < 2) continue;
        const int64_t pos = d->groups[q->group].request->prompt_len;
        list[(*n)++] = (struct stretch){.ids = s->refill + total, .blocks = q->blocks, .n = q->n - 1, .pos = pos, .group = -1};
        fill[d->running[i]] = total;
        total += q->n;
        s->stats.refilled_tokens += q->n - 1;
    }
    for (int64_t i = 0; i < s->n_log; i++)
        if (fill[s->log[i].seq] >= 0) s->refill[fill[s->log[i].seq]++] = s->log[i].id;
    return TARE_OK;
}

static tare_status prefill(struct sampler *s, struct stretch *list, int64_t *ended, const volatile int *cancelled, struct err *e)
{
    struct scheduler *d = &s->sched;
    for (int64_t i = 0; i < d->n_fresh; i++) {
        const struct group *g = &d->groups[d->fresh[i]];
        list[i] = (struct stretch){
            .ids = g->request->prompt, .blocks = g->blocks, .n = g->request->prompt_len, .group = g->drawn ? -1 : d->fresh[i]};
        if (g->drawn)
            s->stats.refilled_tokens += g->request->prompt_len;
        else
            s->stats.prompt_tokens += g->request->prompt_len;
    }
    TRY(run_stretches(s, list, d->n_fresh, cancelled, ended, e));
    TRY(copy_templates(s, e));
    int64_t n;
    TRY(refill_stretches(s, list, &n, e));
    TRY(run_stretches(s, list, n, cancelled, ended, e));
    scheduler_compact(d);
    return TARE_OK;
}

/* ---- decode */

static tare_status decode(struct sampler *s, struct err *e)
{
    struct scheduler *d = &s->sched;
    const int64_t n = d->n_running, vocab = s->model->shape.vocab;
    struct rows r;
    TRY(rows_new(&s->scratch, n, n, &r, e));
    for (int64_t i = 0; i < n; i++) {
        struct sequence *q = &d->seqs[d->running[i]];
        rows_add(&r, &q->last, 1, q->cached++, q->blocks, true);
    }
    float *hidden, *logits;
    TRY(rows_forward(s, &r, &hidden, e));
    TRY(logits_new(s, n, &logits, e));
    for (int64_t at = 0; at < n; at += LOGIT_ROWS) {
        const int64_t rows = n - at < LOGIT_ROWS ? n - at : LOGIT_ROWS;
        model_logits(s->model, hidden + at * s->model->shape.hidden, rows, logits);
        TRY(draw(s, d->running + at, rows, logits, vocab, e));
    }
    s->stats.decode_steps++;
    scheduler_compact(d);
    return TARE_OK;
}

/* The same for several tokens on a device. A sequence draws nothing after its end. */
static tare_status decode_ahead(struct sampler *s, int64_t tokens, struct err *e)
{
    struct scheduler *d = &s->sched;
    const int64_t n = d->n_running;
    struct decoder_batch b;
    TRY(decoder_begin(s->decoder, n, &b, e));
    b.tokens = tokens;
    b.stop = s->stop;
    b.n_stop = s->n_stop;
    for (int64_t i = 0; i < n; i++) {
        const struct sequence *q = &d->seqs[d->running[i]];
        b.rows[i] = (struct decode_row){.token = q->last,
                                        .pos = (int32_t)q->cached,
                                        .left = (int32_t)(d->groups[q->group].limit - q->n),
                                        .blocks = q->blocks,
                                        .draw = draw_of(s, q)};
    }
    TRY(decoder_run(s->decoder, &s->cache, &b, e));
    for (int64_t at = 0; at < tokens * n; at++) {
        const int64_t seq = d->running[at % n];
        if (b.token[at] < 0) continue;
        d->seqs[seq].cached++;
        TRY(accept_token(s, (struct drawn){seq, b.token[at], b.logprob[at], b.entropy[at]}, e));
    }
    s->stats.decode_steps += tokens;
    scheduler_compact(d);
    return TARE_OK;
}

/* Tokens until the host looks again. */
static int64_t tokens_ahead(const struct sampler *s)
{
    const struct scheduler *d = &s->sched;
    int64_t most = 1;
    if (!s->decoder) return 1;
    for (int64_t i = 0; i < d->n_running; i++) {
        const struct sequence *q = &d->seqs[d->running[i]];
        const int64_t left = d->groups[q->group].limit - q->n;
        if (left > most) most = left;
    }
    return most < DECODER_TOKENS ? most : DECODER_TOKENS;
}

/* ---- one call */

static tare_status check_params(const struct sample_params *p, struct err *e)
{
    if (!(p->temperature >= 0) || !isfinite(p->temperature))
        FAIL(e, TARE_E_RANGE, "temperature = %g: a number of at least 0 (0: greedy)", p->temperature);
    if (!(p->top_p > 0 && p->top_p <= 1)) FAIL(e, TARE_E_RANGE, "top_p = %g: above 0, at most 1 (1: off)", p->top_p);
    if (!(p->min_p >= 0 && p->min_p <= 1)) FAIL(e, TARE_E_RANGE, "min_p = %g: 0 to 1 (0: off)", p->min_p);
    if (p->top_k < 0) FAIL(e, TARE_E_RANGE, "top_k = %lld: 0 or more (0: off)", (long long)p->top_k);
    if (p->max_new_tokens < 1) FAIL(e, TARE_E_RANGE, "max_new_tokens = %lld: at least 1", (long long)p->max_new_tokens);
    return TARE_OK;
}

static tare_status check_ids(const struct sampler *s, const struct sample_request *requests, int64_t n, struct err *e)
{
    const int64_t vocab = s->model->shape.vocab;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < requests[i].prompt_len; k++)
            if (requests[i].prompt[k] < 0 || requests[i].prompt[k] >= vocab)
                FAIL(e, TARE_E_RANGE, "%s: token %lld of the prompt is %d; ids go from 0 to %lld",
                     requests[i].where ? requests[i].where : "a prompt", (long long)k, requests[i].prompt[k], (long long)vocab - 1);
    return TARE_OK;
}

static int64_t batch_of(const struct sampler *s)
{
    const int64_t batch = s->max_batch ? s->max_batch : AUTO_BATCH;
    return batch < s->sched.n_seqs ? batch : s->sched.n_seqs;
}

static tare_status start(struct sampler *s, struct rng_key key, const struct sample_request *requests, int64_t n, struct err *e)
{
    int64_t longest = 1;
    s->n_log = 0;
    arena_reset(&s->run);
    TRY(check_params(s->params, e));
    TRY(stop_ids(s, e));
    TRY(check_ids(s, requests, n, e));
    TRY(scheduler_plan(&s->sched, requests, n, s->params->max_new_tokens, s->model->shape.max_position, key, &s->run, e));
    for (int64_t i = 0; i < n; i++) {
        const int64_t len = requests[i].prompt_len + s->sched.groups[i].limit;
        if (len > longest) longest = len;
    }
    TRY(model_positions(s->model, longest, e));
    const int64_t batch = batch_of(s);
    TRY(fit_cache(s, batch, e));
    return scheduler_start(&s->sched, batch, &s->run, e);
}

tare_status sampler_reserve(struct sampler *s, const struct sample_request *requests, int64_t n, int64_t max_new,
                            struct sampler_need *out, struct err *e)
{
    arena_reset(&s->run);
    TRY(scheduler_plan(&s->sched, requests, n, max_new, s->model->shape.max_position, rng_key(0, RNG_TRAIN), &s->run, e));
    *out = (struct sampler_need){.batch = batch_of(s), .alone = scheduler_group_need(&s->sched.groups[0])};
    out->blocks = scheduler_batch_need(&s->sched, out->batch);
    return fit_cache(s, out->batch, e);
}

struct sampler_memory sampler_memory(const struct sampler *s)
{
    return (struct sampler_memory){.cache_blocks = s->cache.n_blocks,
                                   .cache = s->cache.n_blocks * block_bytes(s->model),
                                   .forward = arena_tensor_bytes(&s->scratch) + decoder_bytes(s->decoder),
                                   .token = (int64_t)sizeof *s->log};
}

/* The log, sorted by sequence: a sequence's tokens stand in it in their order. */
static tare_status collect(const struct sampler *s, struct arena *arena, struct sample_output *out, struct err *e)
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
    return TARE_OK;
}

tare_status sampler_run(struct sampler *s, const struct sample_params *p, struct rng_key key, const struct sample_request *requests,
                        int64_t n, const volatile int *cancelled, struct arena *arena, struct sample_output *out, struct err *e)
{
    struct scheduler *d = &s->sched;
    struct stretch *list;
    int64_t *ended;
    *out = (struct sample_output){0};
    s->params = p;
    TRY(start(s, key, requests, n, e));
    TRY(arena_new_raw(&s->run, &list, d->max_batch, e));
    TRY(arena_new_raw(&s->run, &ended, d->max_batch, e));
    while (d->left) {
        if (cancelled && *cancelled) FAIL(e, TARE_E_CANCELLED, "sampling was interrupted");
        scheduler_admit(d);
        if (d->n_running > d->admitted)
            TRY(prefill(s, list, ended, cancelled, e));
        else if (!d->n_running)
            FAIL(e, TARE_E_STATE, "%lld sequences wait and none can run", (long long)d->left);
        if (!d->n_running) continue;
        const int64_t tokens = tokens_ahead(s);
        scheduler_grow(d, tokens);
        TRY(s->decoder ? decode_ahead(s, tokens, e) : decode(s, e));
    }
    return collect(s, arena, out, e);
}
