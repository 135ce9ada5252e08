/* What happens in the child between its creation and the program. Only system calls: the parent may have had any number of threads. */
#ifndef TARE_VERIFIERS_CODE_INSIDE_H
#define TARE_VERIFIERS_CODE_INSIDE_H

#include "sandbox.h"

struct inside {
    const struct sandbox *sandbox;
    const char *program;        /* ended by NUL */
    int input, output, failure; /* file descriptors; what goes wrong is written to failure */
    unsigned uid, gid;          /* of the parent */
};

struct inside_failure {
    const char *what; /* static text of the parent's, which has the same address */
    int error;
};

_Noreturn void inside_run(const struct inside *in);
/* The list of system calls. false: errno says why. */
bool inside_filter(bool full);

#endif
