/* Sums of the files that a run's models are made of. Its manifest keeps them (manifest.h): a run that went on with other weights or another tokenizer would
 * be another run, and nothing in its own folder would tell.
 *
 *   {"model.path": {"path": "/absolute/folder", "files": {"config.json": XXH3, "model.safetensors": XXH3, ...}}, "model.reference": {...}, ...}
 *
 * Of a folder those files count that a model, its tokenizer and its chat template are read from. Whole files are summed: that takes a small part of the
 * time in which a model is read. */
#ifndef TARE_CORE_OBSERVE_MODEL_SUMS_H
#define TARE_CORE_OBSERVE_MODEL_SUMS_H

#include "base/json.h"

#include <stdbool.h>

struct model_role {
    const char *key, *path; /* the key that names it; a folder, or one file */
};
/* A new object. TARE_E_NOT_FOUND where a path is not there. */
tare_status model_sums(const struct model_role *roles, int n, json_t **out, struct err *e);
/* Reads the checksums that manifest.json records for the run's last process. The caller owns *out.
 * TARE_E_NOT_FOUND: no manifest; TARE_E_CORRUPT: it records none or is damaged. */
tare_status model_sums_recorded(const char *run_dir, json_t **out, struct err *e);

struct model_change {
    const char *key, *path, *file, *what; /* path: as it is now; what: "is gone", ... */
    bool is_new;                          /* the file was not there before */
};
typedef tare_status (*model_changed)(void *ctx, const struct model_change *c, struct err *e);
/* Calls visit for each file that differs in a role that both have. */
tare_status model_sums_compare(const json_t *then, const json_t *now, model_changed visit, void *ctx, struct err *e);

#endif
