/* Declarations shared by the files of core/plugin. */
#ifndef TARE_CORE_PLUGIN_INTERNAL_H
#define TARE_CORE_PLUGIN_INTERNAL_H

#include "plugin/plugin.h"

/* One opened file. */
struct plugin_file {
    const char *path; /* real path */
    struct plugin *plugins;
    uint32_t n;
    struct plugin_file *next;
};

/* Checks that path is a shared object for this machine with an entry point of our major version.
 * Runs no code of it. hash: XXH3 of the file. */
tare_status elf_check(const char *path, uint64_t *hash, struct err *e);

/* Opens a file by its real path, or returns the file that was opened earlier. */
tare_status plugin_file_open(const char *path, const struct plugin_file **out, struct err *e);

/* Checks the plugin that the entry point returned and makes the host's copies. out: [*n], new
 * memory, at least one. Skips descriptors of an unknown kind and logs a note. */
tare_status plugin_validate(const char *path, const tare_plugin *p, struct plugin **out, uint32_t *n, struct err *e);
bool plugin_name_ok(const char *name); /* [a-z][a-z0-9_]* */

/* Visits every folder in which plugins of a kind are searched, in order. kind 0: folders of all
 * kinds. visit returns true to stop. */
typedef bool (*folder_visit)(void *ctx, const char *folder);
void plugin_folders(const struct plugin_search *search, int32_t kind, folder_visit visit, void *ctx);
/* Finds the file for a bare name. kind 0: of any kind; then no file is opened. TARE_E_NOT_FOUND lists
 * the folders searched and the most similar name. */
tare_status plugin_find(const char *name, int32_t kind, const struct plugin_search *search, char *path, struct err *e);

/* Asks the instance for its sizes again and checks them. Not an error for kinds without the function
 * sizes. after: the function that was called; what it must not change is refused. */
tare_status plugin_resize(struct plugin_instance *i, const char *after, struct err *e);

/* Refuses what a plugin gave although its stream had failed. phase: its function. */
tare_status plugin_stream_end(const struct plugin_stream *s, const struct plugin_instance *i, const char *phase, struct err *e);

/* Returns the engine's rows, or rows for a curriculum without an engine. */
tare_status plugin_dataset(struct plugin_instance *i, const tare_dataset **out, struct err *e);

/* Parses one value from its text. what: "file:line: [estimator.x] key", for messages. String values
 * point to text. */
tare_status param_parse(const tare_param *p, const char *text, const char *what, tare_value *out, struct err *e);
/* Returns the allowed range, "0 < gamma <= 1", or "" where every value is allowed. */
const char *param_range(const tare_param *p, char *buffer, size_t n);

tare_host plugin_host(struct plugin_instance *i);
/* Returns the host that entry points get. It has no instance, and it lives until the process ends,
 * since a plugin may keep the pointer. */
const tare_host *plugin_entry_host(void);

#endif
