/* Defines every part of a stateless objective except its mathematics. self is struct settings. */
#ifndef OBJECTIVE_STATELESS_H
#define OBJECTIVE_STATELESS_H

#include "../../common/built_in.h"

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

/* The rest of the file. PARAMS and P_COUNT are the including file's. WANTS: TARE_WANTS(...) or
 * NO_WANTS. CHECK(const struct settings *, tare_error *) refuses invalid combinations of values;
 * the other arguments are members of tare_objective. */
#define NO_WANTS .n_wants = 0
#define OBJECTIVE(NAME, SUMMARY, SOURCE, WANTS, CHECK, ...)                                                                        \
    static tare_status create(const tare_setup *setup, void **self, tare_error *error)                                             \
    {                                                                                                                              \
        const tare_host *h = setup->host;                                                                                          \
        struct settings *s = h->alloc(h->ctx, sizeof *s, 0);                                                                       \
        if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");                                                                \
        *s = (struct settings){h, setup->values, *setup->loss};                                                                    \
        const tare_status status = CHECK(s, error);                                                                                \
        if (status) h->release(h->ctx, s);                                                                                         \
        *self = status ? NULL : s;                                                                                                 \
        return status;                                                                                                             \
    }                                                                                                                              \
    static void destroy(void *self)                                                                                                \
    {                                                                                                                              \
        struct settings *s = self;                                                                                                 \
        s->host->release(s->host->ctx, s);                                                                                         \
    }                                                                                                                              \
    static const tare_objective FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, __VA_ARGS__};  \
    BUILT_IN(NAME, .kind = TARE_KIND_OBJECTIVE, .summary = SUMMARY, .about = SOURCE, TARE_PARAMS(PARAMS, P_COUNT), WANTS,          \
             .calls = TARE_CALLS_CONCURRENT)

/* For objectives that accept every combination of parameters. */
static inline tare_status any_values(const struct settings *s, tare_error *error)
{
    (void)s, (void)error;
    return TARE_OK;
}

#endif
