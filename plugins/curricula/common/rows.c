#include "rows.h"

#include <stdlib.h>

double rows_unit(const uint32_t word[2])
{
    const uint64_t x = (uint64_t)word[0] << 32 | word[1];
    return ((double)(x >> 11) + 0.5) * 0x1p-53;
}

static void *take_rows(const tare_host *host, int64_t n, size_t size, tare_error *error)
{
    void *p = host->alloc(host->ctx, (n + 1) * (int64_t)size, 0);
    if (!p) tare_fail(error, TARE_E_NOMEM, "no memory for %lld rows", (long long)n);
    return p;
}

tare_status rows_order(const tare_host *host, const struct epoch *e, int64_t *index, tare_error *error)
{
    for (int64_t i = 0; i < e->n; i++) index[i] = i;
    if (!e->shuffle) return TARE_OK;
    uint32_t *word = take_rows(host, 2 * e->n, sizeof *word, error);
    if (!word) return TARE_E_NOMEM;
    const tare_status status = host->random(host->ctx, (uint64_t)(STREAM_ORDER + e->which), (uint64_t)e->number, word, 2 * e->n);
    /* Fisher-Yates; the bias of the remainder of 64 bits is negligible */
    for (int64_t i = e->n - 1; i > 0 && !status; i--) {
        const uint64_t x = (uint64_t)word[2 * i] << 32 | word[2 * i + 1];
        const int64_t j = (int64_t)(x % (uint64_t)(i + 1)), swap = index[i];
        index[i] = index[j];
        index[j] = swap;
    }
    host->release(host->ctx, word);
    return status ? tare_fail(error, status, "the host has no random numbers") : TARE_OK;
}

/* ---------------------------------------------------------------- choice by weight */

struct key {
    double value;
    int64_t row;
};

static int larger_first(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->value != y->value) return x->value > y->value ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Computes the keys of the rows that the step has not drawn yet, or of all rows where too few
 * remain. Returns their number. */
static int64_t keys_of(const tare_draw *draw, const double *weight, int64_t n, const uint32_t *word, struct key *key)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        const double w = weight[i];
        key[i] = (struct key){w > 0 ? log(rows_unit(word + 2 * i)) / w : -INFINITY, i};
    }
    if (draw->n_drawn + draw->n <= n)
        for (int64_t k = 0; k < draw->n_drawn; k++) key[draw->drawn[k]].row = -1;
    for (int64_t i = 0; i < n; i++)
        if (key[i].row >= 0) key[count++] = key[i];
    qsort(key, (size_t)count, sizeof *key, larger_first);
    return count;
}

tare_status rows_choose(const tare_host *host, const tare_draw *draw, const double *weight, int64_t n, int64_t *row,
                        tare_error *error)
{
    uint32_t *word = take_rows(host, 2 * n, sizeof *word, error);
    struct key *key = take_rows(host, n, sizeof *key, error);
    tare_status status = word && key ? TARE_OK : TARE_E_NOMEM;
    if (!status) status = host->random(host->ctx, STREAM_CHOICE, (uint64_t)draw->cursor, word, 2 * n);
    if (status && status != TARE_E_NOMEM) tare_fail(error, status, "the host has no random numbers");
    if (!status) {
        const int64_t count = keys_of(draw, weight, n, word, key);
        for (int64_t i = 0; i < draw->n; i++) row[i] = key[i % count].row;
    }
    host->release(host->ctx, word);
    host->release(host->ctx, key);
    return status;
}

/* ---------------------------------------------------------------- pass rates */

tare_status passes_new(const tare_host *host, int64_t n, struct passes *out, tare_error *error)
{
    *out = (struct passes){.host = host, .n = n};
    out->right = take_rows(host, n, sizeof *out->right, error);
    out->total = take_rows(host, n, sizeof *out->total, error);
    if (out->right && out->total) return TARE_OK;
    passes_free(out);
    return TARE_E_NOMEM;
}

void passes_free(struct passes *p)
{
    p->host->release(p->host->ctx, p->right);
    p->host->release(p->host->ctx, p->total);
}

