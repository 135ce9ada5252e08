/* Logits to tokens. */
#include "rollout/sampler.h"

#include <math.h>

static tare_status remember(struct sampler *s, struct drawn token, struct err *e)
{
    if (s->n_log == s->log_capacity) {
        TRY(mem_grow((void **)&s->log, &s->log_capacity, s->n_log + 1, (int64_t)sizeof *s->log, e));
        s->grown_elsewhere++;
    }
    s->log[s->n_log++] = token;
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

/* Logits of one row where the host may read them. room: NULL where they are there already */
static tare_status host_row(struct sampler *s, const float *logits, const float **row, void **room, struct err *e)
{
    const int64_t bytes = s->model->shape.vocab * (int64_t)sizeof *logits;
    TRY(model_host_alloc(s->model, bytes, room, e));
    *row = model_from_backend(s->model, *room, logits, bytes);
    return model_finish(s->model, e);
}

/* Tells the listener; *more: the sample goes on. */
static tare_status tell(struct sampler *s, const struct drawing *how, struct session_token t, const float *logits, bool *more,
                        struct err *e)
{
    void *room = NULL;
    if (logits) TRY(host_row(s, logits, &t.logits, &room, e));
    *more = s->listener(how->owner, &t);
    mem_free(room);
    return TARE_OK;
}

/* Tells a run's watch of a completion that has ended. */
static tare_status tell_end(struct sampler *s, int64_t seq, struct err *e)
{
    const struct sequence *q = &s->sched.seqs[seq];
    if (!s->watch.ended || s->listener) return TARE_OK;
    if (q->n > s->told_capacity) {
        TRY(mem_grow((void **)&s->told, &s->told_capacity, q->n, (int64_t)sizeof *s->told, e));
        s->grown_elsewhere++;
    }
    for (int64_t t = q->n, at = q->newest; t-- > 0; at = s->log[at].before) s->told[t] = s->log[at].id;
    const struct sample_ended x = {.request = q->group,
                                   .sample = seq - s->sched.groups[q->group].first,
                                   .at = seq,
                                   .ids = s->told,
                                   .n = q->n,
                                   .finish = q->finish};
    return s->watch.ended(s->watch.ctx, &x, e);
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
    token.before = q->newest;
    q->newest = s->n_log;
    TRY(remember(s, token, e));
    q->last = token.id;
    q->n++;
    s->stats.new_tokens++;
    const bool stop = is_stop(g->how, token.id), ends = stop || q->n == g->limit;
    const enum finish finish = stop ? FINISH_STOP : FINISH_LENGTH;
    if (s->listener)
        TRY(tell(s, g->how,
                 (struct session_token){.sample = token.seq - g->first,
                                        .position = q->n - 1,
                                        .id = token.id,
                                        .logprob = token.logprob,
                                        .ends = ends,
                                        .finish = finish},
                 g->how->token_rows ? logits : NULL, &more, e));
    if (!ends && more) return TARE_OK;
    scheduler_finish(&s->sched, token.seq, finish);
    return tell_end(s, token.seq, e);
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
    *b = (struct draws){.s = s, .room = most < DRAW_ROWS ? most : DRAW_ROWS};
    TRY(arena_new_raw(&s->scratch, &b->seqs, b->room, e));
    TRY(arena_new_raw(&s->scratch, &b->logits, b->room, e));
    TRY(arena_new_raw(&s->scratch, &b->rows, b->room, e));
    float *results;
    TRY(arena_new_raw(&s->scratch, &results, 3 * b->room, e));
    b->host = results;
    return TARE_OK;
}

/* Where the operation leaves tokens; logprobs and entropies come after them. */
static int32_t *results_of(const struct draws *b)
{
    return b->s->room ? (int32_t *)(void *)b->s->room->results : b->host;
}

static void issue(const struct draws *b, int64_t n, const float *logits, int64_t ld)
{
    const struct model *m = b->s->model;
    const struct sample_row *rows = b->rows + b->n;
    int32_t *token = results_of(b) + b->n;
    float *logprob = (float *)(void *)(token + b->room);
    kernels_at(&m->ctx, "drawing tokens", -1);
    KERNEL(m->k, &m->ctx, sample, .token = token, .logprob = logprob, .entropy = logprob + b->room, .logits = logits, .ld = ld,
           .rows = model_to_backend(m, b->s->room ? b->s->room->rows + b->n : NULL, rows, n * (int64_t)sizeof *rows), .r = n,
           .v = m->shape.vocab);
}

tare_status sampler_draws_add(struct draws *b, const int64_t *seqs, int64_t n, const float *logits, int64_t ld, struct err *e)
{
    for (int64_t at = 0; at < n;) {
        if (b->n == b->room) TRY(sampler_draws_end(b, e));
        const int64_t left = b->room - b->n, some = n - at < left ? n - at : left;
        for (int64_t i = 0; i < some; i++) {
            const struct sequence *q = &b->s->sched.seqs[seqs[at + i]];
            b->seqs[b->n + i] = seqs[at + i];
            b->logits[b->n + i] = logits + (at + i) * ld;
            b->rows[b->n + i] = draw_row(b->s, q);
            b->listens |= b->s->sched.groups[q->group].how->token_rows;
        }
        issue(b, some, logits + at * ld, ld);
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
    const int32_t *token = model_from_backend(m, b->host, results_of(b), 3 * b->room * (int64_t)sizeof *token);
    const float *logprob = (const float *)(const void *)(token + b->room), *entropy = logprob + b->room;
    TRY(model_finish(m, e));
    b->n = 0;
    for (int64_t i = 0; i < n; i++) {
        const struct drawn drawn = {(int32_t)b->seqs[i], token[i], logprob[i], entropy[i], 0};
        TRY(draw_accept(b->s, drawn, b->logits[i], e));
    }
    return TARE_OK;
}

/* ---- the tokens of a prompt */

struct head_piece {
    const float *logits;
    const int32_t *target;
    int64_t n;
    float temperature;
};

/* Logprobs of a prompt's tokens target[0 .. n), n <= LOGIT_ROWS, from their logits. out: the host's */
static tare_status score(struct sampler *s, const struct head_piece *p, float *out, struct err *e)
{
    const struct model *m = s->model;
    float *to = s->room ? s->room->results : out, *lse;
    TRY(tensor_new_raw(&s->scratch, &lse, 2 * p->n, e));
    KERNEL(m->k, &m->ctx, head_stats, .logprob = to, .entropy = NULL, .lse = lse, .logits = p->logits,
           .target = model_to_backend(m, s->room ? s->room->results + p->n : NULL, p->target, p->n * (int64_t)sizeof *p->target),
           .temperature = p->temperature, .r = p->n, .v = m->shape.vocab);
    if (s->room) model_from_backend(m, out, to, p->n * (int64_t)sizeof *out);
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
        TRY(score(s, &(struct head_piece){logits, target, rows, temperature}, got, e));
        for (int64_t i = 0; i < rows; i++) {
            if (!isfinite(got[i]))
                FAIL(e, TARE_E_NOT_FINITE, "%s: the logits of token %lld of the prompt are not finite",
                     g->request->where ? g->request->where : "a prompt", (long long)(at + from + i));
            const struct session_token token = {
                .sample = SESSION_PROMPT, .position = at + from + i, .id = target[i], .logprob = got[i]};
            TRY(tell(s, g->how, token, logits + i * vocab, &more, e));
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
