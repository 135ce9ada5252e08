#define _GNU_SOURCE
#include "dist/load_library.h"

#include "base/fs.h"
#include "base/program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *find(const char *file, const char *symbol, char *why, size_t room)
{
    const char *const folders[] = {".", PROGRAM_LIBRARIES};
    char folder[FS_PATH], path[FS_PATH];
    snprintf(why, room, "%s is not beside the program", file);
    for (int i = 0; i < 2; i++) {
        if (!program_path(folder, folders[i]) || fs_join(path, folder, file, NULL) || access(path, R_OK)) continue;
        /* global: MPI's own plugins look for its symbols */
        void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL), *found = handle ? dlsym(handle, symbol) : NULL;
        if (!found) snprintf(why, room, "%s", dlerror());
        return found;
    }
    return NULL;
}

tare_status load_library_open(const struct library *l, void **table, struct err *e)
{
    char why[600];
    int abi;
    char folder[FS_PATH];
    if (!program_path(folder, "."))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: where %s lies is known from /proc/self/exe, which cannot be read here; mount /proc",
             l->missing, l->file);
    void *t = find(l->file, l->symbol, why, sizeof why);
    if (!t) FAIL(e, TARE_E_UNSUPPORTED, "%s (%s); %s", l->missing, why, l->advice);
    memcpy(&abi, t, sizeof abi);
    if (abi != l->abi)
        FAIL(e, TARE_E_VERSION, "%s is of another build (interface %d, this program's is %d); build again", l->file, abi, l->abi);
    *table = t;
    return TARE_OK;
}
