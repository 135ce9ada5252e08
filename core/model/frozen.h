/* The frozen base of adapters (lora.h): its compute copy is made from the files without fp32
 * masters. */
#ifndef TARE_CORE_MODEL_FROZEN_H
#define TARE_CORE_MODEL_FROZEN_H

#include "model/model.h"

/* Fills the compute copy and the embedding of m, which has the layout of the base, and
 * lora->base_hash. */
tare_status frozen_read(struct model *m, const char *folder, struct err *e);

#endif
