/* Makes model.path if the folder is missing: the warm start (sft/sft.h), which a verb passes to the
 * function that it runs. */
#ifndef TARE_CORE_ENGINE_MAKE_MODEL_H
#define TARE_CORE_ENGINE_MAKE_MODEL_H

#include "config/config.h"

typedef tare_status (*make_model)(const struct config *c, struct err *e);

#endif
