/* tare plugin ABI, major 1: prompt encoders E(q), and codebooks that map a prompt to its cluster k
 * = argmin_j ||E(q) - c_j||^2. */
#ifndef TARE_CLUSTERER_H
#define TARE_CLUSTERER_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The function table of an encoder. */
typedef struct tare_encoder {
    uint32_t struct_size, flags;
    tare_status (*create)(const tare_host *host, const tare_value *values, void **self, tare_error *error);
    void (*destroy)(void *self);
    int64_t (*dim)(const void *self); /* returns D */
    /* Writes the embeddings of n texts to out: [n, D]. A text's embedding does not depend on the
     * others in the call. */
    tare_status (*encode)(void *self, const tare_text *texts, int64_t n, float *out, tare_error *error);
    /* Optional, all three or none: statistics of a corpus (document frequencies, for example). fit
     * learns them once, when a codebook is trained, and the codebook's file stores them. An encoder
     * with fit also works without it. */
    tare_status (*fit)(void *self, const tare_text *texts, int64_t n, tare_error *error);
    tare_status (*save)(const void *self, const tare_stream *out, tare_error *error);
    tare_status (*load)(void *self, const tare_stream *in, tare_error *error);
    /* Optional. Writes the data that determine the embedding in addition to name, version and
     * parameters, as text: the hash of a model's weights, for example. capacity: bytes of text. */
    tare_status (*identity)(const void *self, char *text, int64_t capacity, tare_error *error);
} tare_encoder;

/* The function table of a codebook. */
typedef struct tare_codebook {
    uint32_t struct_size, flags;
    tare_status (*create)(const tare_host *host, const tare_value *values, void **self, tare_error *error);
    void (*destroy)(void *self);
    int64_t (*size)(const void *self); /* returns K; valid after fit where fit exists */
    int64_t (*dim)(const void *self);  /* returns D of the embeddings it takes; 0: takes rows */
    /* Writes the cluster of each item, and its squared distance. embedding: [n, D] or NULL; rows:
     * [n] JSON objects of the data set, or NULL; cluster: [n]; distance: [n], or NULL. Ties go to
     * the lowest index. */
    tare_status (*assign)(const void *self, const float *embedding, const tare_text *rows, int64_t n, int32_t *cluster,
                          float *distance, tare_error *error);
    /* Optional, all three or none. fit is shown every row of the data set once before the run, to
     * learn the values that occur. */
    tare_status (*fit)(void *self, const tare_text *rows, int64_t n, tare_error *error);
    tare_status (*save)(const void *self, const tare_stream *out, tare_error *error);
    tare_status (*load)(void *self, const tare_stream *in, tare_error *error);
    /* Optional. Writes the identity (as the host writes it) of the encoder whose embeddings it
     * takes. An empty text, or no function: any encoder. */
    tare_status (*encoder_identity)(const void *self, char *text, int64_t capacity, tare_error *error);
    /* Optional. Returns the encoder's fitted state from the codebook's file: a view that lives
     * until destroy. Size 0: none. */
    tare_text (*encoder_state)(const void *self);
    /* [const] Optional. Returns the name of cluster k for display (a field's value, for example): a
     * view that lives until destroy. */
    tare_text (*cluster_name)(const void *self, int64_t k);
} tare_codebook;

#ifdef __cplusplus
}
#endif
#endif
