#ifndef TARE_CORE_UPDATE_OPTIMIZER_H
#define TARE_CORE_UPDATE_OPTIMIZER_H

#include "update/trainer.h"

/* Clips by global norm, AdamW on every parameter, makes the compute copy again, zeroes the gradients. A norm that is not
 * finite, or whose square is not in single precision, is TARE_E_NOT_FINITE with t->overflow, or skipped (train.on_nonfinite). */
tare_status optimizer_step(struct trainer *t, double *grad_norm, double *lr, bool *skipped, struct err *e);

#endif
