#define _GNU_SOURCE
#include "dist/load_library.h"

#include "base/fs.h"
#include "base/program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Global, because MPI's own plugins look for its symbols. */
static void *open_symbol(const char *path, const char *symbol, char *why, size_t capacity)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL), *found = handle ? dlsym(handle, symbol) : NULL;
    if (!found) snprintf(why, capacity, "%s", dlerror());
    return found;
}

static void *find_symbol(const char *file, const char *symbol, char *why, size_t capacity)
{
    const char *const folders[] = {".", PROGRAM_LIBRARIES};
    char folder[FS_PATH], path[FS_PATH];
    snprintf(why, capacity, "%s is not in the program's folder", file);
    for (int i = 0; i < 2; i++) {
        if (!program_path(folder, folders[i]) || fs_join(path, folder, file, NULL) || access(path, R_OK)) continue;
        return open_symbol(path, symbol, why, capacity);
    }
    return NULL;
}

tare_status load_library_open(const struct library *l, void **table, struct err *e)
{
    char why[600];
    int abi;
    char folder[FS_PATH];
    if (!program_path(folder, "."))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: the location of %s is found through /proc/self/exe, which cannot be read; mount /proc",
             l->missing, l->file);
    const char *given = l->given ? getenv(l->given) : NULL;
    void *t = given && *given ? open_symbol(given, l->symbol, why, sizeof why) : find_symbol(l->file, l->symbol, why, sizeof why);
    if (!t) FAIL(e, TARE_E_UNSUPPORTED, "%s (%s); %s", l->missing, why, l->advice);
    memcpy(&abi, t, sizeof abi);
    if (abi != l->abi)
        FAIL(e, TARE_E_VERSION, "%s: from another build (interface %d, this program has %d); build again", l->file, abi, l->abi);
    *table = t;
    return TARE_OK;
}
