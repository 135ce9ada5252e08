/* Decoding on a device (decode_open of kernels.h): several tokens of all running sequences without
 * the host. The tensors of a token do not move, so that the backend can replay operations once
 * issued; the hash of their addresses shows the backend when one has moved. Threads: one owner. */
#ifndef TARE_CORE_ROLLOUT_DECODER_H
#define TARE_CORE_ROLLOUT_DECODER_H

#include "model/model.h"

struct decoder;
enum { DECODER_TOKENS = KV_BLOCK }; /* so a sequence needs at most one more block */

struct decoder_batch {
    struct decode_row *rows; /* [n], filled by the caller */
    int64_t n, tokens;
    const int32_t *stop;
    int64_t n_stop;
    /* Results, [tokens, n]; a token of -1: the sequence had ended. */
    int32_t *token;
    float *logprob, *entropy;
};

/* *out is NULL if the backend has no decode sessions. The model must outlive the decoder. */
tare_status decoder_new(struct model *m, struct decoder **out, struct err *e);
void decoder_free(struct decoder *d);
int64_t decoder_bytes(const struct decoder *d); /* peak size of its tensors; NULL: 0 */
/* Provides rows and results for a batch of n in b. */
tare_status decoder_begin(struct decoder *d, int64_t n, struct decoder_batch *b, struct err *e);
tare_status decoder_run(struct decoder *d, struct kv_cache *cache, struct decoder_batch *b, struct err *e);

#endif
