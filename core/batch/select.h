/* Batches made of batches: some groups, several batches as one, a rank's share and the whole again,
 * other rollouts in a group.
 *
 * The columns of the requested stages are copied into the arena in the order of the groups; texts
 * and rows are shared. Columns that no part has stay NULL. A column that only some parts have is
 * refused (TARE_E_SHAPE), unless parts may lack it. step and n_clusters are those of the first part. */
#ifndef TARE_CORE_BATCH_SELECT_H
#define TARE_CORE_BATCH_SELECT_H

#include "batch/batch.h"

struct batch_indices {
    const int64_t *at;
    int64_t n;
};
struct batch_parts {
    const struct batch *part;
    int64_t n;
};

/* Selects groups at[0], at[1], ... of b; an index may be repeated. */
tare_status batch_select(const struct batch *b, struct batch_indices groups, unsigned stages, struct arena *a, struct batch *out,
                         struct err *e);
/* Joins all groups of the first part, then of the second, ... */
tare_status batch_concat(struct batch_parts parts, unsigned stages, struct arena *a, struct batch *out, struct err *e);
/* Selects the groups m with hand[m] == me, in their order. hand: [n_groups] */
tare_status batch_split(const struct batch *b, const int64_t *hand, int64_t me, struct arena *a, struct batch *out, struct err *e);
/* Reverses batch_split: group m is the next one of part hand.at[m]. TARE_E_SHAPE if a part has more
 * or fewer. */
tare_status batch_join(struct batch_parts parts, struct batch_indices hand, unsigned stages, struct arena *a, struct batch *out,
                       struct err *e);
/* Keeps the rollouts i of b with keep[i] != 0, and the groups that have any. All stages. keep:
 * [n_rollouts] */
tare_status batch_keep(const struct batch *b, const uint8_t *keep, struct arena *a, struct batch *out, struct err *e);
/* Makes new groups: group m has the columns of b's group groups.at[m], and the rollouts
 * rollouts.at[m G] .. rollouts.at[(m+1) G - 1] of b, with G = rollouts.n / groups.n; an index may
 * be repeated. All stages. */
tare_status batch_regroup(const struct batch *b, struct batch_indices groups, struct batch_indices rollouts, struct arena *a,
                          struct batch *out, struct err *e);
/* Replaces rollout at[k] of b by rollout k of `with`; at ascends. Columns per group are b's. All
 * stages. */
tare_status batch_replace(const struct batch *b, struct batch_indices at, const struct batch *with, struct arena *a,
                          struct batch *out, struct err *e);

#endif
