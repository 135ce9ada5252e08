/* Deals items of known cost to ranks (or shards) so that each gets about the same total: the
 * costliest item first, each to the rank with the lowest total so far; ties go to the lower index
 * (Graham 1969, longest processing time first: at most 4/3 of the optimum). Gives the same result
 * on every rank. */
#ifndef TARE_CORE_DIST_BALANCE_H
#define TARE_CORE_DIST_BALANCE_H

#include "base/arena.h"

/* to[i] in [0, hands): the rank that gets item i of cost[i] >= 0. Allocates from the arena and
 * frees nothing. */
tare_status balance(const int64_t *cost, int64_t n, int64_t hands, int64_t *to, struct arena *arena, struct err *e);

#endif
