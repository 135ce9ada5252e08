#include "base/log.h"
#include "base/signals.h"
#include "cli/cli.h"
#include "lab/replay/replay.h"
#include "preflight/preflight.h"

#include <string.h>

const char fork_usage[] =
    "usage: tare fork RUN@STEP [section.key=value ...] [--run-dir NEW]\n"
    "Makes a new run with the first STEP steps of RUN, bit by bit, and continues it with other keys. Both use the same random\n"
    "numbers after STEP, so all differences come from the keys (`tare diff RUN NEW`). Without keys NEW repeats RUN.\n"
    "  --run-dir NEW   folder of the new run (default: RUN-fork-STEP)\n"
    "If RUN has no checkpoint of STEP, the steps after its newest earlier checkpoint are recomputed. RUN is not changed. Seed, data,\n"
    "model, rollout.prompts and rollout.group_size cannot change. NEW is an ordinary run: tare train NEW --resume continues it.\n";

struct request {
    const char *from, *to, *keys[256];
    int n;
};

static tare_status make_fork(const struct request *q, struct fork *f, struct err *e)
{
    TRY(fork_open(f, q->from, q->to, q->keys, q->n, e));
    config_use_log_level(&f->after);
    preflight_warn(&f->after);
    TRY(preflight(&f->after, NULL, e));
    return fork_make(f, e);
}

static bool read_request(int argc, char **argv, struct request *q)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--run-dir") && i + 1 < argc)
            q->to = argv[++i];
        else if (!strncmp(argv[i], "run.dir=", 8))
            q->to = argv[i] + 8;
        else if (argv[i][0] != '-' && !q->from)
            q->from = argv[i];
        else if (argv[i][0] != '-' && strchr(argv[i], '=') && q->n < 255)
            q->keys[q->n++] = argv[i];
        else
            return cli_unexpected(argv[i], fork_usage), false;
    }
    return q->from || (cli_usage(fork_usage), false);
}

int cmd_fork(int argc, char **argv)
{
    struct err e = {0};
    struct request q = {0};
    OWNED(fork_close) struct fork f = {0};
    if (!read_request(argc, argv, &q)) return 2;
    signals_catch();
    tare_status status = make_fork(&q, &f, &e);
    if (!status) status = replay_continue(f.to, &e);
    return cli_end(status, &e);
}
