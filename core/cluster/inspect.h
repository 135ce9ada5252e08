/* Descriptions of a codebook's clusters.
 *
 *   silhouette of row i = (b - a) / max(a, b), with a the mean distance to the other rows of its cluster
 *   and b the smallest mean distance to the rows of another cluster (Rousseeuw 1987), over a random
 *   sample of rows. A row alone in its cluster counts 0.
 *   explained = sum_k n_k (mean_k - mean)^2 / sum_i (r_i - mean)^2, the share of the rewards' variance
 *   between clusters.
 *   drift = sum_k |share of k in the first half of the steps - share in the second half| / 2: 0 for equal
 *   use, 1 for disjoint use. */
#ifndef TARE_CORE_CLUSTER_INSPECT_H
#define TARE_CORE_CLUSTER_INSPECT_H

#include "base/json.h"
#include "base/pool.h"

struct inspect_rows {
    const float *x;         /* [n, d] or NULL */
    const tare_text *texts; /* [n] or NULL */
    const int32_t *cluster; /* [n] */
    const float *distance;  /* [n] squared, or NULL */
    int64_t n, d, k;
};

struct inspect_options {
    int64_t nearest, sample; /* texts listed per cluster; rows of the silhouette's sample */
    uint64_t seed;
    struct pool *pool;
};

/* out: {"rows","in_no_cluster","empty","silhouette","sampled",
 * "clusters":[{"cluster","rows","mean_distance","nearest":[...]}]} */
tare_status inspect_clusters(const struct inspect_rows *rows, const struct inspect_options *o, json_t **out, struct err *e);
/* Computes the sampled silhouette; NAN if the sample has fewer than two clusters. */
tare_status inspect_silhouette(const struct inspect_rows *rows, const struct inspect_options *o, double *out, int64_t *sampled,
                               struct err *e);
/* Computes rewards by cluster, the explained share and the drift of a rollout dump: a file, or a
 * run's folder of step files, in order. */
tare_status inspect_rollouts(const char *path, json_t **out, struct err *e);

#endif
