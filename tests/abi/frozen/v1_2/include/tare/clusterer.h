/* tare plugin ABI, major 1: prompt encoders E(q), and codebooks that map a prompt to its cluster k = argmin_j ||E(q) - c_j||^2. */
#ifndef TARE_CLUSTERER_H
#define TARE_CLUSTERER_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tare_encoder {
    uint32_t struct_size, flags;
    tare_status (*create)(const tare_host *host, const tare_value *values, void **self, tare_error *error);
    void (*destroy)(void *self);
    int64_t (*dim)(const void *self); /* D */
    /* out: [n, D]. A text's embedding does not depend on the others in the call. */
    tare_status (*encode)(void *self, const tare_text *texts, int64_t n, float *out, tare_error *error);
    /* Optional, all three or none: statistics of a corpus (document frequencies, say), learnt once when a codebook is trained and
     * kept in the codebook's file. An encoder with fit also works without it. */
    tare_status (*fit)(void *self, const tare_text *texts, int64_t n, tare_error *error);
    tare_status (*save)(const void *self, const tare_stream *out, tare_error *error);
    tare_status (*load)(void *self, const tare_stream *in, tare_error *error);
    /* What determines the embedding besides name, version and parameters (the hash of a model's weights), as text; NULL:
     * nothing. */
    tare_status (*identity)(const void *self, char *text, int64_t capacity, tare_error *error);
} tare_encoder;

typedef struct tare_codebook {
    uint32_t struct_size, flags;
    tare_status (*create)(const tare_host *host, const tare_value *values, void **self, tare_error *error);
    void (*destroy)(void *self);
    int64_t (*size)(const void *self); /* K; valid after fit where fit exists */
    int64_t (*dim)(const void *self);  /* D of the embeddings it takes; 0: takes rows */
    /* embedding: [n, D] or NULL; rows: [n] JSON objects of the data set, or NULL; distance: [n] squared, or NULL. Ties: lowest
     * index. */
    tare_status (*assign)(const void *self, const float *embedding, const tare_text *rows, int64_t n, int32_t *cluster,
                          float *distance, tare_error *error);
    /* Optional, all three or none: fit is shown every row of the data set once before the run, to learn which values occur. */
    tare_status (*fit)(void *self, const tare_text *rows, int64_t n, tare_error *error);
    tare_status (*save)(const void *self, const tare_stream *out, tare_error *error);
    tare_status (*load)(void *self, const tare_stream *in, tare_error *error);
    /* The identity (as the host writes it) of the encoder whose embeddings it takes; empty: any. NULL: any. */
    tare_status (*encoder_identity)(const void *self, char *text, int64_t capacity, tare_error *error);
    /* The encoder's fitted state kept in the codebook's file: a view that lives until destroy; size 0: none. NULL: none. */
    tare_text (*encoder_state)(const void *self);
    /* [const] name of cluster k for people (a field's value, say): a view that lives until destroy; NULL: numbers only */
    tare_text (*cluster_name)(const void *self, int64_t k);
} tare_codebook;

#ifdef __cplusplus
}
#endif
#endif
