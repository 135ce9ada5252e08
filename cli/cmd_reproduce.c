#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/signals.h"
#include "cli/cli.h"
#include "lab/replay/replay.h"

#include <stdlib.h>
#include <string.h>

const char reproduce_usage[] =
    "usage: tare reproduce RUN [--steps A-B] [--sample N] [section.key=value ...]\n"
    "Checks the files of a run against the checksums that the run recorded in RUN/chain.jsonl, and each line of the chain against\n"
    "the previous line. Every file with a changed bit is named. RUN is only read.\n"
    "  --steps A-B   recompute these steps from the newest checkpoint before A (or the start), and compare their records bit by bit\n"
    "  --sample N    recompute and compare N random steps\n"
    "Keys may only name files that have moved: model.path=, data.train=, run.plugins=.\n"
    "Exit status: 0 all files and steps are intact, 1 some are not, 2 not everything could be checked.\n";

static bool read_steps(const char *text, struct reproduce_request *q)
{
    char *end;
    q->first = q->last = strtoll(text, &end, 10);
    if (*end == '-') q->last = strtoll(end + 1, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && q->first > 0 && q->last >= q->first;
}

static bool read_reproduce_arguments(int argc, char **argv, struct reproduce_request *q, const char **keys)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--steps") && i + 1 < argc && read_steps(argv[i + 1], q))
            i++;
        else if (!strcmp(argv[i], "--sample") && i + 1 < argc && !str_to_int(argv[i + 1], &q->sample, NULL) && q->sample > 0)
            i++;
        else if (argv[i][0] != '-' && !q->run)
            q->run = argv[i];
        else if (argv[i][0] != '-' && strchr(argv[i], '=') && q->n_keys < 200)
            keys[q->n_keys++] = argv[i];
        else
            return cli_unexpected(argv[i], reproduce_usage), false;
    }
    q->keys = keys;
    /* keys need steps */
    if (q->n_keys && !q->first && !q->sample) return cli_unexpected(keys[0], reproduce_usage), false;
    return q->run || (cli_usage(reproduce_usage), false);
}

/* complete: every requested check was made. */
static tare_status print_result(struct reproduce_result *r, const char *path, bool complete, struct err *e)
{
    char run[FS_PATH];
    snprintf(run, sizeof run, "%s", path);
    str_disarm(run, (int64_t)strlen(run));
    str_disarm(r->text.data, r->text.size);
    cli_add(&r->text);
    if (r->begins) printf("note: the chain begins after step %lld; earlier records have no checksums\n", (long long)r->begins);
    if (r->pruned) printf("note: older checkpoints removed by checkpoint.keep: %lld\n", (long long)r->pruned);
    printf("%s: %lld links, %lld files and %lld lines of metrics.jsonl are intact; last step %lld, last link %s\n", run,
           (long long)r->links, (long long)r->files, (long long)r->lines, (long long)r->last, r->head);
    if (r->faults)
        printf("%s: NOT intact: %lld %s above\n", run, (long long)r->faults, r->faults == 1 ? "finding" : "findings");
    else if (complete && r->unlinked)
        printf("%s: intact up to step %lld; later records have no checksums\n", run, (long long)r->last);
    else
        printf(complete ? "%s: intact\n" : "%s: not everything could be checked\n", run);
    if (r->faults) log_message(LOG_ERROR, "%s: not intact; the findings are in the output", run);
    return cli_flush(e);
}

int cmd_reproduce(int argc, char **argv)
{
    struct err e = {0};
    struct reproduce_request q = {0};
    struct reproduce_result r = {0};
    const char *keys[200];
    if (!read_reproduce_arguments(argc, argv, &q, keys)) return 2;
    json_end_with(2);
    signals_catch();
    tare_status status = reproduce_check_files(q.run, &r, &e);
    if (!status && (q.first || q.sample)) status = reproduce_steps(&q, &r, &e);
    struct err why = {0};
    if ((!status || r.links) && print_result(&r, q.run, !status, &why) && !status) {
        e = why;
        status = why.code;
    }
    str_free(&r.text);
    if (status) log_error(&e);
    return status == TARE_E_CANCELLED ? err_exit_code(status) : status ? 2 : r.faults > 0;
}
