/* The parts of `tare codebook`, and embeddings from a safetensors file. */
#ifndef TARE_CLI_CODEBOOK_H
#define TARE_CLI_CODEBOOK_H

#include "base/pool.h"
#include "cluster/kmeans.h"
#include "model/safetensors.h"

struct codebook_words {      /* the command line */
    const char *verb, *name; /* verb NULL: train; name: an encoder or a codebook's file */
    const char *out, *embeddings, *tensor, *identity, *encoder, *corpus, *rollouts;
    const char **settings;
    int64_t n_settings, threads, nearest, sample;
    struct kmeans_options options;
    bool json;
};

tare_status codebook_assign_file(const struct codebook_words *w, struct pool *pool, struct err *e);
tare_status codebook_inspect(const struct codebook_words *w, struct pool *pool, struct err *e);

/* A tensor [n, d] of type F32, F16 or BF16, mapped. */
struct embeddings {
    struct safetensors file;
    const struct st_tensor *tensor;
    int64_t n, d;
};
/* tensor NULL: "embeddings", or the only one of two dimensions. On failure nothing is left to close. */
tare_status embeddings_open(const char *path, const char *tensor, struct embeddings *out, struct err *e);
/* Rows first .. first+n-1 as floats. */
tare_status embeddings_read(const struct embeddings *x, int64_t first, int64_t n, float *out, struct err *e);
/* Releases the memory of rows that have been read. */
void embeddings_drop(const struct embeddings *x, int64_t first, int64_t n);
uint64_t embeddings_hash(const struct embeddings *x); /* XXH3 of the tensor's bytes */
void embeddings_close(struct embeddings *x);

#endif
