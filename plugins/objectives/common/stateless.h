/* What an objective without a state writes besides its mathematics. self is struct settings. */
#ifndef OBJECTIVE_STATELESS_H
#define OBJECTIVE_STATELESS_H

#include "../../common/params.h"

#include <math.h>

struct settings {
    const tare_host *host;
    const tare_value *v; /* in the order of the table */
    tare_loss loss;      /* of [loss] */
};

/* One token's outcome: v and dv/dlogp. */
static inline void put(tare_token_loss *out, int64_t i, double value, double dlogprob, int clipped)
{
    out->value[i] = value;
    out->dlogprob[i] = dlogprob;
    out->clipped[i] = (uint8_t)clipped;
}

/* log(pi / old) of token i, and the same without a gradient. */
static inline double log_ratio(const tare_tokens *t, int64_t i)
{
    return (double)t->logprob[i] - (double)t->old_logprob[i];
}

static inline double detached_log_ratio(const tare_tokens *t, int64_t i)
{
    return (double)t->detached[i] - (double)t->old_logprob[i];
}

/* The rest of the file. PARAMS and P_COUNT are the file's; CHECK(const struct settings *, tare_error *) refuses values that do not go together;
 * what follows are members of tare_objective. */
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
    static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,                                                   \
                                               .kind = TARE_OBJECTIVE,                                                             \
                                               .name = NAME,                                                                       \
                                               .version = "1.0.0",                                                                 \
                                               .summary = SUMMARY,                                                                 \
                                               .license = "Apache-2.0",                                                            \
                                               .source = SOURCE,                                                                   \
                                               .params = PARAMS,                                                                   \
                                               .n_params = P_COUNT,                                                                \
                                               .param_size = sizeof(tare_param),                                                   \
                                               .needs = NEEDS,                                                                     \
                                               .threading = TARE_REENTRANT,                                                        \
                                               .functions = &FUNCTIONS};                                                           \
    TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 2)

/* For objectives whose parameters go together in every case. */
static inline tare_status any_values(const struct settings *s, tare_error *error)
{
    (void)s, (void)error;
    return TARE_OK;
}

#endif
