/* What the groups of all ranks have to tell, in global prompt order: sums of their vectors, or one record each. */
#ifndef TARE_CORE_ESTIMATE_GATHER_H
#define TARE_CORE_ESTIMATE_GATHER_H

#include "base/arena.h"
#include "dist/comm.h"

/* The groups' vectors of this rank without their zeros: for each group a count, then pairs of index and value. All as doubles (an index
 * is below 2^53). */
struct sparse {
    double *data;
    int64_t n, capacity;
};

void sparse_clear(struct sparse *s);
void sparse_free(struct sparse *s);
tare_status sparse_add(struct sparse *s, const double *vector, int64_t size, struct err *e);
/* sum[size] += every group of every rank, rank 0's first. */
tare_status sparse_sum(const struct sparse *s, struct comm *comm, double *sum, int64_t size, struct err *e);
/* One record of `size` doubles a group, known by its prompt. */
struct records {
    int64_t size;
    double *mine;   /* this rank's, each behind the bits of its uid */
    uint64_t *uid;  /* [n] of all ranks */
    double *record; /* [n, size] */
    int64_t n_mine, n, mine_capacity, uid_capacity, record_capacity;
};

void records_free(struct records *r);
tare_status records_begin(struct records *r, int64_t n_groups, struct err *e);
/* Where group m of this rank writes its record; zeroed. */
double *records_of(struct records *r, int64_t m, uint64_t uid);
/* Fills uid, record and n with those of every rank, rank 0's first. */
tare_status records_gather(struct records *r, struct comm *comm, struct err *e);

/* n doubles of each rank, back to back: out in new memory (mem_free), their number in *total. */
tare_status gather_doubles(struct comm *comm, const double *in, int64_t n, double **out, int64_t *total, struct err *e);

#endif
