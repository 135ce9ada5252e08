/* mix: several files in fixed shares.
 *
 *   data.train = a.jsonl:0.7 b.jsonl:0.3
 *                w_s, divided by their sum; without weights all files have the same share
 *
 * After k prompts, T_s of them from file s, the next prompt comes from the file that is furthest
 * behind its share:
 *
 *   s = argmax_s  w_s (k + 1) - T_s
 *       draw = quota: T_s is never more than one from w_s k for two files, and
 *                                     the shares of every step are as even as they can be
 *   s ~ w                             draw = random
 *
 * Within a file rows come epoch after epoch, in a new order each time, by the file's own T_s: a
 * small file with a large weight has more epochs than the others. Groups that are replaced in a
 * step count. The state is T, and w, which is fixed for a run.
 *
 * Trainers' samplers use fixed shares of several sources as well; the plugin implements no paper.
 * The rule is the largest remainder, prompt by prompt. */
#include "common/curriculum.h"
#include "common/rows.h"

enum { P_DRAW, P_SHUFFLE, P_COUNT };
enum { QUOTA, RANDOM };
static const char *const DRAWS[] = {"quota", "random", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_DRAW] = TARE_CHOICE_PARAM("draw", "quota",
                                 "quota: the numbers follow the shares as closely as possible; random: each prompt's file is drawn",
                                 DRAWS, 0),
    [P_SHUFFLE] = TARE_BOOL_PARAM("shuffle", "true", "a new order of a file's rows in every epoch; false: the file's order", 0),
};

struct mix {
    const tare_host *host;
    const tare_value *v;
    const tare_dataset *rows;
    int64_t *size, *taken; /* [S] rows; n_s and T_s */
    int64_t *first;        /* [S+1] rows of file s are first[s] .. first[s+1]-1 in the data set */
    double *share;         /* [S] w_s */
};

static void destroy(void *self)
{
    struct mix *x = self;
    const tare_host *h = x->host;
    h->release(h->ctx, x->size);
    h->release(h->ctx, x->taken);
    h->release(h->ctx, x->first);
    h->release(h->ctx, x->share);
    h->release(h->ctx, x);
}

static tare_status fill_rows(struct mix *x, tare_error *error)
{
    const tare_dataset *r = x->rows;
    double sum = 0;
    for (int64_t s = 0; s < r->n_sources; s++) sum += r->source_weight[s];
    for (int64_t i = 0; i < r->n_rows; i++) x->size[r->source[i]]++;
    for (int64_t s = 0; s < r->n_sources; s++) {
        if (!x->size[s])
            return tare_fail(error, TARE_E_CONFIG, "file %lld of data.train has no rows; check data.limit", (long long)s + 1);
        x->share[s] = r->source_weight[s] / sum;
        x->first[s + 1] = x->first[s] + x->size[s];
    }
    for (int64_t i = 1; i < r->n_rows; i++)
        if (r->source[i] < r->source[i - 1]) return tare_fail(error, TARE_E_STATE, "the rows of a file are not contiguous");
    return TARE_OK;
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_host *host = setup->host;
    struct mix *x = host->alloc(host->ctx, sizeof *x, 0);
    if (!x) return tare_fail(error, TARE_E_NOMEM, "no memory");
    const int64_t bytes = (setup->dataset->n_sources + 1) * 8;
    *x = (struct mix){.host = host, .v = setup->values, .rows = setup->dataset};
    x->size = host->alloc(host->ctx, bytes, 0);
    x->taken = host->alloc(host->ctx, bytes, 0);
    x->first = host->alloc(host->ctx, bytes, 0);
    x->share = host->alloc(host->ctx, bytes, 0);
    tare_status status = x->size && x->taken && x->first && x->share ? TARE_OK : tare_fail(error, TARE_E_NOMEM, "no memory");
    if (!status) status = fill_rows(x, error);
    if (status)
        destroy(x);
    else
        *self = x;
    return status;
}

static int64_t furthest_behind(const struct mix *x, const int64_t *taken)
{
    int64_t k = 0, best = 0;
    double most = -INFINITY;
    for (int64_t s = 0; s < x->rows->n_sources; s++) k += taken[s];
    for (int64_t s = 0; s < x->rows->n_sources; s++) {
        const double behind = x->share[s] * (double)(k + 1) - (double)taken[s];
        if (behind > most) {
            most = behind;
            best = s;
        }
    }
    return best;
}

static tare_status drawn_source(const struct mix *x, int64_t prompt, int64_t *out, tare_error *error)
{
    uint32_t word[2];
    if (x->host->random(x->host->ctx, STREAM_SOURCE, (uint64_t)prompt, word, 2))
        return tare_fail(error, TARE_E_STATE, "the host has no random numbers");
    double u = rows_unit(word);
    int64_t s = 0;
    while (s < x->rows->n_sources - 1 && u >= x->share[s]) u -= x->share[s++];
    *out = s;
    return TARE_OK;
}

