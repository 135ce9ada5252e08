#ifndef TARE_CORE_LOOP_PROCESS_REWARD_H
#define TARE_CORE_LOOP_PROCESS_REWARD_H

#include "checkpoint/state.h"
#include "loop/run.h"

/* Rewards of tokens by the implicit process reward model, and its update. */
tare_status process_reward_check(const struct run *r, struct err *e); /* once verifier and estimator are open */
tare_status process_reward_read(struct run *r, const struct state_reader *s,
                                struct err *e);                    /* its count of steps, out of a checkpoint */
tare_status stage_process_reward(struct run *r, struct err *e);    /* the rewards of the batch's tokens */
tare_status process_reward_segments(struct run *r, struct err *e); /* the same as segments of one token each, before the estimate */
tare_status stage_process_reward_update(struct run *r, struct err *e); /* after the advantages */

#endif
