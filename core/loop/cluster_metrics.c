/* History of each cluster, recorded with the step's metrics: arrays of K numbers in the object
 * "per_cluster" of the estimator's description (m1, m2, n_eff, ...), and the mean confidence w of
 * the step's groups where the estimator requires clusters. A cluster with a name is recorded under
 * it: cluster/add2/m1. Nothing is recorded above 64 clusters. */
#include "loop/step_metrics.h"

#include "base/json.h"

#include <stdio.h>

enum { CLUSTERS_MOST = 64 };

static void set_cluster_metric(struct run *r, int64_t k, const char *what, double value)
{
    char name[200];
    OWNED(str_free) struct str label = {0};
    if (!cluster_name(&r->cluster, k, &label, NULL) && label.size)
        snprintf(name, sizeof name, "cluster/%.100s/%s", label.data, what);
    else
        snprintf(name, sizeof name, "cluster/%lld/%s", (long long)k, what);
    observe_set(r->observe, name, value);
}

static void set_state(struct run *r, const json_t *per_cluster)
{
    const char *key;
    json_t *values;
    json_object_foreach((json_t *)(uintptr_t)per_cluster, key, values)
    {
        if (!json_is_array(values) || (int64_t)json_array_size(values) != r->cluster.n_clusters) continue;
        for (int64_t k = 0; k < r->cluster.n_clusters; k++) {
            const json_t *value = json_array_get(values, (size_t)k);
            if (json_is_number(value)) set_cluster_metric(r, k, key, json_number_value(value));
        }
    }
}

static void set_confidence(struct run *r)
{
    const struct batch *b = &r->batch;
    double sum[CLUSTERS_MOST] = {0}, count[CLUSTERS_MOST] = {0};
    for (int64_t m = 0; m < b->n_groups; m++) {
        if (b->cluster[m] < 0) continue;
        sum[b->cluster[m]] += b->confidence[m];
        count[b->cluster[m]]++;
    }
    for (int64_t k = 0; k < r->cluster.n_clusters; k++)
        if (count[k] > 0) set_cluster_metric(r, k, "w", sum[k] / count[k]);
}

tare_status cluster_metrics(struct run *r, struct err *e)
{
    const int64_t n = r->cluster.n_clusters;
    if (n < 1 || n > CLUSTERS_MOST || !estimate_wants(r->learner.estimator, COLUMN_CLUSTER)) return TARE_OK;
    OWNED(str_free) struct str text = {0};
    OWNED(json_decrefp) json_t *state = NULL;
    TRY(estimate_describe(r->learner.estimator, &text, e));
    TRY(json_parse(text.data, text.size, "the estimator's state", &state, e));
    const json_t *per_cluster = json_object_get(state, "per_cluster");
    if (!per_cluster) return TARE_OK;
    set_state(r, per_cluster);
    if (plugin_requires(estimate_plugin(r->learner.estimator), COLUMN_CLUSTER)) set_confidence(r);
    return TARE_OK;
}
