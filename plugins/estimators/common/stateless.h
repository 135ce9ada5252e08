/* What every estimator writes besides its mathematics: for one without a state everything around compute. */
#ifndef STATELESS_H
#define STATELESS_H

#include "../../common/params.h"

/* The rest of a file whose estimator keeps no state: self is its values, which live as long as the instance (const tare_value *v = self). PARAMS and
 * P_COUNT are the file's; what follows are members of tare_estimator. */
#define TARE_STATELESS(NAME, SUMMARY, SOURCE, ...) TARE_STATELESS_NEEDS(NAME, SUMMARY, SOURCE, 0, __VA_ARGS__)
#define TARE_STATELESS_NEEDS(NAME, SUMMARY, SOURCE, NEEDS, ...)                                                                    \
    static tare_status create(const tare_host *host, const tare_value *values, int64_t n_clusters, void **self, tare_error *error) \
    {                                                                                                                              \
        (void)host, (void)n_clusters, (void)error;                                                                                 \
        *self = (void *)(uintptr_t)values;                                                                                         \
        return TARE_OK;                                                                                                            \
    }                                                                                                                              \
    static void destroy(void *self)                                                                                                \
    {                                                                                                                              \
        (void)self;                                                                                                                \
    }                                                                                                                              \
    static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, __VA_ARGS__};  \
    static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,                                                   \
                                               .kind = TARE_ESTIMATOR,                                                             \
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
    TARE_PLUGIN_ENTRY(DESCRIPTOR)

#endif
