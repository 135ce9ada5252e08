/* Rewards become advantages: the estimator computes on the whole step. */
#include "loop/estimate.h"

#include "loop/process_reward.h"

tare_status stage_estimate(struct run *r, struct err *e)
{
    if (r->config->process_reward.implicit) TRY(process_reward_segments(r, e));
    return estimate_run(r->estimator, &r->batch, &r->arena, e);
}
