/* tare eval CONFIG: measures accuracy on a task. */
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
    "Samples eval.samples completions of every row of data.eval, verifies them, and prints a Markdown table: pass@1 (avg@k),\n"
    "unbiased pass@k, 95 % intervals and lengths, in total and by level, subject and difficulty. It writes samples.jsonl,\n"
    "questions.jsonl and results.json to the folder eval.out; the same command resumes an interrupted evaluation. Details are in\n"
    "docs/evaluation.md. Example:\n"
    "  tare eval configs/eval/gsm8k.ini model.path=FOLDER eval.samples=4\n"
    "CONFIG may be the folder of a run: then its config.ini is used, and its newest checkpoint is the model.\n"
    "With --checkpoints it prints accuracy and length by difficulty over the checkpoints of one or more runs, as a table and as\n"
    "a figure (difficulty.html). The buckets come from an estimate by the model before training, or from eval.difficulty.\n"
    "  --checkpoints RUN       the folder of a run; repeatable\n"
    "  --steps LIST            steps to evaluate; 0 is the model that the run started from (default: all checkpoints)\n"
    "  --estimate-samples N    samples per question for the estimate (default 16)\n"
    "  --base MODEL            the model of step 0 if it is not model.path of RUN/config.ini\n";

struct arguments {
    const char *overrides[258], *file; /* two are reserved for model.path and run.dir */
    int n;
    struct eval_steps steps;
    /* model.path=RUN and run.dir=RUN if CONFIG is the folder of a run */
    char model[FS_PATH + 16], dir[FS_PATH + 16];
};

/* Sets an option to the value in the next argument. */
static tare_status set_eval_option(struct arguments *a, const char *name, const char *value, struct err *e)
{
    if (!strcmp(name, "--checkpoints")) {
        if (a->steps.n_runs == EVAL_RUNS) FAIL(e, TARE_E_CONFIG, "--checkpoints: too many runs: at most %d", EVAL_RUNS);
        a->steps.runs[a->steps.n_runs++] = value;
        return TARE_OK;
    }
    if (!strcmp(name, "--steps")) return eval_steps_parse(value, &a->steps, e);
    if (!strcmp(name, "--base")) {
        a->steps.base = value;
        return TARE_OK;
    }
    if (str_to_int(value, &a->steps.estimate_samples, e) || a->steps.estimate_samples < 1 || a->steps.estimate_samples > 100000)
        FAIL(e, TARE_E_CONFIG, "--estimate-samples %s: must be from 1 to 100000", value);
    return TARE_OK;
}

static bool is_option(const char *arg)
{
    return !strcmp(arg, "--checkpoints") || !strcmp(arg, "--steps") || !strcmp(arg, "--base") || !strcmp(arg, "--estimate-samples");
}

/* Returns 0 to continue, otherwise the exit status plus one. */
static int read_eval_arguments(struct arguments *a, int argc, char **argv)
{
    struct err e = {0};
    *a = (struct arguments){.steps = {.estimate_samples = 16}};
#ifdef TARE_LAB
    a->steps.figure = report_difficulty;
#endif
    for (int i = 1; i < argc; i++) {
        if (is_option(argv[i]) && i + 1 < argc) {
            const tare_status s = set_eval_option(a, argv[i], argv[i + 1], &e);
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

/* Evaluates the newest model of a run's folder, not the model that the run started from, and writes
 * the results into this folder even if it was moved or copied since its config.ini was written.
 * Keys on the command line follow these two, so they override them. */
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

static tare_status run_eval(struct config *c, const struct arguments *a, struct err *e)
{
    struct comm comm;
    OWNED(str_free) struct str table = {0};
    TRY(comm_open(c->dist.ranks, &comm, e));
    /* with --checkpoints the models come from the runs; the context of the first bounds the answers
     */
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
    const int stop = read_eval_arguments(&a, argc, argv);
    if (stop) return stop - 1;
    evaluate_run(&a);
    signals_catch();
    watch_continue_by("the same command resumes from the saved answers");
    const bool loaded = !config_load(&c, a.file, a.overrides, a.n, &e);
    if (loaded) config_use_log_level(&c);
    tare_status status = ranks_start_of(loaded ? &c : NULL, loaded ? TARE_OK : e.code, &done, &e);
    if (!status && !done) status = run_eval(&c, &a, &e);
    return ranks_end(status, &e);
}
