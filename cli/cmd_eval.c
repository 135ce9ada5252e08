/* tare eval CONFIG: accuracy on a task. */
#include "base/fs.h"
#include "base/log.h"
#include "base/signals.h"
#include "cli/cli.h"
#include "dist/ranks.h"
#include "dist/watch.h"
#include "eval/checkpoints.h"
#include "eval/eval.h"
#include "settle/settle.h"
#include "sft/sft.h"
#ifdef TARE_LAB
#include "lab/report/report.h"
#endif

#include <stdio.h>
#include <string.h>

const char eval_usage[] =
    "usage: tare eval CONFIG [section.key=value ...]\n"
    "       tare eval CONFIG --checkpoints RUN [...] [--steps 0,30,60] [--estimate-samples 16] [--base MODEL] [section.key=value ...]\n"
    "Samples eval.samples completions of every row of data.eval, judges them, and prints a Markdown table: pass@1 (avg@k), unbiased\n"
    "pass@k, 95 % intervals, lengths, and the same by level, subject and difficulty. The folder eval.out gets samples.jsonl,\n"
    "questions.jsonl and results.json; the same command continues where it was interrupted. docs/evaluation.md explains all of it.\n"
    "  tare eval configs/eval/gsm8k.ini model.path=FOLDER eval.samples=4\n"
    "CONFIG may be the folder of a run: its config.ini counts, and its newest checkpoint is the model.\n"
    "With --checkpoints: accuracy and length by difficulty over the checkpoints of one or more runs, as a table and as a figure\n"
    "(difficulty.html); the buckets come from an estimate by the model before training, or from eval.difficulty.\n"
    "  --checkpoints RUN       the folder of a run; may be given for several runs\n"
    "  --steps LIST            which steps, 0 for the model that the run started from; default: all checkpoints\n"
    "  --estimate-samples N    samples per question for the estimate (16)\n"
    "  --base MODEL            the model of step 0, when model.path of RUN/config.ini is not it\n";

struct arguments {
    const char *overrides[258], *file; /* two are kept for model.path and run.dir */
    int n;
    struct eval_steps steps;
    char model[FS_PATH + 16], dir[FS_PATH + 16]; /* model.path=RUN and run.dir=RUN, of a run's folder in CONFIG's place */
};

/* The value of an option, from the next argument. */
static tare_status option(struct arguments *a, const char *name, const char *value, struct err *e)
{
    if (!strcmp(name, "--checkpoints")) {
        if (a->steps.n_runs == EVAL_RUNS) FAIL(e, TARE_E_CONFIG, "--checkpoints: at most %d runs", EVAL_RUNS);
        a->steps.runs[a->steps.n_runs++] = value;
        return TARE_OK;
    }
    if (!strcmp(name, "--steps")) return eval_steps_parse(value, &a->steps, e);
    if (!strcmp(name, "--base")) {
        a->steps.base = value;
        return TARE_OK;
    }
    if (str_to_int(value, &a->steps.estimate_samples, e) || a->steps.estimate_samples < 1 || a->steps.estimate_samples > 100000)
        FAIL(e, TARE_E_CONFIG, "--estimate-samples %s: a number from 1 to 100000", value);
    return TARE_OK;
}

static bool is_option(const char *arg)
{
    return !strcmp(arg, "--checkpoints") || !strcmp(arg, "--steps") || !strcmp(arg, "--base") || !strcmp(arg, "--estimate-samples");
}

/* 0: continue; otherwise the exit status plus one. */
static int parse(struct arguments *a, int argc, char **argv)
{
    struct err e = {0};
    *a = (struct arguments){.steps = {.estimate_samples = 16}};
#ifdef TARE_LAB
    a->steps.figure = report_difficulty;
#endif
    for (int i = 1; i < argc; i++) {
        if (is_option(argv[i]) && i + 1 < argc) {
            const tare_status s = option(a, argv[i], argv[i + 1], &e);
            if (s) return log_error(&e), err_exit_code(s) + 1;
            i++;
        } else if (!a->file && argv[i][0] != '-' && !strchr(argv[i], '=')) {
            a->file = argv[i];
        } else if (argv[i][0] != '-' && strchr(argv[i], '=') && a->n < 256) {
            a->overrides[a->n++] = argv[i];
        } else {
            return cli_unexpected(argv[i], eval_usage) + 1;
        }
    }
    if (!a->file || (!a->steps.n_runs && (a->steps.n_steps || a->steps.base))) return cli_usage(eval_usage) + 1;
    return 0;
}

/* A run's folder in CONFIG's place: the question is how good its own model is, not the one that it started from, and the answer belongs into
 * this folder, also where it was moved or copied since its config.ini was written. The command line's own keys come later, so they count. */
static void evaluate_run(struct arguments *a)
{
    if (!fs_is_dir(a->file)) return;
    snprintf(a->model, sizeof a->model, "model.path=%.4000s", a->file);
    snprintf(a->dir, sizeof a->dir, "run.dir=%.4000s", a->file);
    memmove(a->overrides + 2, a->overrides, (size_t)a->n * sizeof *a->overrides);
    a->overrides[0] = a->model;
    a->overrides[1] = a->dir;
    a->n += 2;
}

static tare_status run(struct config *c, const struct arguments *a, struct err *e)
{
    struct comm comm;
    OWNED(str_free) struct str table = {0};
    TRY(comm_open(c->dist.ranks, &comm, e));
    /* of --checkpoints every model comes from the runs; the first one's context bounds the answers */
    tare_status s = TARE_OK;
    if (a->steps.n_runs && !fs_is_dir(c->model.path)) s = config_set(c, "model", "path", a->steps.runs[0], "--checkpoints", e);
    if (!s) s = settle_ranks(c, &comm, e);
    if (!s) s = a->steps.n_runs ? eval_steps_run(c, &a->steps, &comm, &table, e) : eval_run(c, warm_start, &comm, &table, e);
    if (!s) s = cli_show(&table, e);
    comm.free(&comm);
    return s;
}

int cmd_eval(int argc, char **argv)
{
    struct err e = {0};
    OWNED(config_free) struct config c = {0};
    struct arguments a;
    bool done;
    const int stop = parse(&a, argc, argv);
    if (stop) return stop - 1;
    evaluate_run(&a);
    signals_catch();
    watch_continue_by("the same command goes on with the answers that are saved");
    const bool loaded = !config_load(&c, a.file, a.overrides, a.n, &e);
    if (loaded) config_use_log_level(&c);
    tare_status status = ranks_start_of(loaded ? &c : NULL, loaded ? TARE_OK : e.code, &done, &e);
    if (!status && !done) status = run(&c, &a, &e);
    return ranks_end(status, &e);
}
