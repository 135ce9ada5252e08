#include "base/log.h"
#include "cli/cli.h"
#include "loop/run.h"

#include <stdio.h>
#include <string.h>

static const char USAGE[] =
    "usage: tare train CONFIG [--resume] [section.key=value ...]\n"
    "Reinforcement learning with verifiable rewards, as CONFIG says (`tare config docs` explains every key).\n"
    "  --resume   go on from the last complete checkpoint of run.dir\n"
    "A change of the estimator is one argument: tare train configs/quickstart.ini estimator.plugin=grpo\n";

int cmd_train(int argc, char **argv)
{
    struct err e = {0};
    struct config c;
    const char *overrides[256], *file = NULL;
    int n = 0;
    bool resume = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) return fputs(USAGE, stdout) < 0;
        if (!strcmp(argv[i], "--resume"))
            resume = true;
        else if (!file && !strchr(argv[i], '='))
            file = argv[i];
        else if (argv[i][0] != '-' && strchr(argv[i], '=') && n < 256)
            overrides[n++] = argv[i];
        else
            return fputs(USAGE, stderr), 2;
    }
    if (!file) return fputs(USAGE, stderr), 2;
    tare_status status = config_load(&c, file, overrides, n, &e);
    if (!status) {
        status = train_run(&c, resume, &e);
        config_free(&c);
    }
    if (status) log_error(&e);
    return err_exit_code(status);
}
