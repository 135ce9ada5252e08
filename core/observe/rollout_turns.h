/* Turns of an episode in a rollout's record:
 *
 *   "ids":[5,9,2,7,7,4,2]                    tokens after the prompt, context included
 *   "sampled":[3,2,2]                        runs of sampled and of context tokens, in turn
 *   "turns":[{"begin":0,"end":3,"finish":"stop"},{"begin":5,"end":7,"finish":"stop"}]
 *
 * A completion without turns has none of these fields. */
#ifndef TARE_CORE_OBSERVE_ROLLOUT_TURNS_H
#define TARE_CORE_OBSERVE_ROLLOUT_TURNS_H

#include "base/json.h"
#include "batch/batch.h"

struct rollout_turns {
    int64_t n, n_tokens;          /* n 0: a completion without turns */
    int64_t *act_begin, *act_end; /* [n] */
    uint8_t *finish;              /* [n] enum finish */
    int32_t *ids;                 /* [n_tokens] */
    uint8_t *sampled;             /* [n_tokens] */
};

/* Adds the fields of rollout i to its record; *bad if out of memory. */
void rollout_turns_put(json_t *record, bool *bad, const struct batch *b, int64_t i);
/* Reads them back. where: the record in error messages. The arrays are in the arena. */
tare_status rollout_turns_read(const json_t *record, const char *where, struct arena *a, struct rollout_turns *out, struct err *e);

#endif
