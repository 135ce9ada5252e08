/* Ends a verifier's file: defines its descriptor and entry point from PARAMS, N_PARAMS, create,
 * destroy, uses and a function that verifies one completion. */
#ifndef TARE_VERIFIERS_VERIFIER_H
#define TARE_VERIFIERS_VERIFIER_H

#include "../../common/built_in.h"

/* Declares the row fields it uses, for any parameters. */
#define USES(BITS)                                                                                                                 \
    static uint32_t uses(const tare_value *values)                                                                                 \
    {                                                                                                                              \
        (void)values;                                                                                                              \
        return BITS;                                                                                                               \
    }

/* JUDGE(self, completion, verdict, error) is called for one completion at a time, from any thread. */
#define VERIFIER(NAME, SUMMARY, JUDGE)                                                                                             \
    VERIFY(JUDGE)                                                                                                                  \
    VERIFIER_OF(NAME, SUMMARY, TARE_VERIFIER_REPEATS)

/* Defines `verify`, which calls JUDGE for each completion. */
#define VERIFY(JUDGE)                                                                                                              \
    static tare_status verify(void *self, const tare_completion *const *completion, tare_verdict *const *out, int64_t n,           \
                              tare_error *error)                                                                                   \
    {                                                                                                                              \
        tare_status s = TARE_OK;                                                                                                   \
        for (int64_t i = 0; i < n && !s; i++) s = JUDGE(self, completion[i], out[i], error);                                       \
        return s;                                                                                                                  \
    }

/* Like VERIFIER, with a function `verify` defined by the file, and flags. */
#define VERIFIER_OF(NAME, SUMMARY, FLAGS)                                                                                          \
    static const tare_verifier FUNCTIONS = {                                                                                       \
        .struct_size = sizeof FUNCTIONS, .flags = FLAGS, .create = create, .destroy = destroy, .verify = verify, .uses = uses};    \
    BUILT_IN(NAME, .kind = TARE_KIND_VERIFIER, .summary = SUMMARY, TARE_PARAMS(PARAMS, N_PARAMS), .calls = TARE_CALLS_CONCURRENT)

#endif
