/* What makes model.path when the folder is absent: the warm start (sft/sft.h), which a verb hands to what it runs. */
#ifndef TARE_CORE_ENGINE_MAKE_MODEL_H
#define TARE_CORE_ENGINE_MAKE_MODEL_H

#include "config/config.h"

typedef tare_status (*make_model)(const struct config *c, struct err *e);

#endif
