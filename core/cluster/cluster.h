/* The cluster stage: k = argmin_j ||E(q) - c_j||^2 for every prompt, with a frozen encoder E and a
 * fixed codebook (BV-Blend, "Prompt clustering"), or the cluster that another codebook plugin
 * assigns to a row. E reads the row's question, never the rendered chat.
 *
 * At the start the whole data set is encoded once (cached in run.dir/cache under a hash of encoder
 * and texts) and assigned; a step only reads the table. Codebook "none": every cluster is -1 and
 * K is 0. A missing codebook file is trained from the data set. A codebook of another encoder is
 * refused with both identities and hashes.
 *
 * Parameters of plugins come from [encoder.NAME] and [codebook.NAME]. An unset parameter of a
 * codebook for the run's own file (TARE_PARAM_RUN_FILE) defaults to run.dir/codebook.safetensors.
 *
 * Ownership: struct cluster owns plugins and tables; the data set must outlive it. Threads: call
 * cluster_assign from one thread at a time. */
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
    int64_t *used;        /* [K] groups that cluster_assign has assigned to each cluster */
    int64_t *before;      /* [K] `used` at the beginning of the step */
    int64_t unassigned;   /* rows of the data set without a cluster */
    bool trained, cached; /* this run trained the codebook; the embeddings came from the cache */
    double seconds;       /* spent in cluster_open */
    struct pool *pool;
    struct arena arena;
};

struct cluster_options {
    const struct plugin_env *env; /* for the plugins: seed, embed service */
    /* rank 0 trains a missing codebook while the others wait; NULL: one rank */
    struct comm *comm;
    struct pool *pool;
};

tare_status cluster_open(const struct config *config, const struct dataset *data, const struct cluster_options *o,
                         struct cluster *out, struct err *e);
/* Checks the plugins and their parameters without training, encoding or writing. *n_clusters: K, or
 * codebook.clusters if the codebook would be trained first. */
tare_status cluster_check(const struct config *config, const struct dataset *data, const struct plugin_env *env,
                          int64_t *n_clusters, struct err *e);
/* Fills batch->cluster (from the arena) and batch->n_clusters. Encodes rows that are not in the
 * data set. */
tare_status cluster_assign(struct cluster *c, struct batch *batch, struct arena *arena, struct err *e);
/* cluster_begin saves `used` at the beginning of a step; cluster_forget restores it. */
void cluster_begin(struct cluster *c);
void cluster_forget(struct cluster *c);
/* Appends a readable name of cluster k, such as a field's value; nothing if it has none. */
tare_status cluster_name(const struct cluster *c, int64_t k, struct str *out, struct err *e);
/* Finds the file that the configuration sets for a codebook that a run trains; NULL: none is set. */
tare_status cluster_given_file(const struct config *config, const char **path, struct err *e);
/* cluster_save writes the properties that must not change when a run is resumed, and `used`, as
 * text. cluster_resume refuses a different clustering and names the part that differs. */
tare_status cluster_save(const struct cluster *c, struct str *out, struct err *e);
tare_status cluster_resume(struct cluster *c, const char *data, int64_t n, const char *where, struct err *e);
void cluster_close(struct cluster *c);

#endif
