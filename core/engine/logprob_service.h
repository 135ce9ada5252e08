/* The host extension tare.logprob/1: logprobs of this step's completion tokens under the weights
 * after the policy step. It costs one forward pass over the batch in every step, and only if an
 * estimator requested it. */
#ifndef TARE_CORE_ENGINE_LOGPROB_SERVICE_H
#define TARE_CORE_ENGINE_LOGPROB_SERVICE_H

#include "update/trainer.h"

struct logprob_service {
    tare_logprob_v1 extension;
    bool wanted;           /* requested by the estimator */
    const struct batch *b; /* of the step, between fill and clear; else NULL */
    float *logprob;        /* [T] */
};

/* Returns the extension and marks it as requested. */
const tare_logprob_v1 *logprob_service_extension(struct logprob_service *s);
/* Computes the logprobs after the policy step, collectively; they are in the arena until
 * logprob_service_clear. Does nothing if the extension was not requested. */
tare_status logprob_service_fill(struct logprob_service *s, struct trainer *t, struct model *m, const struct batch *b,
                                 struct arena *a, struct err *e);
void logprob_service_clear(struct logprob_service *s);

#endif
