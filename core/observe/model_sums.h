/* Checksums of the files of a run's models, kept in its manifest (manifest.h). A run resumed with
 * other weights or another tokenizer would be another run, and its own folder would not show it.
 *
 *   {"model.path": {"path": "/absolute/folder",
 *                   "files": {"config.json": XXH3, "model.safetensors": XXH3, ...}},
 *    "model.reference": {...}, ...}
 *
 * Only the files of a folder that a model, its tokenizer and its chat template are read from count.
 * Whole files are hashed, in a small part of the time needed to read a model. */
#ifndef TARE_CORE_OBSERVE_MODEL_SUMS_H
#define TARE_CORE_OBSERVE_MODEL_SUMS_H

#include "base/json.h"

#include <stdbool.h>

struct model_role {
    const char *key, *path; /* key that names it; a folder or a file */
};
/* Computes the checksums into a new object. TARE_E_NOT_FOUND: a path does not exist. */
tare_status model_sums(const struct model_role *roles, int n, json_t **out, struct err *e);
/* Reads the checksums that manifest.json records for the run's last process. The caller owns *out.
 * TARE_E_NOT_FOUND: no manifest; TARE_E_CORRUPT: it records none or is damaged. */
tare_status model_sums_recorded(const char *run_dir, json_t **out, struct err *e);

struct model_change {
    const char *key, *path, *file, *what; /* path: current path; what: "was removed", ... */
    bool is_new;                          /* the file did not exist before */
};
typedef tare_status (*model_changed)(void *ctx, const struct model_change *c, struct err *e);
/* Calls visit for each file that differs, in the roles present in both. */
tare_status model_sums_compare(const json_t *then, const json_t *now, model_changed visit, void *ctx, struct err *e);

#endif
