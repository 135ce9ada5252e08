/* manifest.json: what made this run. A resumed run appends to its "resumed" list and keeps the rest. */
#ifndef TARE_CORE_OBSERVE_MANIFEST_H
#define TARE_CORE_OBSERVE_MANIFEST_H

#include "base/str.h"

#include <stdbool.h>

struct manifest_plugin {
    const char *kind, *name, *version, *path;
    uint64_t hash; /* of the file */
};

struct manifest {        /* what the caller knows; machine, time and version are found here. Pointers live until the call returns */
    const char *kernels; /* backend of the CPU or GPU: "avx2" */
    int64_t threads, ranks;
    const struct manifest_plugin *plugins;
    int64_t n_plugins;
    const char *model;             /* path */
    const void *models;            /* json_t of model_sums.h, or NULL */
    uint64_t data_hash, eval_hash; /* of the rows; 0: none */
    int64_t data_rows, eval_rows;
    int64_t rollbacks; /* that the run has done when it continues: later ones leave the manifest */
};

/* A time that the run went back (train.on_nonfinite). */
struct manifest_rollback {
    int64_t step, to; /* the step that was being made; that of the checkpoint */
    const char *why;
};

/* JSON text that ends with a newline. previous: the text of the manifest that is continued, or NULL; step: the one that the run
 * continues from. */
tare_status manifest_print(const struct manifest *m, const char *previous, int64_t step, struct str *out, struct err *e);
/* The text of RUN/manifest.json; resume: the one that is there is continued. */
tare_status manifest_continue(const char *run_dir, const struct manifest *m, bool resume, int64_t step, struct str *text,
                              struct err *e);

/* The plugins of m whose file is not the one that the run's last process had, by kind, name and file, into `changed`; nothing of a plugin that it had not, and where
 * manifest.json cannot be read (model_sums.h tells that). */
tare_status manifest_changed_plugins(const char *run_dir, const struct manifest *m, struct str *changed, struct err *e);

/* The text of RUN/manifest.json with one more in its list "rollbacks". */
tare_status manifest_add_rollback(const char *run_dir, const struct manifest_rollback *b, struct str *out, struct err *e);

struct machine {
    char cpu[128], host[128], system[200];
    int64_t cores, usable_cores, memory, memory_free; /* bytes */
};
void manifest_machine(struct machine *out);
/* Commit of the source, or "" when the build did not know it. */
const char *manifest_commit(void);

#endif
