/* Before anything is taken from a device: what the configuration needs (plan.h) against what the device has left. */
#ifndef TARE_CORE_DEVICE_MEMORY_H
#define TARE_CORE_DEVICE_MEMORY_H

#include "config/config.h"
#include "kernels.h"

/* The plan's table on standard error and TARE_E_NOMEM when it does not fit; backends that are the host's memory are not asked. vocab: of a model that is to
 * be made. Called by each rank before it loads the model. */
tare_status device_memory_check(const struct config *c, const struct kernels *k, int64_t ranks, int64_t vocab, struct err *e);

#endif
