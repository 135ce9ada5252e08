/* Speculation: drafts of the next tokens (draft.h) become further rows of a decoding pass, and are
 * verified by it.
 *
 * A token is a function of the logits of its row, its key and its position, and the logits of a row
 * have the same bits in every batch (kernels_ops.h). So the token drawn after a right prefix is the
 * token that decoding one by one draws there. sampler_draws_end compares: after the first draw that
 * differs from the draft, the rows of the sequence are dropped; their keys lie behind `cached`, where
 * the next pass writes its own. No token depends on the drafts, which may depend on the batch and
 * on the order in which sequences end.
 *
 * Products of few rows take the time of reading the weights, so each further row costs little, up to
 * few_rows of kernels.h, where a pass takes about twice as long as with one. More rows are never
 * used. ref and cuda do not state few_rows and do not speculate: cuda decodes ahead on the device, and
 * without batch_invariant its bits depend on the number of rows. */
#include "base/fs.h"
#include "rollout/sampler.h"
#include "sizes.h"

#include <math.h>
#include <string.h>

/* Weights up to CACHED_BYTES may stay in the processor's caches, from where rows are less cheap:
 * CACHED_COST times. SIBLINGS: most finished sequences of its group that a sequence drafts from. */
enum { CACHED_BYTES = 32 << 20, CACHED_COST = 4, SIBLINGS = 8 };
#define DRAFT_WORTH 1.5 /* tokens for the cost of one that a draft must promise */

void speculate_begin(struct sampler *s)
{
    const struct model *m = s->model;
    struct speculation *x = &s->speculation;
    const bool int8 = model_head(m)->int8;
    int64_t bytes = 0;
    x->off = true;
    if (!m->k->few_rows || s->decoder) return;
    for (int64_t i = 0; i < m->n_products; i++) bytes += m->products[i].n * m->products[i].k * (int8 ? 1 : dtype_bytes(m->dtype));
    const int64_t few = m->k->few_rows(m->dtype, int8);
    x->row_cost = (bytes > CACHED_BYTES ? 1.0 : CACHED_COST) / (double)few;
    x->rows = few < SPECULATE_ROWS ? few : SPECULATE_ROWS;
}

void speculate_free(struct speculation *x)
{
    drafts_free(x->drafts);
    mem_free(x->unread);
}

void sampler_speculate(struct sampler *s, bool on)
{
    s->speculation.off = !on;
}

/* ---- the tokens that drafts are made from */

static tare_status read_newest(struct sampler *s, int64_t seq, int64_t n, struct err *e)
{
    struct speculation *x = &s->speculation;
    if (n > x->unread_capacity) {
        TRY(mem_grow((void **)&x->unread, &x->unread_capacity, n, (int64_t)sizeof *x->unread, e));
        s->grown_elsewhere++;
    }
    draw_copy_newest(s, seq, n, x->unread);
    return drafts_append(x->drafts, s->sched.seqs[seq].drafts, x->unread, n, e);
}

static uint64_t group_key(const struct group *g)
{
    return fs_hash(g->request->prompt, g->request->prompt_len * (int64_t)sizeof *g->request->prompt, 0);
}

/* Reads finished sequences of a group, the last ones. */
static tare_status read_siblings(struct sampler *s, const struct group *g, struct err *e)
{
    int64_t most = SIBLINGS;
    for (int64_t k = g->first + g->request->n_samples - 1; k >= g->first && most; k--) {
        struct sequence *q = &s->sched.seqs[k];
        if (!q->done || q->drafts) continue;
        most--;
        q->drafts = drafts_open(s->speculation.drafts, group_key(g));
        TRY(read_newest(s, k, q->n, e));
    }
    return TARE_OK;
}

/* Appends a running sequence's tokens that drafts does not have, with its prompt if it is new. */
static tare_status read_sequence(struct sampler *s, int64_t seq, struct err *e)
{
    struct speculation *x = &s->speculation;
    struct sequence *q = &s->sched.seqs[seq];
    const struct group *g = &s->sched.groups[q->group];
    int64_t known = drafts_length(x->drafts, q->drafts);
    if (known < 0) {
        if (!s->listener) TRY(read_siblings(s, g, e));
        q->drafts = drafts_open(x->drafts, group_key(g));
        TRY(drafts_append(x->drafts, q->drafts, g->request->prompt, g->request->prompt_len, e));
        known = g->request->prompt_len;
    }
    return read_newest(s, seq, g->request->prompt_len + q->n - known, e);
}

