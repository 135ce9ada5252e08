/* What the files of core/plugin share. */
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

/* elf.c: is path a shared object for this machine with an entry point of our major? Nothing of it is run. hash: XXH3 of the file. */
tare_status elf_check(const char *path, uint64_t *hash, struct err *e);

/* loader.c: opens by real path, or returns what was opened before. */
tare_status plugin_file_open(const char *path, const struct plugin_file **out, struct err *e);

/* validate.c: checks what the entry point returned and makes the host's copies. out: [*n], new memory; at least one. Descriptors of a kind
 * that this program does not know are passed over with a note. */
tare_status plugin_validate(const char *path, const tare_plugin *p, struct plugin **out, uint32_t *n, struct err *e);
bool plugin_name_ok(const char *name); /* [a-z][a-z0-9_]* */

/* search.c: every folder in which plugins of a kind are looked for, in order. kind 0: of all kinds. visit returns true to stop. */
typedef bool (*folder_visit)(void *ctx, const char *folder);
void plugin_folders(const struct plugin_search *search, int32_t kind, folder_visit visit, void *ctx);
/* The file for a bare name; TARE_E_NOT_FOUND with the folders looked at and the nearest names. */
tare_status plugin_find(const char *name, int32_t kind, const struct plugin_search *search, char *path, struct err *e);

/* params.c: one value from its text. what: "file:line: [estimator.x] key", for messages. String values point to text. */
tare_status param_parse(const tare_param *p, const char *text, const char *what, tare_value *out, struct err *e);
/* "0 < gamma <= 1", or "" where everything goes. */
const char *param_range(const tare_param *p, char *buffer, size_t n);

/* host.c */
tare_host plugin_host(struct plugin_instance *i);
/* The host that entry points get: of no instance, and there until the process ends, since a plugin may keep the pointer. */
const tare_host *plugin_entry_host(void);

#endif
