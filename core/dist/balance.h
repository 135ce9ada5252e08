/* Dealing items of known cost to ranks (or shards) so that each gets about as much: the dearest item first, each to whoever has least so far; ties
 * go to the lower index (Graham 1969, longest processing time first: at most 4/3 of the best). The same on every rank. */
#ifndef TARE_CORE_DIST_BALANCE_H
#define TARE_CORE_DIST_BALANCE_H

#include "base/arena.h"

/* to[i] in [0, hands): who gets item i of cost[i] >= 0. Works in the arena, and gives nothing back to it. */
tare_status balance(const int64_t *cost, int64_t n, int64_t hands, int64_t *to, struct arena *arena, struct err *e);

#endif
