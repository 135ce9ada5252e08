/* Prefill: prompts into the cache, and the first tokens of their samples. */
#include "rollout/sampler.h"

static int64_t samples_of(const struct sampler *s, int64_t group)
{
    return s->sched.groups[group].request->n_samples;
}

/* Selects the sequences that one operation draws for, from the logits of groups[0 .. rows-1]: all
 * samples of the first prompt from one row, or if it has a single sample, one row each for it and
 * the single-sample prompts that follow. Returns the number of prompts. */
static int64_t drawn_together(const struct sampler *s, const int64_t *groups, int64_t rows, int64_t *seqs, int64_t *n)
{
    const int64_t samples = samples_of(s, groups[0]);
    for (*n = 0; samples > 1 && *n < samples; ++*n) seqs[*n] = s->sched.groups[groups[0]].first + *n;
    if (samples != 1) return 1;
    for (; *n < rows && samples_of(s, groups[*n]) == 1; ++*n) seqs[*n] = s->sched.groups[groups[*n]].first;
    return *n;
}

/* Draws the first tokens of the samples of groups[0 .. n-1] from hidden [n, C], the last rows of
 * their prompts. The host waits once for all of them. */
static tare_status first_tokens(struct sampler *s, const float *hidden, const int64_t *groups, int64_t n, struct err *e)
{
    const int64_t vocab = s->model->shape.vocab;
    int64_t *seqs, all = 0, most = LOGIT_ROWS;
    struct draws draws;
    float *logits;
    for (int64_t i = 0; i < n; i++) {
        all += samples_of(s, groups[i]);
        most = samples_of(s, groups[i]) > most ? samples_of(s, groups[i]) : most;
    }
    TRY(sampler_logits_new(s, n, &logits, e));
    TRY(arena_new_raw(&s->scratch, &seqs, most, e));
    TRY(sampler_draws_begin(s, all, &draws, e));
    for (int64_t at = 0; at < n; at += LOGIT_ROWS) {
        const int64_t rows = n - at < LOGIT_ROWS ? n - at : LOGIT_ROWS;
        model_logits(s->model, hidden + at * s->model->shape.hidden, rows, logits);
        for (int64_t i = 0; i < rows;) {
            int64_t m;
            const int64_t prompts = drawn_together(s, groups + at + i, rows - i, seqs, &m);
            TRY(sampler_draws_add(&draws, seqs, m, logits + i * vocab, samples_of(s, groups[at + i]) == 1 ? vocab : 0, e));
            i += prompts;
        }
        if (draws.listens) TRY(sampler_draws_end(&draws, e));
    }
    TRY(sampler_draws_end(&draws, e));
    for (int64_t i = 0; i < n; i++) s->sched.groups[groups[i]].drawn = true;
    return TARE_OK;
}

/* Rows of a pass that are prompt tokens with logprobs for the listener. */
struct reported_rows {
    int64_t group, at, n; /* tokens at .. at + n of its prompt, each predicted by the row before it */
};

/* Marks those of the stretch's next rows done .. done + n that give logits of the prompt's
 * tokens. */
static void mark_prompt_rows(const struct sampler *s, const struct stretch *x, int64_t done, int64_t n, struct reported_rows *t)
{
    /* The last row of a prompt predicts a new token. */
    const int64_t last = x->n - 1 < done + n ? x->n - 1 : done + n;
    *t = (struct reported_rows){.group = x->group, .at = done + 1};
    if (x->group >= 0 && s->sched.groups[x->group].how->prompt_rows && last > done) t->n = last - done;
}

/* Runs a forward pass with as many rows of the stretches as allowed. at, done: the current stretch,
 * and the number of its rows that are computed */
static tare_status run_pass(struct sampler *s, const struct stretch *list, int64_t n, int64_t *at, int64_t *done, struct err *e)
{
    const int64_t most = n - *at < s->prefill_rows ? n - *at : s->prefill_rows;
    struct rows r;
    struct reported_rows *reported;
    int64_t n_ended = 0, n_reported = 0, *first;
    TRY(rows_new(&s->scratch, s->prefill_rows, most, &r, e));
    TRY(arena_new_raw(&s->scratch, &reported, most, e));
    TRY(arena_new_raw(&s->scratch, &first, most, e));
    while (*at < n && r.t < s->prefill_rows) {
        const struct stretch *x = &list[*at];
        const int64_t free_rows = s->prefill_rows - r.t, rows = x->n - *done < free_rows ? x->n - *done : free_rows;
        const bool end = *done + rows == x->n, wanted = end && x->group >= 0;
        first[n_reported] = r.t;
        mark_prompt_rows(s, x, *done, rows, &reported[n_reported]);
        n_reported += reported[n_reported].n > 0;
        rows_add(&r, x->ids + *done, rows, x->pos + *done, x->blocks, wanted);
        if (wanted) s->ended[n_ended++] = x->group;
        *done = end ? 0 : *done + rows;
        *at += end;
    }
    for (int64_t i = 0; i < n_reported; i++) rows_want(&r, first[i], reported[i].n);
    float *hidden;
    TRY(sampler_rows_forward(s, &r, &hidden, e));
    const float *row = hidden + n_ended * s->model->shape.hidden;
    for (int64_t i = 0; i < n_reported; row += reported[i++].n * s->model->shape.hidden)
        TRY(draw_prompt(s, reported[i].group, reported[i].at, reported[i].n, row, e));
    return n_ended ? first_tokens(s, hidden, s->ended, n_ended, e) : TARE_OK;
}

