#ifndef TARE_CORE_LOOP_REFILL_H
#define TARE_CORE_LOOP_REFILL_H

#include "loop/run.h"

/* After the estimate; collects and estimates again until no group is asked for. */
tare_status refill(struct run *r, struct err *e);

#endif
