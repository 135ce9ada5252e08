/* Finding a shared object that belongs to the program: beside it, or in PREFIX/LIBDIR/tare. */
#ifndef TARE_CORE_DIST_LOAD_LIBRARY_H
#define TARE_CORE_DIST_LOAD_LIBRARY_H

#include "base/err.h"

struct library {
    const char *file, *symbol;
    int abi;             /* which interface this program knows; the table that the symbol names begins with it, an int */
    const char *missing; /* for messages: "there is no MPI" */
    const char *advice;  /* what to do then */
};

/* The table of functions. The object stays loaded. Errors: TARE_E_UNSUPPORTED: it is not there or cannot be loaded; TARE_E_VERSION. */
tare_status load_library_open(const struct library *l, void **table, struct err *e);

#endif
