/* Chooses some rollouts of a group: those with a verdict, ranked by a number. */
#ifndef CURRICULA_SUBSET_H
#define CURRICULA_SUBSET_H

#include "wants.h"

struct ranked {
    double value;
    int64_t index; /* of a rollout, or a group */
};

/* Ranks the rollouts of group m that have a verdict by value [n_rollouts], the largest first; of
 * equal values the earlier is first. out: [rollouts of the group]. Returns their number. */
int64_t subset_rank(const tare_batch *groups, int64_t m, const double *value, struct ranked *out);
/* Sorts n of them: the largest first, of equal values the earlier. */
void subset_sort(struct ranked *r, int64_t n);
/* Allocates the numbers of all rollouts, and the ranks. */
struct subset {
    const tare_host *host;
    double *value;
    struct ranked *rank;
};
tare_status subset_new(const tare_host *host, const tare_batch *groups, struct subset *out, tare_error *error);
void subset_free(struct subset *s);

#endif