void group_passes(const tare_batch *groups, int64_t m, int64_t *right, int64_t *verified)
{
    *right = *verified = 0;
    for (int64_t i = groups->group_begin[m]; i < groups->group_begin[m + 1]; i++) {
        *right += verdict_of(groups, i) == TARE_VERDICT_CORRECT;
        *verified += has_verdict(groups, i);
    }
}

void passes_add(struct passes *p, const tare_batch *groups, double rho)
{
    for (int64_t m = 0; m < groups->n_groups; m++) {
        const int64_t row = row_of(groups, m);
        int64_t right, verified;
        group_passes(groups, m, &right, &verified);
        if (!verified) continue;
        p->right[row] = rho * p->right[row] + (double)right;
        p->total[row] = rho * p->total[row] + (double)verified;
    }
}

tare_status passes_save(const struct passes *p, const tare_stream *out)
{
    tare_status status = tare_put(out, &p->n, sizeof p->n);
    if (!status) status = tare_put(out, p->right, p->n * (int64_t)sizeof *p->right);
    return status ? status : tare_put(out, p->total, p->n * (int64_t)sizeof *p->total);
}

static tare_status check_passes(const struct passes *p, tare_error *error)
{
    for (int64_t i = 0; i < p->n; i++)
        if (!(p->right[i] >= 0 && p->right[i] <= p->total[i]) || isinf(p->total[i]))
            return tare_fail(error, TARE_E_CORRUPT, "row %lld: %g of %g rollouts are correct", (long long)i, p->right[i],
                             p->total[i]);
    return TARE_OK;
}

tare_status passes_load(struct passes *p, const tare_stream *in, tare_error *error)
{
    int64_t n = 0;
    struct passes fresh;
    if (tare_get(in, &n, sizeof n)) return tare_fail(error, TARE_E_CORRUPT, "the state is cut short");
    if (n != p->n)
        return tare_fail(error, TARE_E_VERSION, "the state is of %lld rows, data.train has %lld", (long long)n, (long long)p->n);
    tare_status status = passes_new(p->host, n, &fresh, error);
    if (status) return status;
    if (tare_get(in, fresh.right, n * (int64_t)sizeof *fresh.right) || tare_get(in, fresh.total, n * (int64_t)sizeof *fresh.total))
        status = tare_fail(error, TARE_E_CORRUPT, "the state is cut short");
    if (!status) status = check_passes(&fresh, error);
    if (status) {
        passes_free(&fresh);
        return status;
    }
    passes_free(p);
    *p = fresh;
    return TARE_OK;
}

/* ---------------------------------------------------------------- counts */

tare_status counts_save(const int64_t *count, int64_t n, const tare_stream *out)
{
    const tare_status status = tare_put(out, &n, sizeof n);
    return status ? status : tare_put(out, count, n * (int64_t)sizeof *count);
}

tare_status counts_load(const tare_host *host, const tare_stream *in, int64_t n, const char *what, int64_t *count,
                        tare_error *error)
{
    int64_t saved = 0;
    if (tare_get(in, &saved, sizeof saved)) return tare_fail(error, TARE_E_CORRUPT, "the state is cut short");
    if (saved != n)
        return tare_fail(error, TARE_E_VERSION, "the state is of %lld %s, this run has %lld", (long long)saved, what, (long long)n);
    int64_t *fresh = take_rows(host, n, sizeof *fresh, error);
    if (!fresh) return TARE_E_NOMEM;
    tare_status status = TARE_OK;
    if (tare_get(in, fresh, n * (int64_t)sizeof *fresh)) status = tare_fail(error, TARE_E_CORRUPT, "the state is cut short");
    for (int64_t i = 0; i < n && !status; i++)
        if (fresh[i] < 0 || fresh[i] > INT64_MAX / 8192) /* their sum must be finite, too */
            status = tare_fail(error, TARE_E_CORRUPT, "number %lld of the state is %lld", (long long)i, (long long)fresh[i]);
    if (!status) memcpy(count, fresh, (size_t)n * sizeof *count);
    host->release(host->ctx, fresh);
    return status;
}
