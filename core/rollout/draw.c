/* Draws tokens from logits. */
#include "rollout/sampler.h"

#include <math.h>

static tare_status append_log(struct sampler *s, struct drawn token, struct err *e)
{
    if (s->n_log == s->log_capacity) {
        TRY(mem_grow((void **)&s->log, &s->log_capacity, s->n_log + 1, (int64_t)sizeof *s->log, e));
        s->grown_elsewhere++;
    }
    s->log[s->n_log++] = token;
    return TARE_OK;
}

tare_status draw_append(struct sampler *s, struct drawn token, struct err *e)
{
    struct sequence *q = &s->sched.seqs[token.seq];
    token.before = q->newest;
    q->newest = s->n_log;
    TRY(append_log(s, token, e));
    q->last = token.id;
    q->n++;
    return TARE_OK;
}

int64_t draw_remaining(const struct sampler *s, const struct sequence *q)
{
    const struct group *g = &s->sched.groups[q->group];
    int64_t n = g->limit - q->n;
    if (!s->episodes.how) return n;
    const int64_t episode = g->how->params->max_new_tokens - q->n_sampled, most = s->episodes.how->max_turn_tokens;
    if (episode < n) n = episode;
    return most && most - (q->n - q->act_begin) < n ? most - (q->n - q->act_begin) : n;
}

void draw_copy_ids(const struct sampler *s, const struct sequence *q, int64_t begin, int64_t n, int32_t *out)
{
    for (int64_t t = q->n - 1, at = q->newest; t >= begin; t--, at = s->log[at].before)
        if (t < begin + n) out[t - begin] = s->log[at].id;
}

void draw_copy_newest(const struct sampler *s, int64_t seq, int64_t n, int32_t *out)
{
    const struct sequence *q = &s->sched.seqs[seq];
    if (!s->listener)
        draw_copy_ids(s, q, q->n - n, n, out);
    else
        for (int64_t at = s->n_log - 1; n && at >= 0; at--)
            if (s->log[at].seq == seq) out[--n] = s->log[at].id;
}

tare_status draw_report_ids(struct sampler *s, const struct sequence *q, struct err *e)
{
    if (q->n > s->report_capacity) {
        TRY(mem_grow((void **)&s->report_ids, &s->report_capacity, q->n, (int64_t)sizeof *s->report_ids, e));
        s->grown_elsewhere++;
    }
    draw_copy_ids(s, q, 0, q->n, s->report_ids);
    return TARE_OK;
}

static bool is_stop(const struct drawing *d, int32_t id)
{
    for (int64_t i = 0; i < d->n_stop; i++)
        if (d->stop[i] == id) return true;
    return false;
}

int64_t draw_stops(const struct model *m, const struct sample_params *p, int32_t *stop)
{
    int64_t n = 0;
    for (int64_t i = 0; i < p->n_stop; i++) stop[n++] = p->stop[i];
    if (!p->ignore_eos)
        for (int64_t i = 0; i < m->n_eos; i++) stop[n++] = m->eos[i];
    return n;
}

/* Returns the logits of one row in host memory. staging: host memory for a copy; NULL where none is
 * needed. */
static tare_status host_row(struct sampler *s, const float *logits, const float **row, void **staging, struct err *e)
{
    const int64_t bytes = s->model->shape.vocab * (int64_t)sizeof *logits;
    TRY(model_host_alloc(s->model, bytes, staging, e));
    *row = model_from_backend(s->model, *staging, logits, bytes);
    return model_finish(s->model, e);
}

/* Reports a token to the listener; *more: the sample continues. */
static tare_status report_token(struct sampler *s, const struct drawing *how, struct session_token t, const float *logits,
                                bool *more, struct err *e)
{
    void *staging = NULL;
    if (logits) TRY(host_row(s, logits, &t.logits, &staging, e));
    *more = s->listener(how->owner, &t);
    mem_free(staging);
    return TARE_OK;
}

/* Reports a finished completion to the watch of a run. */
static tare_status report_end(struct sampler *s, int64_t seq, struct err *e)
{
    const struct sequence *q = &s->sched.seqs[seq];
    if (!s->watch.ended || s->listener) return TARE_OK;
    TRY(draw_report_ids(s, q, e));
    const struct sample_ended x = {.request = q->group,
                                   .sample = seq - s->sched.groups[q->group].first,
                                   .at = seq,
                                   .ids = s->report_ids,
                                   .n = q->n,
                                   .finish = q->finish};
    return s->watch.ended(s->watch.ctx, &x, e);
}

