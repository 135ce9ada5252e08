/* The sub-verbs of `tare cluster`. */
#ifndef TARE_CLI_CLUSTER_H
#define TARE_CLI_CLUSTER_H

#include "base/pool.h"
#include "cluster/kmeans.h"

/* The command line. */
struct cluster_words {
    const char *name; /* an encoder, a codebook plugin or a codebook's file */
    const char *out, *embeddings, *tensor, *identity, *encoder, *codebook, *corpus, *fit, *rollouts;
    const char **settings; /* [n_settings] key=value; those from `named` on follow --encoder NAME */
    int64_t n_settings, named, threads, nearest, sample, seed;
    struct kmeans_options options; /* options.pool serves every sub-verb */
    bool json;
};

/* Trains a codebook from a corpus on standard input, or from embeddings. */
tare_status cluster_train(const struct cluster_words *w, struct err *e);
/* Describes a codebook's clusters by a corpus or embeddings, and by a run's rollouts. */
tare_status cluster_inspect(const struct cluster_words *w, struct err *e);
/* Assigns embeddings of a file to clusters. */
tare_status cluster_assign_file(const struct cluster_words *w, struct err *e);
/* Lines of JSON in; the cluster and distance of each, or its embedding, out. */
tare_status cluster_assign_lines(const struct cluster_words *w, struct err *e);
tare_status cluster_embed_lines(const struct cluster_words *w, struct err *e);

#endif
