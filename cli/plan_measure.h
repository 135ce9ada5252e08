/* Peaks of this machine, measured for `tare plan --measure`. */
#ifndef TARE_CLI_PLAN_MEASURE_H
#define TARE_CLI_PLAN_MEASURE_H

#include "plan/plan.h"

/* Fills flops, bandwidth, link (copying memory: what ranks of one host do) and disk (a file of 64 MiB beside run.dir, synced and removed). Takes
 * some seconds. */
tare_status plan_measure(const struct config *c, struct plan_machine *m, struct err *e);

#endif
