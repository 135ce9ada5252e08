/* The codebook's file and its training.
 *
 * File: safetensors with "centroids" F32 [K, D] and "encoder_state" U8 [n] (what the encoder learnt from the corpus; absent: nothing).
 * __metadata__ (all values are text): format "tare.codebook/1", encoder (identity; empty: any of width D), encoder_hash (XXH3 of it), K, D,
 * corpus, corpus_hash, corpus_rows, seed, restarts, iterations (of the run that won), iterations_limit, swaps, swaps_kept, converged, inertia,
 * method, created_by: what BV-Blend reports of its K-means (encoder, K, corpus, implementation, seed, iterations); and xxh3, the sum, 16
 * hexadecimal digits: XXH3 of the header without it (compact JSON, keys sorted), then of each tensor's bytes in the order of the file, each with
 * the sum before it as seed. The plugin kmeans refuses a file whose sum is another, and takes one without. */
#ifndef TARE_CORE_CLUSTER_CODEBOOK_H
#define TARE_CORE_CLUSTER_CODEBOOK_H

#include "base/json.h"
#include "cluster/encode.h"
#include "cluster/kmeans.h"

struct codebook_origin {
    const char *encoder; /* identity; "" when not known */
    const char *corpus;  /* name for people */
    uint64_t corpus_hash;
    int64_t corpus_rows;
    tare_text encoder_state; /* size 0: none */
};

/* Trains on the rows and writes the file. out: what was reached; free it with kmeans_result_free. */
tare_status codebook_train(const char *path, struct kmeans_rows rows, const struct kmeans_options *options,
                           const struct codebook_origin *origin, struct kmeans_result *out, struct err *e);
/* The same from texts: fits the encoder where it has something to fit, encodes on the encoding's pool, trains, writes. corpus: its name for
 * people. */
tare_status codebook_train_texts(const char *path, const struct encoding *texts, const char *corpus,
                                 const struct kmeans_options *options, struct kmeans_result *out, struct err *e);
/* __metadata__ of a codebook's file as an object of strings. */
tare_status codebook_metadata(const char *path, json_t **out, struct err *e);

#endif
