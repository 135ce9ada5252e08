/* Defines every part of a stateless objective except its mathematics. self is struct settings. */
#ifndef OBJECTIVE_STATELESS_H
#define OBJECTIVE_STATELESS_H

#include "../../common/built_in.h"
#include "../../common/params.h"

#include <math.h>

struct settings {
    const tare_host *host;
    const tare_value *v; /* in the order of the table */
    tare_loss loss;      /* of [loss] */
};

/* Writes one token's outputs: v and dv/dlogp. */
static inline void put_outcome(tare_token_loss *out, int64_t i, double value, double dlogprob, int clipped)
{
    out->value[i] = value;
    out->dlogprob[i] = dlogprob;
    out->clipped[i] = (uint8_t)clipped;
}

/* Returns log(pi / old) of token i, and the same without a gradient. */
static inline double log_ratio(const tare_tokens *t, int64_t i)
{
    return (double)t->logprob[i] - (double)t->old_logprob[i];
}

static inline double detached_log_ratio(const tare_tokens *t, int64_t i)
{
    return (double)t->detached[i] - (double)t->old_logprob[i];
}

/* The rest of the file. PARAMS and P_COUNT are the including file's; CHECK(const struct settings *,
 * tare_error *) refuses invalid combinations of values; the other arguments are members of
 * tare_objective. */
#define OBJECTIVE(NAME, SUMMARY, SOURCE, NEEDS, CHECK, ...)                                                                        \
    static tare_status create(const tare_host *host, const tare_value *values, const tare_loss *loss, void **self,                 \
                              tare_error *error)                                                                                   \
    {                                                                                                                              \
        struct settings *s = host->alloc(host->ctx, sizeof *s, 0);                                                                 \
        if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");                                                                \
        *s = (struct settings){host, values, *loss};                                                                               \
        const tare_status status = CHECK(s, error);                                                                                \
        if (status) host->release(host->ctx, s);                                                                                   \
        *self = status ? NULL : s;                                                                                                 \
        return status;                                                                                                             \
    }                                                                                                                              \
    static void destroy(void *self)                                                                                                \
    {                                                                                                                              \
        struct settings *s = self;                                                                                                 \
        s->host->release(s->host->ctx, s);                                                                                         \
    }                                                                                                                              \
    static const tare_objective FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, __VA_ARGS__};  \
    BUILT_IN_SINCE(2, NAME, .kind = TARE_OBJECTIVE, .summary = SUMMARY, .source = SOURCE, .params = PARAMS, .n_params = P_COUNT,   \
                   .needs = NEEDS, .threading = TARE_REENTRANT)

/* For objectives that accept every combination of parameters. */
static inline tare_status any_values(const struct settings *s, tare_error *error)
{
    (void)s, (void)error;
    return TARE_OK;
}

#endif
