/* Paths of a configuration. A path is absolute, or counts from the working folder in which the run
 * was started, which its config.ini records as run.paths_from. One that the command line gives
 * counts from the present working folder. Internal to core/config. */
#ifndef TARE_CORE_CONFIG_PATHS_H
#define TARE_CORE_CONFIG_PATHS_H

#include "config/keys.h"

struct config_source { /* one for each key in the table */
    const char *where;
    const char *written, *full; /* a path as written, and from the folder that it counts from; or NULL */
};

/* Finds the folder that paths of the file count from, and makes paths absolute if it is not the
 * working folder. recorded_dir: run.dir as the file has it. */
tare_status paths_resolve(struct config *c, const char *recorded_dir, struct faults *f, struct err *e);
/* Prints a path as config.ini has it: as it counts from run.paths_from. False: not a path, or the
 * value itself is right. */
tare_status paths_print(const struct config *c, const struct config_key *k, struct str *out, bool *printed, struct err *e);
/* Prints the absolute form of a path, for comparisons; the value itself for other keys. */
tare_status paths_print_full(const struct config *c, const struct config_key *k, struct str *out, struct err *e);

#endif
