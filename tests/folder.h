/* A folder for what a test program writes. Remove it with fs_remove_tree. */
#ifndef TARE_TESTS_FOLDER_H
#define TARE_TESTS_FOLDER_H

#include "base/fs.h"

#include <stdlib.h>

/* A new folder NAME-XXXXXX in TMPDIR where that can be written, else in /tmp. NULL: it cannot be made. The text stays until the
 * fourth call after. */
static inline const char *make_test_folder(const char *name)
{
    static char made[4][FS_PATH];
    static int calls;
    char *out = made[calls++ % 4];
    return fs_temporary(out, name, NULL) ? NULL : mkdtemp(out);
}

#endif
