#ifndef TARE_CORE_LOOP_ROW_COMPLETION_H
#define TARE_CORE_LOOP_ROW_COMPLETION_H

#include "loop/run.h"

/* Appends the tokens of the row's completion and EOS to out. prompt: tokens of its prompt.
 * TARE_E_RANGE, naming the row, if the completion is longer than rollout.max_new_tokens or does not
 * fit into the context after the prompt. */
tare_status row_completion_encode(const struct run *r, const struct row *row, int64_t prompt, struct token_ids *out, struct err *e);

#endif
