/* The codebook's file and its training.
 *
 * The file is safetensors with "centroids" F32 [K, D] and "encoder_state" U8 [n], the encoder's
 * state fitted to the corpus (optional). __metadata__ (all values are text) has
 *
 *   format "tare.codebook/1", encoder (identity; empty: any of width D), encoder_hash (XXH3 of it), K, D,
 *   corpus, corpus_hash, corpus_rows, seed, restarts, iterations (of the best run), iterations_limit,
 *   swaps, swaps_kept, converged, inertia, method, created_by
 *
 * so that all parameters which BV-Blend reports of its K-means are recorded (encoder, K, corpus,
 * implementation, seed, iterations). xxh3 is the checksum in 16 hexadecimal digits: XXH3 of the
 * header without it (compact JSON, sorted keys), then of each tensor's bytes in the order of the
 * file, each seeded with the previous value. The plugin kmeans refuses a file with a wrong checksum
 * and accepts one without. */
#ifndef TARE_CORE_CLUSTER_CODEBOOK_H
#define TARE_CORE_CLUSTER_CODEBOOK_H

#include "base/json.h"
#include "cluster/encode.h"
#include "cluster/kmeans.h"

struct codebook_origin {
    const char *encoder; /* identity; "" if unknown */
    const char *corpus;  /* readable name */
    uint64_t corpus_hash;
    int64_t corpus_rows;
    tare_text encoder_state; /* size 0: none */
};

/* Trains on the rows and writes the file. out: the result; free it with kmeans_result_free. */
tare_status codebook_train(const char *path, struct kmeans_rows rows, const struct kmeans_options *options,
                           const struct codebook_origin *origin, struct kmeans_result *out, struct err *e);
/* Fits the encoder if it can be fitted, encodes the texts on the encoding's pool, trains and writes
 * the file. corpus: a readable name. */
tare_status codebook_train_texts(const char *path, const struct encoding *texts, const char *corpus,
                                 const struct kmeans_options *options, struct kmeans_result *out, struct err *e);
/* Reads __metadata__ of a codebook's file as an object of strings. */
tare_status codebook_metadata(const char *path, json_t **out, struct err *e);

#endif
