/* Ends a verifier's file: defines its descriptor and entry point from PARAMS, N_PARAMS, create,
 * destroy, uses and a function that verifies one answer. */
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

/* JUDGE(self, answer, verdict, error) is called for one answer at a time, from any thread. */
#define VERIFIER(NAME, SUMMARY, JUDGE)                                                                                             \
    static tare_status verify(void *self, const tare_answer *const *answers, tare_verdict *const *verdicts, int64_t n,             \
                              tare_error *error)                                                                                   \
    {                                                                                                                              \
        tare_status s = TARE_OK;                                                                                                   \
        for (int64_t i = 0; i < n && !s; i++) s = JUDGE(self, answers[i], verdicts[i], error);                                     \
        return s;                                                                                                                  \
    }                                                                                                                              \
    VERIFIER_OF(NAME, SUMMARY, 0)

/* Like VERIFIER, with a function `verify` defined by the file, and flags. */
#define VERIFIER_OF(NAME, SUMMARY, FLAGS)                                                                                          \
    static const tare_verifier FUNCTIONS = {                                                                                       \
        .struct_size = sizeof FUNCTIONS, .flags = FLAGS, .create = create, .destroy = destroy, .verify = verify, .uses = uses};    \
    BUILT_IN(NAME, .kind = TARE_VERIFIER, .summary = SUMMARY, .params = PARAMS, .n_params = N_PARAMS, .threading = TARE_REENTRANT)

#endif
