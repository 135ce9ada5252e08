#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/signals.h"
#include "cli/cli.h"
#include "lab/replay/replay.h"

#include <stdlib.h>
#include <string.h>

const char verify_run_usage[] =
    "usage: tare verify-run RUN [--steps A-B] [--sample N] [section.key=value ...]\n"
    "Whether the files of a run are those that it wrote: each is compared with its sum in RUN/chain.jsonl, which was written as the run went, and each\n"
    "line of the chain with the one before it. A bit that changed in any of them is named with its file. RUN is only read.\n"
    "  --steps A-B   make these steps again, from the newest checkpoint before A (or the start), and compare all that they left, to the bit\n"
    "  --sample N    the same for N steps drawn at random\n"
    "Keys for these are such as change no training: model.path=, data.train=, run.plugins= where the files lie elsewhere now.\n"
    "Exit status: 0 all is as it was written, 1 something is not, 2 unknown (no chain.jsonl).\n";

static bool read_steps(const char *text, struct verify_steps *v)
{
    char *end;
    v->first = v->last = strtoll(text, &end, 10);
    if (*end == '-') v->last = strtoll(end + 1, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && v->first > 0 && v->last >= v->first;
}

static bool read_arguments(int argc, char **argv, struct verify_steps *v, const char **keys)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--steps") && i + 1 < argc && read_steps(argv[i + 1], v))
            i++;
        else if (!strcmp(argv[i], "--sample") && i + 1 < argc && !str_to_int(argv[i + 1], &v->sample, NULL) && v->sample > 0)
            i++;
        else if (argv[i][0] != '-' && !v->run)
            v->run = argv[i];
        else if (argv[i][0] != '-' && strchr(argv[i], '=') && v->n_keys < 200)
            keys[v->n_keys++] = argv[i];
        else
            return cli_unexpected(argv[i], verify_run_usage), false;
    }
    v->keys = keys;
    if (v->n_keys && !v->first && !v->sample) return cli_unexpected(keys[0], verify_run_usage), false; /* nothing is trained */
    return v->run || (cli_usage(verify_run_usage), false);
}

/* whole: everything that was asked for was looked at. */
static tare_status print(struct verify_result *r, const char *path, bool whole, struct err *e)
{
    char run[FS_PATH];
    snprintf(run, sizeof run, "%s", path);
    str_disarm(run, (int64_t)strlen(run));
    str_disarm(r->text.data, r->text.size);
    cli_add(&r->text);
    if (r->begins) printf("note: the chain begins after step %lld; what was written before has no sums\n", (long long)r->begins);
    if (r->pruned) printf("note: older checkpoints that checkpoint.keep has removed: %lld\n", (long long)r->pruned);
    printf("%s: %lld links, %lld files and %lld lines of metrics.jsonl are as they were written; last step %lld, last link %s\n",
           run, (long long)r->links, (long long)r->files, (long long)r->lines, (long long)r->last, r->head);
    if (r->faults)
        printf("%s: NOT as it was written: %lld %s above\n", run, (long long)r->faults, r->faults == 1 ? "finding" : "findings");
    else if (whole && r->unlinked)
        printf("%s: up to step %lld all is as it was written; what came after it has no sums\n", run, (long long)r->last);
    else
        printf(whole ? "%s: all is as it was written\n" : "%s: not everything could be checked\n", run);
    if (r->faults) log_message(LOG_ERROR, "%s: not as it was written; the findings stand in the output", run);
    return cli_flush(e);
}

int cmd_verify_run(int argc, char **argv)
{
    struct err e = {0};
    struct verify_steps v = {0};
    struct verify_result r = {0};
    const char *keys[200];
    if (!read_arguments(argc, argv, &v, keys)) return 2;
    json_end_with(2);
    signals_catch();
    tare_status status = replay_verify_sums(v.run, &r, &e);
    if (!status && (v.first || v.sample)) status = verify_replay(&v, &r, &e);
    struct err why = {0};
    if ((!status || r.links) && print(&r, v.run, !status, &why) && !status) {
        e = why;
        status = why.code;
    }
    str_free(&r.text);
    if (status) log_error(&e);
    return status == TARE_E_CANCELLED ? err_exit_code(status) : status ? 2 : r.faults > 0;
}
