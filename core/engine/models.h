/* Which models a training reads, and whether one that goes on reads those that it was trained with. */
#ifndef TARE_CORE_ENGINE_MODELS_H
#define TARE_CORE_ENGINE_MODELS_H

#include "base/json.h"
#include "engine/engine.h"

/* A training that goes on. */
struct models_resume {
    const char *folder; /* its manifest.json has the sums of before (observe/model_sums.h) */
    const char *advice; /* "... put the files back, or ADVICE" */
    bool checkpoint;    /* it goes on from one */
    bool allow_change;  /* other models are told, and taken */
};
/* *out: the sums of the files that the engine's models, which are open, are read from; the caller's. how: NULL for a new training.
 * TARE_E_CONFIG where one that goes on would go on with other models. */
tare_status models_take(const struct engine *g, const struct models_resume *how, json_t **out, struct err *e);

#endif
