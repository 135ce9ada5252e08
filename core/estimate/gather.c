#include "estimate/gather.h"

#include <string.h>

void sparse_clear(struct sparse *s)
{
    s->n = 0;
}

void sparse_free(struct sparse *s)
{
    mem_free(s->data);
    *s = (struct sparse){0};
}

tare_status sparse_add(struct sparse *s, const double *vector, int64_t size, struct err *e)
{
    int64_t count = 0;
    for (int64_t i = 0; i < size; i++) count += vector[i] != 0; /* a NaN counts */
    TRY(mem_grow((void **)&s->data, &s->capacity, s->n + 1 + 2 * count, sizeof(double), e));
    s->data[s->n++] = (double)count;
    for (int64_t i = 0; i < size; i++) {
        if (vector[i] == 0) continue;
        s->data[s->n++] = (double)i;
        s->data[s->n++] = vector[i];
    }
    return TARE_OK;
}

tare_status gather_doubles(struct comm *comm, const double *in, int64_t n, double **out, int64_t *total, struct err *e)
{
    const int ranks = comm ? comm->size : 1;
    int64_t *bytes = NULL, *eights = NULL;
    tare_status status;
    *out = NULL;
    *total = n;
    if (ranks > 1) {
        const int64_t mine = n * (int64_t)sizeof(double);
        TRY_TO(status, done, mem_new(2 * ranks * (int64_t)sizeof(int64_t), (void **)&bytes, e));
        eights = bytes + ranks;
        for (int r = 0; r < ranks; r++) eights[r] = (int64_t)sizeof(int64_t);
        TRY_TO(status, done, comm->gather(comm, &mine, sizeof mine, bytes, eights, e));
        *total = 0;
        for (int r = 0; r < ranks; r++) *total += bytes[r] / (int64_t)sizeof(double);
    }
    TRY_TO(status, done, mem_new(*total * (int64_t)sizeof(double) + 8, (void **)out, e));
    if (ranks > 1)
        status = comm->gather(comm, in, n * (int64_t)sizeof(double), *out, bytes, e);
    else if (n)
        memcpy(*out, in, (size_t)n * sizeof(double));
done:
    mem_free(bytes);
    if (status) {
        mem_free(*out);
        *out = NULL;
    }
    return status;
}

tare_status sparse_sum(const struct sparse *s, struct comm *comm, double *sum, int64_t size, struct err *e)
{
    double *all;
    int64_t n;
    TRY(gather_doubles(comm, s->data, s->n, &all, &n, e));
    tare_status status = TARE_OK;
    for (int64_t at = 0; at < n && !status;) {
        const int64_t count = (int64_t)all[at++];
        for (int64_t i = 0; i < count && !status; i++, at += 2) {
            const int64_t index = (int64_t)all[at];
            if (at + 1 >= n || index < 0 || index >= size)
                status = err_set(e, TARE_E_COMM, __FILE__, __LINE__,
                                 "a rank sent sums of another size; do all ranks run the same plugin?");
            else
                sum[index] += all[at + 1];
        }
    }
    mem_free(all);
    return status;
}

/* ---------------------------------------------------------------- records */

void records_free(struct records *r)
{
    mem_free(r->mine);
    mem_free(r->uid);
    mem_free(r->record);
    *r = (struct records){0};
}

tare_status records_begin(struct records *r, int64_t n_groups, struct err *e)
{
    r->n_mine = n_groups;
    return mem_grow((void **)&r->mine, &r->mine_capacity, n_groups * (1 + r->size) + 1, sizeof(double), e);
}

double *records_of(struct records *r, int64_t m, uint64_t uid)
{
    double *at = r->mine + m * (1 + r->size);
    memset(at, 0, (size_t)(1 + r->size) * sizeof *at);
    memcpy(at, &uid, sizeof uid);
    return at + 1;
}

tare_status records_gather(struct records *r, struct comm *comm, struct err *e)
{
    double *all;
    int64_t n;
    tare_status status;
    TRY(gather_doubles(comm, r->mine, r->n_mine * (1 + r->size), &all, &n, e));
    r->n = n / (1 + r->size);
    TRY_TO(status, done, mem_grow((void **)&r->uid, &r->uid_capacity, r->n + 1, sizeof *r->uid, e));
    TRY_TO(status, done, mem_grow((void **)&r->record, &r->record_capacity, r->n * r->size + 1, sizeof *r->record, e));
    for (int64_t m = 0; m < r->n; m++) {
        memcpy(&r->uid[m], all + m * (1 + r->size), sizeof *r->uid);
        if (r->size) memcpy(r->record + m * r->size, all + m * (1 + r->size) + 1, (size_t)r->size * sizeof *r->record);
    }
done:
    mem_free(all);
    return status;
}
