/* Defines every part of a curriculum except its mathematics. */
#ifndef CURRICULA_CURRICULUM_H
#define CURRICULA_CURRICULUM_H

#include "../../common/params.h"

#include <math.h>
#include <string.h>

/* The rest of the file. PARAMS and P_COUNT are the including file's, and so are the members of
 * tare_curriculum that DESCRIPTOR lists. */
#define CURRICULUM(NAME, SUMMARY, SOURCE, NEEDS, ...)                                                                              \
    static const tare_curriculum FUNCTIONS = {.struct_size = sizeof FUNCTIONS, __VA_ARGS__};                                       \
    static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,                                                   \
                                               .kind = TARE_CURRICULUM,                                                            \
                                               .name = NAME,                                                                       \
                                               .version = "1.0.0",                                                                 \
                                               .summary = SUMMARY,                                                                 \
                                               .license = "Apache-2.0",                                                            \
                                               .source = SOURCE,                                                                   \
                                               .params = PARAMS,                                                                   \
                                               .n_params = P_COUNT,                                                                \
                                               .param_size = sizeof(tare_param),                                                   \
                                               .needs = NEEDS,                                                                     \
                                               .threading = TARE_SINGLE_THREAD,                                                    \
                                               .functions = &FUNCTIONS};                                                           \
    TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 2)

/* For a curriculum without a state, which only reads groups: self is struct settings. */
struct settings {
    const tare_host *host;
    const tare_value *v;         /* in the order of the table */
    int64_t prompts, group_size; /* of [rollout] */
};
#define CURRICULUM_STATELESS(NAME, SUMMARY, SOURCE, ...)                                                                           \
    static tare_status create(const tare_host *host, const tare_value *values, const tare_rows *rows, void **self,                 \
                              tare_error *error)                                                                                   \
    {                                                                                                                              \
        struct settings *s = host->alloc(host->ctx, sizeof *s, 0);                                                                 \
        if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");                                                                \
        *s = (struct settings){host, values, rows->prompts, rows->group_size};                                                     \
        *self = s;                                                                                                                 \
        return TARE_OK;                                                                                                            \
    }                                                                                                                              \
    static void destroy(void *self)                                                                                                \
    {                                                                                                                              \
        struct settings *s = self;                                                                                                 \
        s->host->release(s->host->ctx, s);                                                                                         \
    }                                                                                                                              \
    CURRICULUM(NAME, SUMMARY, SOURCE, 0, .create = create, .destroy = destroy, __VA_ARGS__)

#endif
