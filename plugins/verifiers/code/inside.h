/* Steps of the child between its creation and the start of the program. Only system calls are
 * allowed: the parent may have had any number of threads. */
#ifndef TARE_VERIFIERS_CODE_INSIDE_H
#define TARE_VERIFIERS_CODE_INSIDE_H

#include "sandbox.h"

struct inside {
    const struct sandbox *sandbox;
    const char *program;        /* NUL-terminated */
    int input, output, failure; /* file descriptors; errors are written to failure */
    unsigned uid, gid;          /* the parent's */
};

struct inside_failure {
    const char *what; /* static text in the parent, at the same address */
    int error;
};

_Noreturn void inside_run(const struct inside *in);
/* Installs the system call filter. Returns false with errno set on failure. */
bool inside_filter(bool full);

#endif
