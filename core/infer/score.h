/* Logprobs of given tokens: of every token except a line's first, and the entropy of the
 * distribution that it was drawn from, in nats, under the softmax at a temperature. The values do
 * not depend on the batching. */
#ifndef TARE_CORE_INFER_SCORE_H
#define TARE_CORE_INFER_SCORE_H

#include "model/model.h"

struct scorer;
struct score_lines {
    const int32_t *ids; /* of all lines, each below the vocabulary size */
    /* [n+1] line i has ids begin[i] .. begin[i+1]-1: at least 1, at most one more than the
     * model's context. */
    const int64_t *begin;
    int64_t n;
    double temperature;
};

/* Borrows m. */
tare_status scorer_new(struct model *m, struct scorer **out, struct err *e);
/* logprob, entropy [ids - n], line after line. TARE_E_NOT_FINITE, TARE_E_RANGE name the line. */
tare_status scorer_run(struct scorer *s, const struct score_lines *lines, float *logprob, float *entropy, struct err *e);
void scorer_free(struct scorer *s); /* may be NULL */

#endif
