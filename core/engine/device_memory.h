/* A run's memory on a device: one region, as large as the plan says (plan.h), reserved before the
 * model is loaded, so that a lack of memory is known then. */
#ifndef TARE_CORE_ENGINE_DEVICE_MEMORY_H
#define TARE_CORE_ENGINE_DEVICE_MEMORY_H

#include "config/config.h"
#include "dist/comm.h"
#include "kernels.h"

/* Reserves the region (kernels.h) for this rank of comm: the sum of the plan's classes, margin
 * included. If the device has less memory left, prints the plan's table on standard error, with
 * remedies, and fails with TARE_E_NOMEM. 1/64 of the remaining memory stays outside of the region,
 * for code of kernels and libraries and for graphs. Does nothing for backends in host memory.
 * vocab: vocabulary size of a model that does not exist yet; eval_rows: rows of data.eval, -1 if not loaded. */
tare_status device_memory_reserve(const struct config *c, const struct kernels *k, const struct comm *comm, int64_t vocab,
                                  int64_t eval_rows, struct err *e);
/* Warns once in a process if the region was too small and memory was allocated outside of it, which
 * means that the plan was wrong. Called between steps. */
void device_memory_watch(const struct kernels *k);

#endif
