/* Finds a shared object that belongs to the program: in the program's folder, or in
 * PREFIX/LIBDIR/tare. */
#ifndef TARE_CORE_DIST_LOAD_LIBRARY_H
#define TARE_CORE_DIST_LOAD_LIBRARY_H

#include "base/err.h"

struct library {
    const char *file, *symbol;
    int abi;             /* interface version of this program; the exported table begins with its own, an int */
    const char *missing; /* for messages: "there is no MPI" */
    const char *advice;  /* how to fix that */
    const char *given;   /* environment variable with a path that is loaded instead; or NULL */
};

/* Loads the table of functions; the object stays loaded. TARE_E_UNSUPPORTED if it is missing or
 * cannot be loaded; TARE_E_VERSION. */
tare_status load_library_open(const struct library *l, void **table, struct err *e);

#endif
