#ifndef TARE_CORE_LOOP_ROW_COMPLETION_H
#define TARE_CORE_LOOP_ROW_COMPLETION_H

#include "loop/run.h"

/* Appends the tokens of the row's completion and EOS to out. TARE_E_RANGE with the row's place if they are more than a rollout may have, or do not
 * fit into the context after a prompt of `prompt` tokens. */
tare_status row_completion_encode(const struct run *r, const struct row *row, int64_t prompt, struct token_ids *out, struct err *e);

#endif
