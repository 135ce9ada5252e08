/* What a codebook's clusters hold and explain.
 *
 *   silhouette of row i = (b - a) / max(a, b): a the mean distance to the other rows of its cluster, b the smallest mean distance to the rows
 *   of another cluster (Rousseeuw 1987); here over a sample of rows drawn by a seed. A row alone in its cluster counts 0.
 *   explained = sum_k n_k (mean_k - mean)^2 / sum_i (r_i - mean)^2: the share of the rewards' variance that lies between clusters.
 *   drift = half the sum over k of |share of k in the first half - share in the second half| of the steps: 0 for equal use, 1 for none in common. */
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
    int64_t nearest, sample; /* texts shown of a cluster; rows that the silhouette is taken over */
    uint64_t seed;
    struct pool *pool;
};

/* {"rows","in_no_cluster","empty","silhouette","sampled","clusters":[{"cluster","rows","mean_distance","nearest":[...]}]} */
tare_status inspect_clusters(const struct inspect_rows *rows, const struct inspect_options *o, json_t **out, struct err *e);
/* Sampled silhouette; NAN when fewer than two clusters are in the sample. */
tare_status inspect_silhouette(const struct inspect_rows *rows, const struct inspect_options *o, double *out, int64_t *sampled,
                               struct err *e);
/* A rollout dump (a file, or a run's folder of step files, in order): rewards by cluster, the share explained, drift of use. */
tare_status inspect_rollouts(const char *path, json_t **out, struct err *e);

#endif
