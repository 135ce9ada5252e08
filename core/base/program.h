/* Where this program lies, and what was built or installed with it. */
#ifndef TARE_CORE_BASE_PROGRAM_H
#define TARE_CORE_BASE_PROGRAM_H

#include "base/err.h"

#include <stdbool.h>

/* From the folder of the installed program to those of its shared objects (PREFIX/LIBDIR/tare), data (PREFIX/share/tare) and headers. */
extern const char PROGRAM_LIBRARIES[], PROGRAM_DATA[], PROGRAM_HEADERS[];

/* Inside of another program (libtare.so): FILE is the program tare that everything is found from, and that is started as a worker. Once, before all
 * else. False: the path is too long. */
bool program_set(const char *file);
const char *program_given(void); /* NULL: none was */

/* A path counted from the folder of this program, FS_PATH bytes. An installation can therefore be moved as a whole. */
bool program_path(char *out, const char *relative);

/* builtin:NAME -> the file of configs/NAME.ini, installed or of the source tree, FS_PATH bytes. */
tare_status program_builtin_config(char *out, const char *name, struct err *e);

#endif
