/* The host extension tare.logprob/1: logprobs of this step's completion tokens under the weights as the policy step left them. It costs one
 * forward pass over the batch in every step, and only when an estimator has taken it. */
#ifndef TARE_CORE_ENGINE_LOGPROB_SERVICE_H
#define TARE_CORE_ENGINE_LOGPROB_SERVICE_H

#include "update/trainer.h"

struct logprob_service {
    tare_logprob_v1 extension;
    bool wanted;           /* it was taken */
    const struct batch *b; /* of the step, between fill and clear; else NULL */
    float *logprob;        /* [T] */
};

/* Call when it is asked for; marks it as wanted. */
const tare_logprob_v1 *logprob_service_extension(struct logprob_service *s);
/* After the policy step, on all ranks together: from here on it answers, out of the arena. Nothing when it is not wanted. */
tare_status logprob_service_fill(struct logprob_service *s, struct trainer *t, struct model *m, const struct batch *b,
                                 struct arena *a, struct err *e);
void logprob_service_clear(struct logprob_service *s);

#endif
