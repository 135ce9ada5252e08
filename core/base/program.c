#include "base/program.h"

#include "base/fs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char PROGRAM_LIBRARIES[] = TARE_BIN_TO_LIBRARIES, PROGRAM_DATA[] = TARE_BIN_TO_DATA, PROGRAM_HEADERS[] = TARE_BIN_TO_HEADERS;

static char given[FS_PATH];

bool program_set(const char *file)
{
    return snprintf(given, sizeof given, "%s", file) < (int)sizeof given;
}

const char *program_given(void)
{
    return *given ? given : NULL;
}

/* Path of this executable, FS_PATH bytes. False if the system cannot report it. */
static bool program_file(char *out)
{
    if (*given) {
        memcpy(out, given, sizeof given);
        return true;
    }
    const ssize_t n = readlink("/proc/self/exe", out, FS_PATH - 1);
    out[n > 0 ? n : 0] = 0;
    return n > 0;
}

bool program_path(char *out, const char *relative)
{
    char exe[FS_PATH], folder[FS_PATH];
    if (!program_file(exe)) return false;
    fs_dirname(folder, exe);
    return !fs_join(out, folder, relative, NULL);
}

tare_status program_builtin_config(char *out, const char *name, struct err *e)
{
    char folder[FS_PATH], file[FS_PATH];
    if (snprintf(file, sizeof file, "configs/%s.ini", name) >= (int)sizeof file) file[0] = 0;
    if (program_path(folder, PROGRAM_DATA) && !fs_join(out, folder, file, NULL) && fs_exists(out)) return TARE_OK;
    if (!fs_join(out, TARE_SOURCE, file, NULL) && fs_exists(out)) return TARE_OK;
    FAIL(e, TARE_E_CONFIG, "builtin:%s: unknown configuration; see %s/configs for those available", name, folder);
}
