/* The rest of an estimator's file. PARAMS and P_COUNT are the including file's; the arguments after
 * NEEDS are members of tare_estimator. Columns from TARE_NEED_FINISH on need ABI 1.2. */
#ifndef STATEFUL_H
#define STATEFUL_H

#include "../../common/built_in.h"

#define TARE_STATEFUL(NAME, SUMMARY, SOURCE, NEEDS, ...)                                                                           \
    static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS, __VA_ARGS__};                                        \
    BUILT_IN_SINCE((NEEDS) >= TARE_NEED_FINISH ? 2 : 0, NAME, .kind = TARE_ESTIMATOR, .summary = SUMMARY, .source = SOURCE,        \
                   .params = PARAMS, .n_params = P_COUNT, .needs = NEEDS, .threading = TARE_REENTRANT)

#endif
