/* Sums of the groups' vectors over all ranks, in global prompt order. */
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
/* n doubles of each rank, back to back: out in new memory (mem_free), their number in *total. */
tare_status gather_doubles(struct comm *comm, const double *in, int64_t n, double **out, int64_t *total, struct err *e);

#endif