/* The scratch memory of next. */
struct choice {
    int64_t *taken; /* [S] T, advanced prompt by prompt */
    int64_t *place; /* [n] the T_s of each prompt */
    int64_t *order; /* [R] of one epoch of one file */
};

/* Chooses the file of each prompt, as row[i], and the position in that file. */
static tare_status choose_files(const struct mix *x, const tare_draw *draw, struct choice *c, int64_t *row, tare_error *error)
{
    tare_status status = TARE_OK;
    for (int64_t i = 0; i < draw->n_drawn; i++) c->taken[x->rows->source[draw->drawn[i]]]++;
    for (int64_t i = 0; i < draw->n && !status; i++) {
        row[i] = furthest_behind(x, c->taken);
        if (x->v[P_DRAW].i == RANDOM) status = drawn_source(x, draw->cursor + i, &row[i], error);
        c->place[i] = c->taken[row[i]]++;
    }
    return status;
}

/* Chooses the rows of the prompts of file s, whose positions ascend: one order for each epoch.
 * Prompts that have their row get position -1. */
static tare_status place_rows(const struct mix *x, int64_t s, int64_t n, struct choice *c, int64_t *row, tare_error *error)
{
    struct epoch epoch = {.which = s, .number = -1, .n = x->size[s], .shuffle = (int)x->v[P_SHUFFLE].i};
    for (int64_t i = 0; i < n; i++) {
        if (c->place[i] < 0 || row[i] != s) continue;
        if (epoch.number != c->place[i] / epoch.n) {
            epoch.number = c->place[i] / epoch.n;
            const tare_status status = rows_order(x->host, &epoch, c->order, error);
            if (status) return status;
        }
        row[i] = x->first[s] + c->order[c->place[i] % epoch.n];
        c->place[i] = -1;
    }
    return TARE_OK;
}

static tare_status next(const void *self, const tare_draw *draw, tare_choice *out, tare_error *error)
{
    const struct mix *x = self;
    const int64_t S = x->rows->n_sources;
    struct choice c = {.taken = x->host->alloc(x->host->ctx, (S + draw->n + x->rows->n_rows) * 8, 0)};
    if (!c.taken) return tare_fail(error, TARE_E_NOMEM, "no memory");
    memcpy(c.taken, x->taken, (size_t)S * sizeof *c.taken);
    c.place = c.taken + S;
    c.order = c.place + draw->n;
    tare_status status = choose_files(x, draw, &c, out->row, error);
    for (int64_t s = 0; s < S && !status; s++) status = place_rows(x, s, draw->n, &c, out->row, error);
    x->host->release(x->host->ctx, c.taken);
    return status;
}

static tare_status apply(void *self, const tare_batch *groups, tare_error *error)
{
    struct mix *x = self;
    (void)error;
    for (int64_t m = 0; m < groups->n_groups; m++) x->taken[x->rows->source[row_of(groups, m)]]++;
    return TARE_OK;
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct mix *x = self;
    const int64_t S = x->rows->n_sources;
    (void)error;
    const tare_status status = counts_save(x->taken, S, out);
    return status ? status : tare_put(out, x->share, S * (int64_t)sizeof *x->share);
}

/* The counts are valid only with the shares that they were made with. */
static tare_status load_into(const struct mix *x, const tare_stream *in, int64_t *taken, double *share, tare_error *error)
{
    const int64_t S = x->rows->n_sources;
    const tare_status status = counts_load(x->host, in, S, "files", taken, error);
    if (status) return status;
    if (tare_get(in, share, S * (int64_t)sizeof *share)) return tare_fail(error, TARE_E_CORRUPT, "the state is cut short");
    for (int64_t s = 0; s < S; s++)
        if (share[s] != x->share[s])
            return tare_fail(error, TARE_E_CONFIG,
                             "file %lld of data.train had the share %g in the run, and has %g now; the weights are fixed for a run",
                             (long long)s + 1, share[s], x->share[s]);
    memcpy(x->taken, taken, (size_t)S * sizeof *taken);
    return TARE_OK;
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct mix *x = self;
    const tare_host *h = x->host;
    int64_t *taken = h->alloc(h->ctx, (x->rows->n_sources + 1) * (int64_t)sizeof *taken, 0);
    double *share = h->alloc(h->ctx, (x->rows->n_sources + 1) * (int64_t)sizeof *share, 0);
    const tare_status status = taken && share ? load_into(x, in, taken, share, error) : tare_fail(error, TARE_E_NOMEM, "no memory");
    h->release(h->ctx, taken);
    h->release(h->ctx, share);
    return status;
}

CURRICULUM("mix", "several files in fixed shares (data.train = a.jsonl:0.7 b.jsonl:0.3)", NULL, W_COUNT, 1,
           .flags = TARE_CURRICULUM_READS_WEIGHTS, .save = save, .load = load, .next = next, .apply = apply)
