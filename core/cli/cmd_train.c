#include "base/log.h"
#include "cli/cli.h"
#include "dist/ranks.h"
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
    signals_catch();
    const bool loaded = !config_load(&c, file, overrides, n, &e);
    bool done;
    tare_status status = loaded ? TARE_OK : e.code;
    status = ranks_start(&(struct ranks_options){.ranks = loaded ? c.dist.ranks : 0,
                                                 .where = loaded ? config_where(&c, "dist", "ranks") : "",
                                                 .timeout_s = loaded ? c.dist.timeout_s : 60,
                                                 .library = loaded ? c.dist.communicator : "auto",
                                                 .device_memory = loaded && !strcmp(c.run.device, "cuda")},
                         status, &done, &e);
    if (!status && !done) status = train_run(&c, resume, &e);
    if (loaded) config_free(&c);
    return ranks_end(status, &e);
}
