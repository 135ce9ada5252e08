#include "base/log.h"
#include "base/signals.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "dist/ranks.h"
#include "loop/train.h"
#include "preflight/preflight.h"

#include <stdio.h>
#include <string.h>

const char train_usage[] =
    "usage: tare train CONFIG [--resume [--allow-change]] [--until STEP] [section.key=value ...]\n"
    "       tare train RUN --resume\n"
    "Trains a model by reinforcement learning with verifiable rewards (`tare config docs` describes every key).\n"
    "  --resume         continue from the last complete checkpoint of run.dir, or of the folder RUN with the configuration it\n"
    "                   was started with\n"
    "  --allow-change   with --resume: accept a configuration that changes the training from here on; RUN/config.ini records the\n"
    "                   previous values\n"
    "  --until STEP     stop after STEP with a checkpoint, as if interrupted; the schedule remains that of train.steps\n"
    "One argument selects another estimator:\n"
    "  tare train configs/quickstart.ini estimator.plugin=grpo\n"
    "or the conventions of another trainer (verl, trl, nemo, openrlhf, slime):\n"
    "  tare train configs/quickstart.ini as=verl\n";

int cmd_train(int argc, char **argv)
{
    struct err e = {0};
    OWNED(config_free) struct config c = {0};
    struct arguments a;
    if (!arguments_read(argc, argv, &a)) return cli_usage(train_usage);
    signals_catch();
    const bool loaded = !config_load(&c, a.file, a.overrides, a.n, &e);
    if (loaded) config_use_log_level(&c);
    bool done;
    tare_status status = ranks_start_of(loaded ? &c : NULL, loaded ? TARE_OK : e.code, &done, &e);
    if (!status && !done)
        status = train_run(
            &c, &(struct train_start){.resume = a.resume, .allow_change = a.allow_change, .until = a.until, .make = preflight_make},
            &e);
    return ranks_end(status, &e);
}
