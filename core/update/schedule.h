#ifndef TARE_CORE_UPDATE_SCHEDULE_H
#define TARE_CORE_UPDATE_SCHEDULE_H

#include "config/config.h"

/* Returns the learning rate of optimizer step s = 0, 1, ... */
double schedule_lr(const struct train_config *c, int64_t s, int64_t total);

/* Returns loss.kl_coef before optimizer step s: linear from kl_coef at 0 to kl_floor times kl_coef at
 * total. */
double schedule_kl_coef(const struct loss_config *c, int64_t s, int64_t total);

#endif
