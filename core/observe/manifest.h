/* manifest.json: the program, machine, plugins, data and models of a run. A resumed run appends to
 * its "resumed" list and keeps the rest. */
#ifndef TARE_CORE_OBSERVE_MANIFEST_H
#define TARE_CORE_OBSERVE_MANIFEST_H

#include "base/str.h"

#include <stdbool.h>

struct manifest_plugin {
    const char *kind, *name, *version, *path;
    uint64_t hash;        /* hash of the file */
    const char *identity; /* what its results depend on beside the file (tare_head.identity); NULL: nothing more */
};

/* Values from the caller; machine, time and version are added here. Borrowed until the call
 * returns. */
struct manifest {
    const char *kernels; /* backend of the CPU or GPU: "avx2" */
    int64_t threads, ranks;
    const struct manifest_plugin *plugins;
    int64_t n_plugins;
    const char *model;             /* path */
    const void *models;            /* json_t from model_sums.h, or NULL */
    const void *files;             /* json_t from named_files.h, or NULL */
    uint64_t data_hash, eval_hash; /* hashes of the rows; 0: none */
    int64_t data_rows, eval_rows;
    /* number of rollbacks up to the step resumed from; later ones are removed from the manifest */
    int64_t rollbacks;
};

/* A rollback of the run (train.on_nonfinite). */
struct manifest_rollback {
    int64_t step, to; /* step in progress, and step of the checkpoint */
    const char *why;
};

/* Prints JSON text that ends with a newline. previous: the text of the manifest to continue, or
 * NULL. step: the step that the run continues from. */
tare_status manifest_print(const struct manifest *m, const char *previous, int64_t step, struct str *out, struct err *e);
/* Prints the text of RUN/manifest.json. resume: continues the existing one. */
tare_status manifest_continue(const char *run_dir, const struct manifest *m, bool resume, int64_t step, struct str *text,
                              struct err *e);

/* Lists in `changed`, by kind, name and file, the plugins of m whose file differs from the one used
 * by the run's last process. Plugins that process did not use are omitted. Lists nothing if
 * manifest.json cannot be read, which model_sums.h reports. */
tare_status manifest_changed_plugins(const char *run_dir, const struct manifest *m, struct str *changed, struct err *e);

/* Prints the text of RUN/manifest.json with one more entry in "rollbacks". */
tare_status manifest_add_rollback(const char *run_dir, const struct manifest_rollback *b, struct str *out, struct err *e);

struct machine {
    char cpu[128], host[128], system[200];
    int64_t cores, usable_cores, memory, memory_free; /* bytes */
};
void manifest_machine(struct machine *out);
/* Returns the commit of the source, or "" if the build did not know it. */
const char *manifest_commit(void);

#endif
