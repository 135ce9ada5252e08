/* The arguments CONFIG | RUN [--resume] [--allow-change] [--until STEP] [section.key=value ...]. */
#ifndef TARE_CLI_ARGUMENTS_H
#define TARE_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

struct arguments {
    const char *file, *overrides[256]; /* point into argv */
    int n;
    bool resume, allow_change, help;
    int64_t until;                        /* of train; 0: not given */
    char run_config[4200], run_dir[4200]; /* RUN/config.ini, run.dir=RUN */
};

/* Returns false after printing an error if the arguments are invalid. The folder RUN stands for
 * RUN/config.ini with run.dir=RUN. */
bool arguments_read(int argc, char **argv, struct arguments *out);

#endif
