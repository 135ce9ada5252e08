#include "base/log.h"
#include "base/signals.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "dist/ranks.h"
#include "loop/run.h"
#include "sft/sft.h"

#include <stdio.h>
#include <string.h>

const char train_usage[] =
    "usage: tare train CONFIG [--resume] [section.key=value ...]\n"
    "Reinforcement learning with verifiable rewards, as CONFIG says (`tare config docs` explains every key).\n"
    "  --resume   continue from the last complete checkpoint of run.dir\n"
    "Another estimator is one argument: tare train configs/quickstart.ini estimator.plugin=grpo\n";

int cmd_train(int argc, char **argv)
{
    struct err e = {0};
    struct config c;
    struct arguments a;
    if (!arguments_read(argc, argv, &a)) return cli_usage(train_usage);
    signals_catch();
    const bool loaded = !config_load(&c, a.file, a.overrides, a.n, &e);
    bool done;
    tare_status status = loaded ? TARE_OK : e.code;
    status = ranks_start(&(struct ranks_options){.ranks = loaded ? c.dist.ranks : 0,
                                                 .where = loaded ? config_where(&c, "dist", "ranks") : "",
                                                 .timeout_s = loaded ? c.dist.timeout_s : 60,
                                                 .library = loaded ? c.dist.communicator : "auto",
                                                 .device_memory = loaded && !strcmp(c.run.device, "cuda")},
                         status, &done, &e);
    if (!status && !done) status = train_run(&c, a.resume, warm_start, &e);
    if (loaded) config_free(&c);
    return ranks_end(status, &e);
}