/* Computes the keys of all stretches. Groups whose prompts end in a pass draw their first tokens
 * before the next pass. Sequences that finish here free blocks, and nothing takes any before the
 * partial blocks are copied. */
static tare_status run_stretches(struct sampler *s, const struct stretch *list, int64_t n, const volatile int *cancelled,
                                 struct err *e)
{
    int64_t at = 0, done = 0;
    while (at < n) {
        if (cancelled && *cancelled) FAIL(e, TARE_E_CANCELLED, "sampling was interrupted");
        TRY(run_pass(s, list, n, &at, &done, e));
    }
    return TARE_OK;
}

static tare_status copy_partials(struct sampler *s, struct err *e)
{
    const struct model *m = s->model;
    const struct attn_shape shape = model_attn_shape(m);
    const int64_t n = s->sched.n_copies, bytes = n * (int64_t)sizeof *s->sched.copy_to;
    int32_t *staging;
    if (!n) return TARE_OK;
    TRY(model_backend_alloc(m, &s->scratch, 2 * bytes, &staging, e));
    const int32_t *to = model_to_backend(m, staging, s->sched.copy_to, bytes);
    const int32_t *from = model_to_backend(m, staging ? staging + n : NULL, s->sched.copy_from, bytes);
    for (int64_t l = 0; l < s->cache.n_layers; l++)
        KERNEL(m->k, &m->ctx, kv_copy, .kv = s->cache.layers[l], .shape = shape, .to = to, .from = from, .n = n);
    s->sched.n_copies = 0; /* their sources may be dropped now */
    return TARE_OK;
}

/* Number of keys that an admitted sequence lacks. */
static int64_t missing_keys(const struct scheduler *d, const struct sequence *q)
{
    const int64_t n = d->groups[q->group].request->prompt_len + q->n - 1 - q->kept;
    return q->running && n > 0 ? n : 0;
}

/* Gathers the ids of stretches from the log in one pass: in a session tokens are no chain. fill
 * [n_seqs]: where the next id of a sequence goes; -1: nowhere */
static void gather_ids(struct sampler *s, int64_t *fill)
{
    for (int64_t i = 0; i < s->n_log; i++)
        if (fill[s->log[i].seq] >= 0) s->refill[fill[s->log[i].seq]++] = s->log[i].id;
}

/* Counts the keys that are computed again, and the others, of context. */
static void count_refill(struct sampler *s, const struct sequence *q, int64_t n)
{
    const int64_t again = q->known - (q->kept - s->sched.groups[q->group].request->prompt_len);
    s->stats.refilled_tokens += again < 0 ? 0 : again < n ? again : n;
}

/* Lists the stretches of preempted sequences, and of context. */
static tare_status refill_stretches(struct sampler *s, struct stretch *list, int64_t *n, struct err *e)
{
    struct scheduler *d = &s->sched;
    int64_t total = 0, *fill; /* [n_seqs] */
    *n = 0;
    for (int64_t i = d->admitted; i < d->n_running; i++)
        if (missing_keys(d, &d->seqs[d->running[i]])) total += d->seqs[d->running[i]].n;
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
        const int64_t missing = missing_keys(d, q), first = q->kept - d->groups[q->group].request->prompt_len;
        if (!missing) continue;
        list[(*n)++] =
            (struct stretch){.ids = s->refill + total + first, .blocks = q->blocks, .n = missing, .pos = q->kept, .group = -1};
        if (s->listener)
            fill[d->running[i]] = total;
        else
            draw_copy_ids(s, q, first, missing, s->refill + total + first);
        total += q->n;
        count_refill(s, q, missing);
    }
    if (s->listener) gather_ids(s, fill);
    return TARE_OK;
}

tare_status prefill(struct sampler *s, const volatile int *cancelled, struct err *e)
{
    struct scheduler *d = &s->sched;
    struct stretch *list = s->stretches;
    for (int64_t i = 0; i < d->n_fresh; i++) {
        const struct group *g = &d->groups[d->fresh[i]];
        list[i] = (struct stretch){
            .ids = g->request->prompt, .blocks = g->blocks, .n = g->request->prompt_len, .group = g->drawn ? -1 : d->fresh[i]};
        if (g->drawn)
            s->stats.refilled_tokens += g->request->prompt_len;
        else
            s->stats.prompt_tokens += g->request->prompt_len;
    }
    TRY(run_stretches(s, list, d->n_fresh, cancelled, e));
    TRY(copy_partials(s, e));
    int64_t n;
    TRY(refill_stretches(s, list, &n, e));
    TRY(run_stretches(s, list, n, cancelled, e));
    scheduler_compact(d);
    return TARE_OK;
}
