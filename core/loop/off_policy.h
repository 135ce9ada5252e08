#ifndef TARE_CORE_LOOP_OFF_POLICY_H
#define TARE_CORE_LOOP_OFF_POLICY_H

#include "loop/run.h"

/* Traces of the rows into their groups, after the sampling; the check is made once the estimator is open. */
tare_status stage_off_policy(struct run *r, struct err *e);
tare_status off_policy_check(const struct run *r, struct err *e);
/* Appends the row's completion and EOS to out; refused by row where it is longer than a rollout may be. prompt: tokens of its prompt. */
tare_status off_policy_encode(const struct run *r, const struct row *row, int64_t prompt, struct token_ids *out, struct err *e);

#endif
