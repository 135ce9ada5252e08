/* Curricula that draw rows by a weight that depends on the row's running pass rate alone. The
 * including file defines the weight:
 *
 *   static double weight_of(const tare_value *v, double right, double total);
 *
 * and its table has a row P_RHO. */
#ifndef CURRICULA_BY_PASS_RATE_H
#define CURRICULA_BY_PASS_RATE_H

#include "curriculum.h"
#include "rows.h"

struct by_pass_rate {
    const tare_host *host;
    const tare_value *v;
    struct passes passes;
};

static double weight_of(const tare_value *v, double right, double total);

static void destroy(void *self)
{
    struct by_pass_rate *x = self;
    passes_free(&x->passes);
    x->host->release(x->host->ctx, x);
}

static tare_status new_by_pass_rate(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_host *host = setup->host;
    struct by_pass_rate *x = host->alloc(host->ctx, sizeof *x, 0);
    if (!x) return tare_fail(error, TARE_E_NOMEM, "no memory");
    x->host = host;
    x->v = setup->values;
    const tare_status status = passes_new(host, setup->dataset->n_rows, &x->passes, error);
    if (status)
        host->release(host->ctx, x);
    else
        *self = x;
    return status;
}

static tare_status next(const void *self, const tare_draw *draw, tare_choice *out, tare_error *error)
{
    const struct by_pass_rate *x = self;
    const struct passes *p = &x->passes;
    double *weight = x->host->alloc(x->host->ctx, p->n * (int64_t)sizeof *weight, 0);
    if (!weight) return tare_fail(error, TARE_E_NOMEM, "no memory for %lld rows", (long long)p->n);
    for (int64_t i = 0; i < p->n; i++) weight[i] = weight_of(x->v, p->right[i], p->total[i]);
    const tare_status status = rows_choose(x->host, draw, weight, p->n, out->row, error);
    x->host->release(x->host->ctx, weight);
    return status;
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    (void)error;
    return passes_save(&((const struct by_pass_rate *)self)->passes, out);
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    return passes_load(&((struct by_pass_rate *)self)->passes, in, error);
}

#endif
