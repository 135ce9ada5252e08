/* The rows of each step: epoch after epoch over all rows, reshuffled each epoch from the seed, or
 * in file order. The whole state is one cursor, the number of prompts taken so far; a step may
 * cross the end of an epoch. The same (rows, shuffle, seed, cursor) gives the same rows. Threads:
 * one owner. */
#ifndef TARE_CORE_DATA_ORDER_H
#define TARE_CORE_DATA_ORDER_H

#include "base/err.h"

#include <stdbool.h>

struct order {
    int64_t n;
    bool shuffle;
    uint64_t seed;
    int64_t epoch;  /* epoch of the stored permutation; -1: none */
    int64_t *index; /* [n] */
};

tare_status order_init(struct order *o, int64_t rows, bool shuffle, uint64_t seed, struct err *e);
void order_free(struct order *o);
/* Takes the next m rows from *cursor and advances it. rows [m]: indices; occurrence [m]: how often
 * the same row came earlier among these m (may be NULL). */
tare_status order_next(struct order *o, int64_t *cursor, int64_t m, int64_t *rows, int64_t *occurrence, struct err *e);
/* Fills occurrence [m] as above for rows chosen otherwise. */
void order_occurrences(const int64_t *rows, int64_t m, int64_t *occurrence);

#endif
