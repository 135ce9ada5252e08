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
    TRY(host_room(s->model, bytes, room, e));
    *row = from_backend(s->model, *room, logits, bytes);
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

tare_status draw_tokens(struct sampler *s, const int64_t *seqs, int64_t n, const float *logits, int64_t ld, struct err *e)
{
    const struct model *m = s->model;
    struct sample_row rows[LOGIT_ROWS] = {0};
    struct drawn_rows host, *to = s->room ? &s->room->drawn : &host;
    for (int64_t i = 0; i < n; i++) {
        const struct sequence *q = &s->sched.seqs[seqs[i]];
        rows[i] = draw_row(s, q);
    }
    kernels_at(&m->ctx, "drawing tokens", -1);
    KERNEL(m->k, &m->ctx, sample, .token = to->token, .logprob = to->logprob, .entropy = to->entropy, .logits = logits, .ld = ld,
           .rows = to_backend(m, s->room ? s->room->rows : NULL, rows, n * (int64_t)sizeof *rows), .r = n, .v = m->shape.vocab);
    const struct drawn_rows *got = from_backend(m, &host, to, (int64_t)sizeof host);
    TRY(model_finish(m, e));
    for (int64_t i = 0; i < n; i++) {
        const struct drawn token = {(int32_t)seqs[i], got->token[i], got->logprob[i], got->entropy[i], 0};
        TRY(draw_accept(s, token, logits + i * ld, e));
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
static tare_status score(struct sampler *s, const struct head_piece *p, struct drawn_rows *out, struct err *e)
{
    const struct model *m = s->model;
    struct drawn_rows *to = s->room ? &s->room->drawn : out;
    float *lse;
    TRY(tensor_new_raw(&s->scratch, &lse, 2 * p->n, e));
    KERNEL(m->k, &m->ctx, head_stats, .logprob = to->logprob, .entropy = NULL, .lse = lse, .logits = p->logits,
           .target = to_backend(m, s->room ? to->token : NULL, p->target, p->n * (int64_t)sizeof *p->target),
           .temperature = p->temperature, .r = p->n, .v = m->shape.vocab);
    if (s->room) from_backend(m, out, to, (int64_t)sizeof *out);
    return model_finish(m, e);
}

tare_status draw_prompt(struct sampler *s, int64_t group, int64_t at, int64_t n, const float *hidden, struct err *e)
{
    const struct group *g = &s->sched.groups[group];
    const float temperature = g->how->params->temperature > 0 ? (float)g->how->params->temperature : 1;
    const int64_t vocab = s->model->shape.vocab;
    float *logits;
    TRY(logits_new(s, n, &logits, e));
    for (int64_t from = 0; from < n; from += LOGIT_ROWS) {
        const int64_t rows = n - from < LOGIT_ROWS ? n - from : LOGIT_ROWS;
        const int32_t *target = g->request->prompt + at + from;
        struct drawn_rows got;
        bool more;
        model_logits(s->model, hidden + from * s->model->shape.hidden, rows, logits);
        TRY(score(s, &(struct head_piece){logits, target, rows, temperature}, &got, e));
        for (int64_t i = 0; i < rows; i++) {
            if (!isfinite(got.logprob[i]))
                FAIL(e, TARE_E_NOT_FINITE, "%s: the logits of token %lld of the prompt are not finite",
                     g->request->where ? g->request->where : "a prompt", (long long)(at + from + i));
            const struct session_token token = {
                .sample = SESSION_PROMPT, .position = at + from + i, .id = target[i], .logprob = got.logprob[i]};
            TRY(tell(s, g->how, token, logits + i * vocab, &more, e));
        }
    }
    return TARE_OK;
}

/* ---- the forward pass */

tare_status rows_forward(struct sampler *s, const struct rows *r, float **hidden, struct err *e)
{
    const struct forward_batch b = rows_batch(r);
    return model_forward(s->model, &s->cache, &b, &s->scratch, hidden, e);
}

tare_status logits_new(struct sampler *s, int64_t rows, float **logits, struct err *e)
{
    const int64_t n = rows < LOGIT_ROWS ? rows : LOGIT_ROWS;
    return tensor_new_raw(&s->scratch, logits, n * s->model->shape.vocab, e);
}
