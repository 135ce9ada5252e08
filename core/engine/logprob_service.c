#include "engine/logprob_service.h"
#include "update/update.h"

#include <stdio.h>
#include <string.h>

static tare_status service_logprob(void *ctx, int64_t rollout, float *out, tare_error *error)
{
    const struct logprob_service *s = ctx;
    tare_status status = TARE_OK;
    if (!s->b)
        status = TARE_E_STATE;
    else if (rollout < 0 || rollout >= s->b->n_rollouts)
        status = TARE_E_RANGE;
    if (status && error) {
        error->code = status;
        if (s->b)
            snprintf(error->message, sizeof error->message, "tare.logprob/1: invalid rollout %lld", (long long)rollout);
        else
            snprintf(error->message, sizeof error->message,
                     "tare.logprob/1 can only be called after the policy step: in collect, record and apply");
    }
    if (status) return status;
    const int64_t first = s->b->token_begin[rollout], n = s->b->token_begin[rollout + 1] - first;
    if (n) memcpy(out, s->logprob + first, (size_t)n * sizeof *out);
    return TARE_OK;
}

const tare_logprob_v1 *logprob_service_extension(struct logprob_service *s)
{
    s->extension = (tare_logprob_v1){.struct_size = sizeof s->extension, .ctx = s, .logprob = service_logprob};
    s->wanted = true;
    return &s->extension;
}

tare_status logprob_service_fill(struct logprob_service *s, struct trainer *t, struct model *m, const struct batch *b,
                                 struct arena *a, struct err *e)
{
    if (!s->wanted) return TARE_OK;
    TRY(arena_new(a, &s->logprob, b->n_tokens + 1, e));
    TRY(update_logprobs(t, m, b, s->logprob, NULL, e));
    s->b = b;
    return TARE_OK;
}

void logprob_service_clear(struct logprob_service *s)
{
    s->b = NULL;
}
