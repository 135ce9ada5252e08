/* Declarations shared by the files that read a step from JSON. */
#ifndef TARE_CORE_ESTIMATE_PARSE_H
#define TARE_CORE_ESTIMATE_PARSE_H

#include "base/json.h"
#include "batch/batch.h"

/* Reads the columns that only some estimators need, where the groups have them: finish, row,
 * completions, ids, verdicts, ... The batch has its groups, rollouts, tokens and components
 * already. */
tare_status estimate_parse_facts(const json_t *groups, const char *where, struct arena *a, struct batch *b, struct err *e);

#endif
