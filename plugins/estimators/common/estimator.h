/* The end of an estimator's file. PARAMS[P_COUNT] and WANTS[W_COUNT] are the including file's
 * tables; the arguments after PAPER are members of tare_estimator. */
#ifndef TARE_ESTIMATORS_ESTIMATOR_H
#define TARE_ESTIMATORS_ESTIMATOR_H

#include "../../common/built_in.h"

#define ESTIMATOR_END(NAME, SUMMARY, PAPER, MORE, ...)                                                                             \
    static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS, __VA_ARGS__};                                        \
    BUILT_IN(NAME, .kind = TARE_KIND_ESTIMATOR, .summary = SUMMARY, .about = ABOUT(PAPER), TARE_PARAMS(PARAMS, P_COUNT),           \
             .calls = TARE_CALLS_CONCURRENT, MORE)
/* With wants, save and load. */
#define STATEFUL(NAME, SUMMARY, PAPER, ...)                                                                                        \
    ESTIMATOR_END(NAME, SUMMARY, PAPER, TARE_WANTS(WANTS, W_COUNT) COMMA.state_version = 1 COMMA.state_oldest = 1, __VA_ARGS__)
/* Without a state: self is the values, which live as long as the instance (const tare_value *v =
 * self). */
#define STATELESS(NAME, SUMMARY, PAPER, ...)                                                                                       \
    VALUES_AS_SELF                                                                                                                 \
    ESTIMATOR_END(NAME, SUMMARY, PAPER, , .create = create, .destroy = destroy, __VA_ARGS__)
#define STATELESS_WANTS(NAME, SUMMARY, PAPER, ...)                                                                                 \
    VALUES_AS_SELF                                                                                                                 \
    ESTIMATOR_END(NAME, SUMMARY, PAPER, TARE_WANTS(WANTS, W_COUNT), .create = create, .destroy = destroy, __VA_ARGS__)
#define COMMA ,
#define VALUES_AS_SELF                                                                                                             \
    static tare_status create(const tare_setup *setup, void **self, tare_error *error)                                             \
    {                                                                                                                              \
        (void)error;                                                                                                               \
        *self = (void *)(uintptr_t)setup->values;                                                                                  \
        return TARE_OK;                                                                                                            \
    }                                                                                                                              \
    static void destroy(void *self)                                                                                                \
    {                                                                                                                              \
        (void)self;                                                                                                                \
    }

/* The function sizes of an estimator without a state: prepare has N sums, an expression of the
 * values v. */
#define PREPARES(N)                                                                                                                \
    static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)                                                 \
    {                                                                                                                              \
        const tare_value *v = self;                                                                                                \
        (void)v, (void)error;                                                                                                      \
        out->prepare = (N);                                                                                                        \
        return TARE_OK;                                                                                                            \
    }

/* A required column with one number an entry. */
#define WANT(NAME, AXIS, TYPE)                                                                                                     \
    {                                                                                                                              \
        .name = (NAME), .axis = (AXIS), .type = (TYPE), .width = 1                                                                 \
    }

#endif
