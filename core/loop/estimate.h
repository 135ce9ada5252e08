#ifndef TARE_CORE_LOOP_ESTIMATE_H
#define TARE_CORE_LOOP_ESTIMATE_H

#include "loop/run.h"

tare_status stage_estimate(struct run *r, struct err *e); /* the rewards as segments' of the whole step, then the advantages */

#endif
