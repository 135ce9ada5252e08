/* A model for inference: its configuration, from keys, and its engine. Used by `tare generate`,
 * `tare score` and the library. */
#ifndef TARE_CORE_INFER_MODEL_H
#define TARE_CORE_INFER_MODEL_H

#include "engine/engine.h"

struct infer {
    struct config config;
    struct engine engine; /* tokenizer is NULL if the folder has none */
    bool group_given;     /* rollout.group_size was set */
};

/* given: a Hugging Face folder, or the folder of a run, whose newest checkpoint is used with the
 * data.* keys of its config.ini. settings: n strings "key=value" or "section.key=value", the keys
 * of `tare generate`. Zero-initialise *m; close it in every case. */
tare_status infer_open(struct infer *m, const char *given, const char *const *settings, int64_t n, struct err *e);
/* Changes one setting of those that may change between prompts: the sampling of completions, and
 * run.seed. */
tare_status infer_set(struct infer *m, const char *assignment, struct err *e);
void infer_close(struct infer *m);

#endif
