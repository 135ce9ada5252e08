/* Shared code of curricula with a state: orders and choices of rows by the host's random numbers,
 * running pass rates, and their saved bytes. */
#ifndef CURRICULA_ROWS_H
#define CURRICULA_ROWS_H

#include "wants.h"

/* Streams of host->random; those of a choice are numbered by the cursor after them. */
enum { STREAM_ORDER = 0, STREAM_SOURCE = 1 << 20, STREAM_CHOICE = 1 << 21 };

/* Returns a number in (0, 1) from two words. */
double rows_unit(const uint32_t word[2]);
/* Writes an epoch over n rows: a permutation of 0 .. n-1 that is a function of the seed, `which`
 * (below 2^20) and the epoch; in order without shuffle. index: [n]. */
struct epoch {
    int64_t which, number, n;
    int shuffle;
};
tare_status rows_order(const tare_host *host, const struct epoch *e, int64_t *index, tare_error *error);
/* Draws draw->n rows, each with a probability proportional to weight[i] >= 0, without replacement
 * and without rows that the step has drawn, as long as there are others: those with the largest
 * log(u_i) / weight[i] (Efraimidis and Spirakis 2006). n: number of rows. */
tare_status rows_choose(const tare_host *host, const tare_draw *draw, const double *weight, int64_t n, int64_t *row,
                        tare_error *error);

/* Running pass rates: right[i] of total[i] rollouts of row i with a verdict were correct, older
 * ones discounted. */
struct passes {
    const tare_host *host;
    int64_t n;
    double *right, *total;
};
tare_status passes_new(const tare_host *host, int64_t n, struct passes *out, tare_error *error);
void passes_free(struct passes *p);
/* Updates right <- rho right + S, total <- rho total + N for the row of each group, where S of its
 * N rollouts with a verdict are correct. */
void passes_add(struct passes *p, const tare_batch *groups, double rho);
tare_status passes_save(const struct passes *p, const tare_stream *out);
tare_status passes_load(struct passes *p, const tare_stream *in, tare_error *error);
/* Counts the correct rollouts of group m, and those with a verdict. */
void group_passes(const tare_batch *groups, int64_t m, int64_t *right, int64_t *verified);

/* Save and load n numbers of at least 0, after their count. */
tare_status counts_save(const int64_t *count, int64_t n, const tare_stream *out);
tare_status counts_load(const tare_host *host, const tare_stream *in, int64_t n, const char *what, int64_t *count,
                        tare_error *error);

#endif
