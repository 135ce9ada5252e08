/* Sets the stage of a rank. */
#include "dist/comm.h"

#include "base/fault.h"

tare_status comm_stage(struct comm *c, const char *stage, int64_t step, struct err *e)
{
    c->stage = stage;
    c->step = step;
    if (c->note) c->note(c);
    return fault_point(c->rank, stage, step, e);
}
