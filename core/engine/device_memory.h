/* A run's memory on a device: one region, as large as the plan says (plan.h), taken before the model is loaded. What does not fit is known then. */
#ifndef TARE_CORE_ENGINE_DEVICE_MEMORY_H
#define TARE_CORE_ENGINE_DEVICE_MEMORY_H

#include "config/config.h"
#include "dist/comm.h"
#include "kernels.h"

/* Reserves the region (kernels.h) for this rank of comm: what the plan's classes add up to, the margin among them. When the device has not so much, the plan's
 * table is printed on standard error, with what would make it smaller, and the error is TARE_E_NOMEM. A share of 1/64 of what the device has left stays outside of the region:
 * code of kernels and libraries, graphs. Backends that are the host's memory are not asked. vocab: of a model that is to be made. */
tare_status device_memory_reserve(const struct config *c, const struct kernels *k, const struct comm *comm, int64_t vocab,
                                  struct err *e);
/* Warns once a process when the region turned out to be too small and memory beside it was taken: the plan was wrong then. Between steps. */
void device_memory_watch(const struct kernels *k);

#endif
