/* Choosing some rollouts of a group: the judged ones, ranked by a number. */
#ifndef CURRICULA_SUBSET_H
#define CURRICULA_SUBSET_H

#include <tare/sdk.h>

struct ranked {
    double value;
    int64_t rollout;
};

/* The judged rollouts of group m, those of the largest value first and of equal ones the earlier; value: [n_rollouts]. out: room for the group.
 * Returns how many. */
int64_t subset_rank(const tare_groups *groups, int64_t m, const double *value, struct ranked *out);
/* Room for the numbers of all rollouts and for ranks. */
struct subset {
    const tare_host *host;
    double *value;
    struct ranked *rank;
};
tare_status subset_new(const tare_host *host, const tare_groups *groups, struct subset *out, tare_error *error);
void subset_free(struct subset *s);

#endif
