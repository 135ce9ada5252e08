/* The metric of Adam's step: <a, b> = sum_j a_j b_j / (sqrt(v_j / (1 - beta2^t)) + eps), with v and
 * t from the checkpoint's optimizer. To first order the step along g gains lr <g, g*> of the
 * expected reward, so a direction in this metric shows an estimator's gradient as Adam applies
 * it. */
#ifndef TARE_LAB_VARIANCE_ADAM_H
#define TARE_LAB_VARIANCE_ADAM_H

#include "engine/engine.h"

/* Computes out [n_own of the model], the square roots of the factors above, which multiply the
 * gradients; free it with mem_free. folder: the checkpoint's folder. TARE_E_CONFIG if it has no
 * optimizer. */
tare_status adam_factors(struct engine *g, const char *folder, float **out, struct err *e);

#endif
