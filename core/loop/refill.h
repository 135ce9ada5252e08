#ifndef TARE_CORE_LOOP_REFILL_H
#define TARE_CORE_LOOP_REFILL_H

#include "loop/run.h"

/* Called after the estimate: collects and estimates again until no more groups are requested. */
tare_status refill(struct run *r, struct err *e);

#endif
