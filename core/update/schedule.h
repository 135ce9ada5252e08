#ifndef TARE_CORE_UPDATE_SCHEDULE_H
#define TARE_CORE_UPDATE_SCHEDULE_H

#include "config/config.h"

/* Returns the learning rate of optimizer step s = 0, 1, ... */
double schedule_lr(const struct train_config *c, int64_t s, int64_t total);

#endif
