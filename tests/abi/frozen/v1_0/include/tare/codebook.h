/* tare plugin ABI, major 1: codebooks, which map a prompt to its cluster, k = argmin_j ||E(q) -
 * c_j||^2 for example. */
#ifndef TARE_CODEBOOK_H
#define TARE_CODEBOOK_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Prompts to assign or to learn from. */
typedef struct tare_prompts {
    uint32_t struct_size, flags;
    int64_t n;
    const float *embedding; /* [n, D]; NULL for a codebook with dim 0 */
    const tare_text *row;   /* [n] the data set's rows as JSON objects; NULL: not known */
} tare_prompts;

/* The output of assign. */
typedef struct tare_assignment {
    uint32_t struct_size, flags;
    int32_t *cluster; /* [n] in [0, K), -1 on entry: none; ties go to the lowest index */
    float *distance;  /* [n] squared distance, NaN on entry: none; NULL: not wanted */
} tare_assignment;

/* The function table of a codebook. Required beside the head's: sizes and assign. */
typedef struct tare_codebook {
    TARE_HEAD;
    /* [setup] dim and clusters; called again after fit and load. */
    tare_status (*sizes)(const void *self, tare_sizes *out, tare_error *error);
    /* [serial] [const] Writes the cluster of each prompt, and its distance. */
    tare_status (*assign)(const void *self, const tare_prompts *prompts, tare_assignment *out, tare_error *error);
    /* [setup] Is shown every row of the data set once before the run, to learn the values that occur.
     * Needs save and load. NULL: nothing to learn. */
    tare_status (*fit)(void *self, const tare_prompts *prompts, tare_error *error);
    /* [setup] [const] Writes the identity, as the host writes it, of the encoder whose embeddings it
     * takes. NULL or nothing written: any encoder. */
    tare_status (*encoder_identity)(const void *self, const tare_stream *out, tare_error *error);
    /* [setup] [const] Writes the encoder's state from the codebook's file. NULL or nothing written:
     * none. */
    tare_status (*encoder_state)(const void *self, const tare_stream *out, tare_error *error);
    /* [serial] [const] Writes the name of cluster k for display (a field's value, for example). NULL
     * or nothing written: none. */
    tare_status (*cluster_name)(const void *self, int64_t k, const tare_stream *out, tare_error *error);
} tare_codebook;

#ifdef __cplusplus
}
#endif
#endif
