/* The files that a run's configuration names for its plugins (observe/named_files.h): parameters of
 * type path, and the words of `verifier.command.command` that are files. */
#ifndef TARE_CORE_LOOP_RUN_FILES_H
#define TARE_CORE_LOOP_RUN_FILES_H

#include "loop/run.h"

/* Computes their checksums. The caller owns *out. Call it when all plugins are open. */
tare_status run_files_take(const struct run *r, json_t **out, struct err *e);
/* Warns, when a run is resumed, of files that its last process read with other contents. They are
 * never an error, like a changed plugin. */
tare_status run_files_warn(const struct run *r, const json_t *files, struct err *e);

#endif
