/* The cluster stage: k = argmin_j ||E(q) - c_j||^2 for every prompt, with a frozen encoder E and a fixed codebook (BV-Blend, "Prompt
 * clustering"), or whatever another codebook plugin says of a row. E sees the row's question, never the rendered chat.
 *
 * At start the whole data set is encoded once (kept in run.dir/cache under a hash of encoder and texts) and assigned; a step only looks up.
 * Codebook "none": every cluster is -1 and K is 0.
 * A codebook whose file does not exist yet is trained from the data set when clusterer.clusters > 0; with
 * clusterer.clusters = 0 its absence is an error. A codebook of another encoder is refused with both identities and hashes.
 *
 * Parameters of plugins are taken from [clusterer.NAME]. A codebook with a parameter `path` that is not set gets
 * run.dir/codebook.safetensors.
 * Ownership: struct cluster owns plugins and tables; the data set has to live as long. Threads: cluster_assign from one thread at a time. */
#ifndef TARE_CORE_CLUSTER_CLUSTER_H
#define TARE_CORE_CLUSTER_CLUSTER_H

#include "base/pool.h"
#include "batch/batch.h"
#include "config/config.h"
#include "data/dataset.h"
#include "dist/comm.h"
#include "plugin/plugin.h"

struct cluster {
    struct plugin_instance *encoder, *codebook; /* NULL: none */
    const struct dataset *data;
    int64_t n_clusters;
    int32_t *of_row;      /* [data->n] */
    int64_t *rows;        /* [K] rows of the data set in each cluster */
    int64_t *used;        /* [K] groups that cluster_assign has put into each */
    int64_t *before;      /* [K] the same, as the step began */
    int64_t unassigned;   /* rows of the data set in no cluster */
    bool trained, cached; /* the codebook was made in this run; the embeddings came from the cache */
    double seconds;       /* that cluster_open took */
    struct pool *pool;
    struct arena arena;
};

struct cluster_options {
    const struct plugin_env *env; /* for the plugins: seed, embed service */
    struct comm *comm;            /* rank 0 trains a missing codebook while the others wait; NULL: one rank */
    struct pool *pool;
};

tare_status cluster_open(const struct config *config, const struct dataset *data, const struct cluster_options *o,
                         struct cluster *out, struct err *e);
/* Whether the plugins and their parameters can be used; nothing is trained, encoded or written. *n_clusters: K, or clusterer.clusters where the
 * codebook would be trained first. */
tare_status cluster_check(const struct config *config, const struct dataset *data, const struct plugin_env *env,
                          int64_t *n_clusters, struct err *e);
/* Fills batch->cluster (from the arena) and batch->n_clusters. Rows outside the data set are encoded on the spot. */
tare_status cluster_assign(struct cluster *c, struct batch *batch, struct arena *arena, struct err *e);
/* Around a step: cluster_forget puts `used` back to what it was at cluster_begin. */
void cluster_begin(struct cluster *c);
void cluster_forget(struct cluster *c);
/* Cluster k for people: a field's value, or empty. */
tare_text cluster_name(const struct cluster *c, int64_t k);
/* What has to be the same when a run is resumed, as text; cluster_resume refuses another one and says which part differs. cluster_save also
 * keeps `used`. */
tare_status cluster_save(const struct cluster *c, struct str *out, struct err *e);
tare_status cluster_resume(struct cluster *c, const char *data, int64_t n, const char *where, struct err *e);
void cluster_close(struct cluster *c);

#endif
