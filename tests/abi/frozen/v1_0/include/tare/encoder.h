/* tare plugin ABI, major 1: prompt encoders E(q), which turn a prompt into an embedding. */
#ifndef TARE_ENCODER_H
#define TARE_ENCODER_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The function table of an encoder. Required beside the head's: sizes and encode. */
typedef struct tare_encoder {
    TARE_HEAD;
    /* [setup] dim: D. */
    tare_status (*sizes)(const void *self, tare_sizes *out, tare_error *error);
    /* [worker] Writes the embeddings of n texts to out: [n, D]. A text's embedding does not depend on
     * the others in the call. */
    tare_status (*encode)(void *self, const tare_text *texts, int64_t n, float *out, tare_error *error);
    /* [setup] Learns statistics of a corpus (document frequencies, for example) once, when a codebook
     * is trained; the codebook's file stores them as the encoder's state. Needs save and load; an
     * encoder with fit also works without it. NULL: nothing to learn. */
    tare_status (*fit)(void *self, const tare_text *texts, int64_t n, tare_error *error);
} tare_encoder;

#ifdef __cplusplus
}
#endif
#endif
