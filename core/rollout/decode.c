/* Decoding: the next token of all running sequences, or of some of them several. */
#include "rollout/sampler.h"

#include <string.h>

/* Number of keys shared by the samples of a prompt: those of its full blocks (scheduler.h). */
static int64_t shared_keys(const struct scheduler *d, const struct sequence *q)
{
    return d->groups[q->group].request->prompt_len / KV_BLOCK * KV_BLOCK;
}

/* Makes the rows of a pass: the newest token of each sequence, and its drafts. seqs [t]: the
 * sequence of each row */
static tare_status decode_rows(struct sampler *s, struct rows *r, int64_t **seqs, struct err *e)
{
    const struct scheduler *d = &s->sched;
    const struct speculation *x = &s->speculation;
    const int64_t n = d->n_running;
    TRY(rows_new(&s->scratch, n + x->total, n, r, e));
    TRY(arena_new_raw(&s->scratch, seqs, n + x->total, e));
    for (int64_t i = 0; i < n; i++) {
        const struct sequence *q = &d->seqs[d->running[i]];
        const int64_t row = r->t, rows = x->total ? 1 + x->n[i] : 1;
        rows_add(r, x->total ? x->ids[i] : &q->last, rows, q->cached, q->blocks, false);
        rows_want(r, row, rows);
        r->seqs[i].shared = shared_keys(d, q);
        for (int64_t k = row; k < r->t; k++) (*seqs)[k] = d->running[i];
    }
    return TARE_OK;
}

static tare_status decode_one(struct sampler *s, struct err *e)
{
    struct scheduler *d = &s->sched;
    const int64_t vocab = s->model->shape.vocab;
    struct rows r;
    struct draws draws;
    int64_t *seqs;
    TRY(decode_rows(s, &r, &seqs, e));
    const int64_t n = r.t;
    float *hidden, *logits;
    TRY(sampler_rows_forward(s, &r, &hidden, e));
    TRY(sampler_logits_new(s, n, &logits, e));
    TRY(sampler_draws_begin(s, n, &draws, e));
    draws.inputs = r.ids;
    for (int64_t at = 0; at < n; at += LOGIT_ROWS) {
        const int64_t rows = n - at < LOGIT_ROWS ? n - at : LOGIT_ROWS;
        model_logits(s->model, hidden + at * s->model->shape.hidden, rows, logits);
        TRY(sampler_draws_add(&draws, seqs + at, rows, logits, vocab, e));
        if (draws.listens) TRY(sampler_draws_end(&draws, e));
    }
    TRY(sampler_draws_end(&draws, e));
    s->stats.decode_steps++;
    scheduler_compact(d);
    return TARE_OK;
}

/* Decodes several tokens on a device. A sequence draws nothing after its end. */
static tare_status decode_ahead(struct sampler *s, int64_t tokens, struct err *e)
{
    struct scheduler *d = &s->sched;
    const int64_t n = d->n_running;
    struct decoder_batch b;
    TRY(decoder_begin(s->decoder, n, &b, e));
    b.tokens = tokens;
    b.stop = d->groups[d->seqs[d->running[0]].group].how->stop;
    b.n_stop = d->groups[d->seqs[d->running[0]].group].how->n_stop;
    for (int64_t i = 0; i < n; i++) {
        const struct sequence *q = &d->seqs[d->running[i]];
        b.rows[i] = (struct decode_row){.token = q->last,
                                        .pos = (int32_t)q->cached,
                                        .remaining = (int32_t)draw_remaining(s, q),
                                        .shared = (int32_t)shared_keys(d, q),
                                        .blocks = q->blocks,
                                        .draw = draw_row(s, q)};
    }
    TRY(decoder_run(s->decoder, &s->cache, &b, e));
    for (int64_t at = 0; at < tokens * n; at++) {
        const int64_t seq = d->running[at % n];
        if (b.token[at] < 0 || !d->seqs[seq].running) continue; /* ended, by the listener for example */
        d->seqs[seq].cached++;
        TRY(draw_accept(s, (struct drawn){(int32_t)seq, b.token[at], b.logprob[at], b.entropy[at], 0}, NULL, e));
    }
    s->stats.decode_steps += tokens;
    scheduler_compact(d);
    return TARE_OK;
}

/* Returns whether a device can decode ahead: it needs the same stop ids for all sequences, and
 * gives no logits to the host. */
static bool can_run_ahead(const struct sampler *s)
{
    const struct scheduler *d = &s->sched;
    if (!s->decoder) return false;
    const struct drawing *first = d->groups[d->seqs[d->running[0]].group].how;
    for (int64_t i = 0; i < d->n_running; i++) {
        const struct drawing *how = d->groups[d->seqs[d->running[i]].group].how;
        if (how->token_rows || how->n_stop != first->n_stop) return false;
        if (how->stop != first->stop && memcmp(how->stop, first->stop, (size_t)how->n_stop * sizeof *how->stop) != 0) return false;
    }
    return true;
}

/* Number of tokens to decode before the host takes over again. */
static int64_t tokens_ahead(const struct sampler *s)
{
    const struct scheduler *d = &s->sched;
    int64_t most = 1;
    for (int64_t i = 0; i < d->n_running; i++) {
        const struct sequence *q = &d->seqs[d->running[i]];
        const int64_t remaining = draw_remaining(s, q);
        if (remaining > most) most = remaining;
    }
    return most < DECODER_TOKENS ? most : DECODER_TOKENS;
}

tare_status decode(struct sampler *s, struct err *e)
{
    const bool ahead = can_run_ahead(s);
    const int64_t tokens = ahead ? tokens_ahead(s) : 1;
    scheduler_grow(&s->sched, tokens);
    if (ahead) return decode_ahead(s, tokens, e);
    TRY(speculate_plan(s, e));
    return decode_one(s, e);
}
