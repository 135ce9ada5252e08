/* CONFIG | RUN [--resume] [--allow-change] [--until STEP] [section.key=value ...] */
#ifndef TARE_CLI_ARGUMENTS_H
#define TARE_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

struct arguments {
    const char *file, *overrides[256]; /* point into argv */
    int n;
    bool resume, allow_change, help;
    int64_t until;                        /* of train; 0: not given */
    char run_config[4200], run_dir[4200]; /* of a run's folder in CONFIG's place */
};

/* false: they are not of this form, and the error has been printed. A run's folder means its config.ini, with run.dir set to the folder. */
bool arguments_read(int argc, char **argv, struct arguments *out);

#endif
