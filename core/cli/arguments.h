/* CONFIG [--resume] [section.key=value ...] */
#ifndef TARE_CORE_ARGUMENTS_H
#define TARE_CORE_ARGUMENTS_H

#include <stdbool.h>

struct arguments {
    const char *file, *overrides[256]; /* point into argv */
    int n;
    bool resume, help;
};

/* false: they are not of this form. */
bool arguments_read(int argc, char **argv, struct arguments *out);

#endif
