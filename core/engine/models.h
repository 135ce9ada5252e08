/* The model files that a training reads, and whether a resumed training reads the same ones. */
#ifndef TARE_CORE_ENGINE_MODELS_H
#define TARE_CORE_ENGINE_MODELS_H

#include "base/json.h"
#include "engine/engine.h"

/* Settings of a resumed training. */
struct models_resume {
    const char *folder; /* its manifest.json has the recorded checksums (observe/model_sums.h) */
    const char *advice; /* "... put the files back, or ADVICE" */
    bool checkpoint;    /* it resumes from a checkpoint */
    bool allow_change;  /* changed models are logged and used */
};
/* *out: checksums of the files of the engine's open models, owned by the caller. how: NULL for a
 * new training. TARE_E_CONFIG if a resumed training would continue with other models. */
tare_status models_take(const struct engine *g, const struct models_resume *how, json_t **out, struct err *e);

#endif