/* ---- the choice of drafts */

/* Cost of a pass as a multiple of that of one row. A draft has to earn more than its row costs,
 * because chances are estimates. */
static double pass_cost(const struct speculation *x, int64_t running, int64_t drafts)
{
    return 1 + ((double)(running - 1) + DRAFT_WORTH * (double)drafts) * x->row_cost;
}

/* Sets the worth of each sequence's tokens. A run ends with its last sequence, so where none waits,
 * tokens of a sequence that is ahead of the others are worth less. */
static void weigh_sequences(const struct sampler *s, double worth[SPECULATE_ROWS])
{
    const struct scheduler *d = &s->sched;
    double most = 1;
    for (int64_t i = 0; i < d->n_running; i++) most = fmax(most, (double)draw_remaining(s, &d->seqs[d->running[i]]));
    for (int64_t i = 0; i < d->n_running; i++) {
        const double left = (double)draw_remaining(s, &d->seqs[d->running[i]]) / most;
        worth[i] = s->listener || d->remaining > d->n_running ? 1 : left * left;
    }
}

/* Takes drafts in the order of their worth, up to the number with the most tokens for the cost. A
 * pass without drafts must be worse by 5 %. x->n: drafts of each sequence, and then those chosen */
static void choose_drafts(struct speculation *x, int64_t running, const double worth[SPECULATE_ROWS])
{
    int64_t taken[SPECULATE_ROWS] = {0}, best[SPECULATE_ROWS] = {0};
    double tokens = (double)running, most = 1.05 * tokens / pass_cost(x, running, 0);
    x->total = 0;
    for (int64_t drafts = 1; running + drafts <= x->rows; drafts++) {
        int64_t next = -1;
        double gain = 0;
        for (int64_t i = 0; i < running; i++) {
            if (taken[i] == x->n[i] || worth[i] * x->chance[i][taken[i]] <= gain) continue;
            next = i;
            gain = worth[i] * x->chance[i][taken[i]];
        }
        if (next < 0) break;
        taken[next]++;
        tokens += gain;
        if (tokens / pass_cost(x, running, drafts) < most) continue;
        most = tokens / pass_cost(x, running, drafts);
        x->total = drafts;
        memcpy(best, taken, sizeof best);
    }
    memcpy(x->n, best, sizeof best);
}

/* Gives a sequence blocks for the keys of its drafts. As when one is admitted, every running sequence
 * must still be able to take a block. Returns the number of drafts that have space. */
static int64_t grow_for_drafts(struct scheduler *d, struct sequence *q, int64_t n)
{
    while (q->n_blocks * KV_BLOCK < q->cached + 1 + n) {
        if (d->pool.n_free <= d->n_running + 1) return q->n_blocks * KV_BLOCK - q->cached - 1;
        q->blocks[q->n_blocks++] = kv_blocks_take(&d->pool);
    }
    return n;
}

tare_status speculate_plan(struct sampler *s, struct err *e)
{
    struct speculation *x = &s->speculation;
    struct scheduler *d = &s->sched;
    x->total = 0;
    if (x->off || x->row_cost == 0 || d->n_running >= x->rows) return TARE_OK;
    if (!x->drafts) {
        TRY(drafts_new(&x->drafts, e));
        s->grown_elsewhere++;
    }
    for (int64_t i = 0; i < d->n_running; i++) TRY(read_sequence(s, d->running[i], e));
    for (int64_t i = 0; i < d->n_running; i++) {
        const struct sequence *q = &d->seqs[d->running[i]];
        const int64_t remaining = draw_remaining(s, q) - 1, most = remaining < DRAFT_MOST ? remaining : DRAFT_MOST;
        x->ids[i][0] = q->last;
        x->n[i] = drafts_propose(x->drafts, q->drafts, most, x->ids[i] + 1, x->chance[i]);
    }
    double worth[SPECULATE_ROWS];
    weigh_sequences(s, worth);
    choose_drafts(x, d->n_running, worth);
    if (!x->total) return TARE_OK;
    x->total = 0;
    for (int64_t i = 0; i < d->n_running; i++) x->total += x->n[i] = grow_for_drafts(d, &d->seqs[d->running[i]], x->n[i]);
    s->stats.drafted += x->total;
    return TARE_OK;
}
