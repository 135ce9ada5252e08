/* Defines every part of a curriculum except its mathematics. */
#ifndef CURRICULA_CURRICULUM_H
#define CURRICULA_CURRICULUM_H

#include "../../common/built_in.h"
#include "wants.h"

/* The rest of the file. PARAMS and P_COUNT are the including file's. N_WANTS: W_COUNT, or 0
 * for none. STATE: the version of the saved state; 0: none. The other arguments are members of
 * tare_curriculum. */
#define CURRICULUM(NAME, SUMMARY, SOURCE, N_WANTS, STATE, ...)                                                                     \
    static const tare_curriculum FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, __VA_ARGS__}; \
    BUILT_IN(NAME, .kind = TARE_KIND_CURRICULUM, .summary = SUMMARY, .about = SOURCE, TARE_PARAMS(PARAMS, P_COUNT),                \
             TARE_WANTS(WANTS, N_WANTS), .calls = TARE_CALLS_SERIAL, .state_version = STATE, .state_oldest = STATE)

/* For a curriculum without a state, which only reads groups: self is struct settings. */
struct settings {
    const tare_host *host;
    const tare_value *v; /* in the order of the table */
    int64_t prompts;     /* rollout.prompts */
};
#define CURRICULUM_STATELESS(NAME, SUMMARY, SOURCE, N_WANTS, ...)                                                                  \
    static tare_status create(const tare_setup *setup, void **self, tare_error *error)                                             \
    {                                                                                                                              \
        const tare_host *h = setup->host;                                                                                          \
        struct settings *s = h->alloc(h->ctx, sizeof *s, 0);                                                                       \
        if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");                                                                \
        *s = (struct settings){h, setup->values, setup->dataset->prompts_per_step};                                                \
        *self = s;                                                                                                                 \
        return TARE_OK;                                                                                                            \
    }                                                                                                                              \
    static void destroy(void *self)                                                                                                \
    {                                                                                                                              \
        struct settings *s = self;                                                                                                 \
        s->host->release(s->host->ctx, s);                                                                                         \
    }                                                                                                                              \
    CURRICULUM(NAME, SUMMARY, SOURCE, N_WANTS, 0, __VA_ARGS__)

#endif
