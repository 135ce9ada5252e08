/* The metric of Adam's step: <a, b> = sum_j a_j b_j / (sqrt(v_j / (1 - beta2^t)) + eps), v and t from the checkpoint's optimizer. The step along g gains
 * lr <g, g*> of the expected reward, to first order, so a direction in this metric says what Adam makes of an estimator. */
#ifndef TARE_LAB_VARIANCE_ADAM_H
#define TARE_LAB_VARIANCE_ADAM_H

#include "engine/engine.h"

/* out [n_own of the model]: the square root of the factors above, with which gradients are multiplied; mem_free gives it back. folder: of a checkpoint;
 * TARE_E_CONFIG where it has no optimizer. */
tare_status adam_factors(struct engine *g, const char *folder, float **out, struct err *e);

#endif
