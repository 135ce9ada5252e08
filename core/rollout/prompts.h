/* Turns data rows into the prompts of a batch. */
#ifndef TARE_CORE_ROLLOUT_PROMPTS_H
#define TARE_CORE_ROLLOUT_PROMPTS_H

#include "batch/batch.h"
#include "data/dataset.h"
#include "data/prompt.h"

struct chosen_rows {
    const struct dataset *data;
    const int64_t *rows, *occurrence; /* [n]; occurrence NULL: 0 */
    int64_t n;
};
/* Fills rows, uids, occurrences and prompts of b. ids: owned by the caller, grown as needed. */
tare_status rollout_prompts(const struct prompts *p, const struct chosen_rows *chosen, struct token_ids *ids, struct batch *b,
                            struct arena *a, struct err *e);

#endif