tare_status draw_end(struct sampler *s, int64_t seq, enum finish finish, struct err *e)
{
    scheduler_finish(&s->sched, seq, finish);
    return report_end(s, seq, e);
}

tare_status draw_accept(struct sampler *s, struct drawn token, const float *logits, struct err *e)
{
    struct sequence *q = &s->sched.seqs[token.seq];
    const struct group *g = &s->sched.groups[q->group];
    bool more = true;
    if (!isfinite(token.logprob))
        FAIL(e, TARE_E_NOT_FINITE,
             "%s: the logits after token %lld of sample %lld are not finite; the weights have overflowed or hold NaN",
             g->request->where ? g->request->where : "a prompt", (long long)q->n, (long long)(token.seq - g->first));
    TRY(draw_append(s, token, e));
    q->n_sampled++;
    s->stats.new_tokens++;
    const bool stop = is_stop(g->how, token.id), ends = stop || draw_remaining(s, q) <= 0;
    const enum finish finish = stop ? FINISH_STOP : FINISH_LENGTH;
    if (s->listener)
        TRY(report_token(s, g->how,
                         (struct session_token){.sample = token.seq - g->first,
                                                .position = q->n - 1,
                                                .id = token.id,
                                                .logprob = token.logprob,
                                                .ends = ends,
                                                .finish = finish},
                         g->how->token_rows ? logits : NULL, &more, e));
    if (!ends && more) return TARE_OK;
    return s->episodes.how ? episodes_end_turn(s, token.seq, finish, e) : draw_end(s, token.seq, finish, e);
}

struct sample_row draw_row(const struct sampler *s, const struct sequence *q)
{
    const struct sample_params *p = s->sched.groups[q->group].how->params;
    return (struct sample_row){.key = {q->key.k[0], q->key.k[1]},
                               .position = (uint64_t)q->n,
                               .temperature = (float)p->temperature,
                               .top_p = (float)p->top_p,
                               .min_p = (float)p->min_p,
                               .top_k = p->top_k < s->model->shape.vocab ? (int32_t)p->top_k : 0};
}

/* ---- draws */

tare_status sampler_draws_begin(struct sampler *s, int64_t most, struct draws *b, struct err *e)
{
    *b = (struct draws){.s = s, .capacity = most < DRAW_ROWS ? most : DRAW_ROWS};
    TRY(arena_new_raw(&s->scratch, &b->seqs, b->capacity, e));
    TRY(arena_new_raw(&s->scratch, &b->logits, b->capacity, e));
    TRY(arena_new_raw(&s->scratch, &b->rows, b->capacity, e));
    float *results;
    TRY(arena_new_raw(&s->scratch, &results, 3 * b->capacity, e));
    b->host = results;
    return TARE_OK;
}

/* Returns the destination of drawn tokens; logprobs and entropies follow them. */
static int32_t *results_of(const struct draws *b)
{
    return b->s->draw_memory ? (int32_t *)(void *)b->s->draw_memory->results : b->host;
}

static void issue_draw(const struct draws *b, int64_t n, const float *logits, int64_t ld)
{
    const struct model *m = b->s->model;
    const struct sample_row *rows = b->rows + b->n;
    int32_t *token = results_of(b) + b->n;
    float *logprob = (float *)(void *)(token + b->capacity);
    kernels_at(&m->ctx, "drawing tokens", -1);
    KERNEL(m->k, &m->ctx, sample, .token = token, .logprob = logprob, .entropy = logprob + b->capacity, .logits = logits, .ld = ld,
           .rows = model_to_backend(m, b->s->draw_memory ? b->s->draw_memory->rows + b->n : NULL, rows, n * (int64_t)sizeof *rows),
           .r = n, .v = m->shape.vocab);
}

tare_status sampler_draws_add(struct draws *b, const int64_t *seqs, int64_t n, const float *logits, int64_t ld, struct err *e)
{
    for (int64_t at = 0; at < n;) {
        if (b->n == b->capacity) TRY(sampler_draws_end(b, e));
        const int64_t free_rows = b->capacity - b->n, some = n - at < free_rows ? n - at : free_rows;
        for (int64_t i = 0; i < some; i++) {
            const struct sequence *q = &b->s->sched.seqs[seqs[at + i]];
            b->seqs[b->n + i] = seqs[at + i];
            b->logits[b->n + i] = logits + (at + i) * ld;
            b->rows[b->n + i] = draw_row(b->s, q);
            if (b->inputs && b->n + i && b->seqs[b->n + i - 1] == seqs[at + i])
                b->rows[b->n + i].position = b->rows[b->n + i - 1].position + 1;
            b->listens |= b->s->sched.groups[q->group].how->token_rows;
        }
        issue_draw(b, some, logits + at * ld, ld);
        b->n += some;
        at += some;
    }
    return TARE_OK;
}

