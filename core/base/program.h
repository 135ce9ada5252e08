/* Location of this program and of the files installed or built with it. */
#ifndef TARE_CORE_BASE_PROGRAM_H
#define TARE_CORE_BASE_PROGRAM_H

#include "base/err.h"

#include <stdbool.h>

/* Paths from the folder of the installed program to its shared objects (PREFIX/LIBDIR/tare), data
 * (PREFIX/share/tare) and headers. */
extern const char PROGRAM_LIBRARIES[], PROGRAM_DATA[], PROGRAM_HEADERS[];

/* For use inside another program (libtare.so): file is the executable `tare`, relative to which all
 * files are found and which is started as a worker. Call it once, before anything else. False: the
 * path is too long. */
bool program_set(const char *file);
const char *program_given(void); /* NULL: not set */

/* Make a path relative to the folder of this program, FS_PATH bytes, so that an installation can be
 * moved as a whole. */
bool program_path(char *out, const char *relative);

/* Map builtin:NAME to the path of configs/NAME.ini, installed or in the source tree, FS_PATH
 * bytes. */
tare_status program_builtin_config(char *out, const char *name, struct err *e);

#endif
