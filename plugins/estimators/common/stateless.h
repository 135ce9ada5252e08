/* Defines every part of an estimator without a state except compute. */
#ifndef STATELESS_H
#define STATELESS_H

#include "../../common/params.h"
#include "stateful.h"

/* The rest of a file whose estimator keeps no state: self is its values, which live as long as the
 * instance (const tare_value *v = self). PARAMS and P_COUNT are the including file's; the other
 * arguments are members of tare_estimator. */
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
    TARE_STATEFUL(NAME, SUMMARY, SOURCE, NEEDS, .create = create, .destroy = destroy, __VA_ARGS__)

#endif