tare_status sampler_draws_end(struct draws *b, struct err *e)
{
    const struct model *m = b->s->model;
    const int64_t n = b->n;
    if (!n) return TARE_OK;
    kernels_at(&m->ctx, "drawing tokens", -1);
    const int32_t *token = model_from_backend(m, b->host, results_of(b), 3 * b->capacity * (int64_t)sizeof *token);
    const float *logprob = (const float *)(const void *)(token + b->capacity), *entropy = logprob + b->capacity;
    TRY(model_finish(m, e));
    b->n = 0;
    bool dropped = false;
    for (int64_t i = 0; i < n; i++) {
        struct sequence *q = &b->s->sched.seqs[b->seqs[i]];
        const bool draft = b->inputs && i && b->seqs[i] == b->seqs[i - 1];
        dropped = draft && (dropped || token[i - 1] != b->inputs[i] || !q->running);
        if (dropped) continue;
        b->s->stats.accepted += draft;
        if (b->inputs) q->cached++; /* the input's key */
        const struct drawn drawn = {(int32_t)b->seqs[i], token[i], logprob[i], entropy[i], 0};
        TRY(draw_accept(b->s, drawn, b->logits[i], e));
    }
    if (b->inputs) b->inputs += n;
    return TARE_OK;
}

/* ---- the tokens of a prompt */

struct head_slice {
    const float *logits;
    const int32_t *target;
    int64_t n;
    float temperature;
};

/* Computes logprobs of a prompt's tokens target[0 .. n), n <= LOGIT_ROWS, from their logits. out:
 * host memory */
static tare_status prompt_logprobs(struct sampler *s, const struct head_slice *p, float *out, struct err *e)
{
    const struct model *m = s->model;
    float *to = s->draw_memory ? s->draw_memory->results : out, *lse;
    TRY(tensor_new_raw(&s->scratch, &lse, 2 * p->n, e));
    KERNEL(m->k, &m->ctx, head_stats, .logprob = to, .entropy = NULL, .lse = lse, .logits = p->logits,
           .target = model_to_backend(m, s->draw_memory ? s->draw_memory->results + p->n : NULL, p->target,
                                      p->n * (int64_t)sizeof *p->target),
           .temperature = p->temperature, .r = p->n, .v = m->shape.vocab);
    if (s->draw_memory) model_from_backend(m, out, to, p->n * (int64_t)sizeof *out);
    return model_finish(m, e);
}

tare_status draw_prompt(struct sampler *s, int64_t group, int64_t at, int64_t n, const float *hidden, struct err *e)
{
    const struct group *g = &s->sched.groups[group];
    const float temperature = g->how->params->temperature > 0 ? (float)g->how->params->temperature : 1;
    const int64_t vocab = s->model->shape.vocab;
    float *logits;
    TRY(sampler_logits_new(s, n, &logits, e));
    for (int64_t from = 0; from < n; from += LOGIT_ROWS) {
        const int64_t rows = n - from < LOGIT_ROWS ? n - from : LOGIT_ROWS;
        const int32_t *target = g->request->prompt + at + from;
        float got[LOGIT_ROWS];
        bool more;
        model_logits(s->model, hidden + from * s->model->shape.hidden, rows, logits);
        TRY(prompt_logprobs(s, &(struct head_slice){logits, target, rows, temperature}, got, e));
        for (int64_t i = 0; i < rows; i++) {
            if (!isfinite(got[i]))
                FAIL(e, TARE_E_NOT_FINITE, "%s: the logits of token %lld of the prompt are not finite",
                     g->request->where ? g->request->where : "a prompt", (long long)(at + from + i));
            const struct session_token token = {
                .sample = SESSION_PROMPT, .position = at + from + i, .id = target[i], .logprob = got[i]};
            TRY(report_token(s, g->how, token, logits + i * vocab, &more, e));
        }
    }
    return TARE_OK;
}

/* ---- the forward pass */

tare_status sampler_rows_forward(struct sampler *s, const struct rows *r, float **hidden, struct err *e)
{
    const struct forward_batch b = rows_batch(r);
    return model_forward(s->model, &s->cache, &b, &s->scratch, hidden, e);
}

tare_status sampler_logits_new(struct sampler *s, int64_t rows, float **logits, struct err *e)
{
    const int64_t n = rows < LOGIT_ROWS ? rows : LOGIT_ROWS;
    return tensor_new_raw(&s->scratch, logits, n * s->model->shape.vocab, e);
}
