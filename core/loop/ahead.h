#ifndef TARE_CORE_LOOP_AHEAD_H
#define TARE_CORE_LOOP_AHEAD_H

#include "loop/run.h"

/* Verifiers that wait get this rank's completions as they end, while the sampler goes on with the others. */
tare_status ahead_begin(struct run *r, struct err *e);

#endif
