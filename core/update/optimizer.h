#ifndef TARE_CORE_UPDATE_OPTIMIZER_H
#define TARE_CORE_UPDATE_OPTIMIZER_H

#include "update/trainer.h"

/* Clips by global norm, applies AdamW to every parameter, rebuilds the compute copy and zeroes the
 * gradients. A norm that is not finite, or has a square that single precision cannot hold, is
 * TARE_E_NOT_FINITE with t->overflow, or skips the step (train.on_nonfinite). */
tare_status optimizer_step(struct trainer *t, double *grad_norm, double *lr, bool *skipped, struct err *e);

#endif
