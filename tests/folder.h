/* A folder for the files that a test program writes. Remove it with fs_remove_tree. */
#ifndef TARE_TESTS_FOLDER_H
#define TARE_TESTS_FOLDER_H

#include "base/fs.h"

#include <stdlib.h>

/* Returns a new folder NAME-XXXXXX in TMPDIR if that is writable, else in /tmp; NULL if it
 * cannot be made. The text is valid until the fourth later call. */
static inline const char *make_test_folder(const char *name)
{
    static char made[4][FS_PATH];
    static int calls;
    char *out = made[calls++ % 4];
    return fs_temporary(out, name, NULL) ? NULL : mkdtemp(out);
}

#endif
