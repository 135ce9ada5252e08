#include "subset.h"

#include <stdlib.h>

static int larger_first(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->value != y->value) return x->value > y->value ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

void subset_sort(struct ranked *r, int64_t n)
{
    qsort(r, (size_t)n, sizeof *r, larger_first);
}

int64_t subset_rank(const tare_batch *groups, int64_t m, const double *value, struct ranked *out)
{
    int64_t n = 0;
    for (int64_t i = groups->group_begin[m]; i < groups->group_begin[m + 1]; i++)
        if (has_verdict(groups, i)) out[n++] = (struct ranked){value[i], i};
    subset_sort(out, n);
    return n;
}

tare_status subset_new(const tare_host *host, const tare_batch *groups, struct subset *out, tare_error *error)
{
    *out = (struct subset){.host = host};
    out->value = host->alloc(host->ctx, (groups->n_rollouts + 1) * (int64_t)sizeof *out->value, 0);
    out->rank = host->alloc(host->ctx, (groups->n_rollouts + 1) * (int64_t)sizeof *out->rank, 0);
    if (out->value && out->rank) return TARE_OK;
    subset_free(out);
    return tare_fail(error, TARE_E_NOMEM, "no memory for %lld rollouts", (long long)groups->n_rollouts);
}

void subset_free(struct subset *s)
{
    s->host->release(s->host->ctx, s->value);
    s->host->release(s->host->ctx, s->rank);
}
