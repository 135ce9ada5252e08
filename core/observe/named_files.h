/* Checksums of the files that a run's configuration names for its plugins, kept in its manifest as
 * "files" (manifest.h): the file of a Python reward, a program, a schema. A run resumed with other
 * contents would be another run, and its own folder would not show it.
 *
 *   [{"key": "verifier.python.file", "path": "/absolute/rewards.py",
 *     "files": {"rewards.py": XXH3, "helpers.py": XXH3}}, ...]
 *
 * Names are relative to the folder of "path", or to "path" if that is a folder, of which the files
 * directly in it count. A .py file counts with the files in its folder that it imports
 * (python_imports.h). */
#ifndef TARE_CORE_OBSERVE_NAMED_FILES_H
#define TARE_CORE_OBSERVE_NAMED_FILES_H

#include "observe/model_sums.h"

/* Appends the files at `path` to the list. Adds nothing if the list has them, if the path does not
 * exist, or if it is neither a file nor a folder. Files that cannot be read are skipped with a
 * warning. */
tare_status named_files_add(json_t *list, const char *key, const char *path, struct err *e);
/* Reads the list that manifest.json records for the run's last process. The caller owns *out; NULL
 * if the manifest cannot be read, or has no list. */
tare_status named_files_recorded(const char *run_dir, json_t **out, struct err *e);
/* Calls visit for each file that differs between two lists, in the entries with the same key and
 * the same path or file name. */
tare_status named_files_compare(const json_t *then, const json_t *now, model_changed visit, void *ctx, struct err *e);

#endif
