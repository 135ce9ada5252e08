#include "base/log.h"
#include "cli/cli.h"
#include "lab/report/planning.h"
#include "lab/report/report.h"
#include "observe/run_data.h"
#include "preflight/preflight.h"
#include "sweep/sweep.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char sweep_usage[] =
    "usage: tare sweep CONFIG [section.key=value ...] [--retry] [--dry-run] [--slurm]\n"
    "       tare sweep CONFIG --table [--metric NAME] [--baseline key=value[,...]] [--csv | --latex]\n"
    "       tare sweep CONFIG --plan [--difference X] [--power P] [--alpha A] [--metric NAME] [--baseline ...]\n"
    "       tare sweep --suggest PLUGIN\n"
    "Trains one run for each cell of the grid in [sweep]; the same command continues a sweep that was stopped.\n"
    "  --retry      run cells again that failed before\n"
    "  --dry-run    check and print the cells (with --slurm: the script) and run nothing\n"
    "  --slurm      write and submit an sbatch array instead of starting local processes\n"
    "  --table      print the results so far: mean, deviation, interval, paired difference to the baseline\n"
    "  --metric     eval/reward, reward/mean:tail, ... (:last :first :mean :max :min :tail); repeatable\n"
    "  --csv        print the table as CSV\n"
    "  --latex      print the table as LaTeX (booktabs)\n"
    "  --plan       compute from the finished cells how many seeds show a mean difference of X with probability P (default\n"
    "               0.8) at level A (default 0.05), and intervals that are valid at every look: the study may stop when they\n"
    "               exclude 0\n"
    "  --until-decided  run cells until all these intervals exclude 0\n"
    "  --suggest    print lines for [sweep] with the parameters that the plugin declares sweepable\n"
    "An axis is a key with several values: estimator.plugin = grpo, bv_blend; run.seed = 1..10;\n"
    "estimator.bv_blend.temperature = log 0.01..1 x 5. pair = KEY, KEY advances two lists together. On the command line:\n"
    "sweep.train.lr=1e-4,2e-4; one value (sweep.run.seed=1) replaces an axis of the file.\n";

enum { METRICS = 16, OVERRIDES = 256 };

struct arguments {
    const char *file, *overrides[OVERRIDES], *metrics[METRICS], *baseline, *suggest, *unexpected;
    int n, n_metrics;
    bool table, csv, latex, dry_run, slurm, retry, plan, until_decided;
    struct study_plan study;
    int64_t cell;
};

/* Reads an option with a value; returns false if arg is not one. */
static bool take_value(struct arguments *a, const char *arg, const char *value, struct err *e)
{
    if (!strcmp(arg, "--metric") && a->n_metrics < METRICS) return a->metrics[a->n_metrics++] = value, true;
    if (!strcmp(arg, "--difference")) return !str_to_double(value, &a->study.difference, e) && a->study.difference > 0;
    if (!strcmp(arg, "--power")) return !str_to_double(value, &a->study.power, e) && a->study.power > 0 && a->study.power < 1;
    if (!strcmp(arg, "--alpha")) return !str_to_double(value, &a->study.alpha, e) && a->study.alpha > 0 && a->study.alpha < 1;
    if (!strcmp(arg, "--baseline")) return a->baseline = value, true;
    if (!strcmp(arg, "--suggest")) return a->suggest = value, true;
    return !strcmp(arg, "--cell") && !str_to_int(value, &a->cell, e) && a->cell >= 0;
}

static bool read_sweep_arguments(int argc, char **argv, struct arguments *a, struct err *e)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--table", &a->table}, {"--csv", &a->csv},     {"--latex", &a->latex}, {"--dry-run", &a->dry_run},
                 {"--slurm", &a->slurm}, {"--retry", &a->retry}, {"--plan", &a->plan},   {"--until-decided", &a->until_decided}};
    for (int i = 1; i < argc; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
            if (!strcmp(argv[i], flags[k].name)) known = *flags[k].flag = true;
        if (known) continue;
        a->unexpected = argv[i];
        if (argv[i][0] == '-') {
            if (i + 1 == argc || !take_value(a, argv[i], argv[i + 1], e)) return false;
            i++;
        } else if (strchr(argv[i], '=')) {
            if (a->n == OVERRIDES) return false;
            a->overrides[a->n++] = argv[i];
        } else if (!a->file) {
            a->file = argv[i];
        } else {
            return false;
        }
        a->unexpected = NULL;
    }
    return a->suggest ? !a->file : a->file != NULL;
}

static tare_status print_table(const struct sweep *s, const struct arguments *a, struct str *out, struct err *e)
{
    OWNED(arena_free) struct arena arena = {0};
    struct sweep_table t = {0};
    arena_init(&arena, "table");
    for (int i = 0; i < a->n_metrics || i == 0; i++) {
        TRY(sweep_table_make(&s->plan, a->n_metrics ? a->metrics[i] : NULL, a->baseline, &arena, &t, e));
        if (i) TRY(str_add(out, "\n", 1, e));
        if (a->plan)
            TRY(planning_markdown(&t, &a->study, out, e));
        else
            TRY((a->csv ? sweep_table_csv : a->latex ? sweep_table_latex : sweep_table_markdown)(&t, out, e));
    }
    return TARE_OK;
}

/* Refuses a baseline that matches no cell before the first run, by making the table without data.
 */
static tare_status check_baseline(const struct sweep *s, const char *baseline, bool needed, struct err *e)
{
    OWNED(arena_free) struct arena arena = {0};
    struct sweep_table t = {0};
    arena_init(&arena, "baseline");
    TRY(arena_new(&arena, &t.runs, s->plan.n_cells + 1, e));
    TRY(err_as_config(sweep_table_make(&s->plan, NULL, baseline, &arena, &t, e), e));
    if (needed && !t.baseline[0])
        FAIL(e, TARE_E_CONFIG, "--until-decided needs a baseline; set --baseline key=value, or baseline in [sweep]");
    return TARE_OK;
}

/* Prints the cells after the checks that precede the first run. */
static tare_status print_cells(struct sweep *s, struct str *out, struct err *e)
{
    TRY(sweep_check_cells(s, 0, s->plan.n_cells, preflight_cell, e));
    for (int64_t i = 0; i < s->plan.n_cells; i++)
        for (int64_t k = 0; s->jobs[i].argv[k]; k++)
            TRY(str_addf(out, e, "%s%s", s->jobs[i].argv[k], s->jobs[i].argv[k + 1] ? " " : "\n"));
    return str_addf(out, e, "%lld cells, %lld at a time, %lld thread%s each\n", (long long)s->plan.n_cells,
                    (long long)s->concurrent, (long long)s->threads, s->threads == 1 ? "" : "s");
}

static tare_status submit_slurm(struct sweep *s, const struct arguments *a, struct str *out, struct err *e)
{
    const bool is_new = !run_data_is_sweep(s->plan.dir);
    if (is_new) TRY(sweep_check_cells(s, 0, s->plan.n_cells, preflight_cell, e));
    if (!a->dry_run || !is_new) {
        TRY(sweep_begin(s, e));
        TRY(sweep_look(s, a->retry, e));
    }
    if (!is_new) TRY(sweep_check_cells(s, 0, s->plan.n_cells, preflight_cell, e));
    if (a->dry_run) return sweep_slurm_script(s, out, e);
    return sweep_slurm_submit(s, e);
}

/* Called after each cell. Returns false if the results cannot be read, for example while a file is
 * being written. */
static bool is_decided(void *ctx, const struct sweep *s)
{
    const struct arguments *a = ctx;
    struct arena arena;
    struct sweep_table t = {0};
    struct err ignored;
    arena_init(&arena, "table");
    const tare_status status = sweep_table_make(&s->plan, a->n_metrics ? a->metrics[0] : NULL, a->baseline, &arena, &t, &ignored);
    const bool decided = !status && planning_decided(&t, a->study.alpha);
    arena_free(&arena);
    return decided;
}

static tare_status run_sweep(const struct arguments *a, struct str *out, struct err *e)
{
    OWNED(sweep_close) struct sweep s = {0};
    if (a->suggest) return sweep_suggest(a->suggest, out, e);
    TRY(sweep_open(&s, a->file, a->overrides, a->n, e));
    TRY(check_baseline(&s, a->baseline, a->until_decided, e));
    if (a->table || a->plan) {
        TRY(sweep_warn_changed(&s, e));
        return print_table(&s, a, out, e);
    }
    for (int i = 0; i < a->n_metrics; i++) TRY(sweep_check_metric(&s, "--metric", a->metrics[i], e));
    if (a->slurm) return submit_slurm(&s, a, out, e);
    if (a->dry_run) return print_cells(&s, out, e);
    const struct sweep_mode mode = {.retry = a->retry,
                                    .cell = a->cell,
                                    .check = preflight_cell,
                                    .enough = a->until_decided ? is_decided : NULL,
                                    .ctx = (void *)(uintptr_t)a};
    TRY(sweep_run(&s, &mode, e));
    return a->cell < 0 ? print_table(&s, a, out, e) : TARE_OK;
}

int cmd_sweep(int argc, char **argv)
{
    struct err e = {0};
    struct arguments a = {.cell = -1, .study = {.difference = NAN, .power = 0.8, .alpha = 0.05}};
    OWNED(str_free) struct str out = {0};
    if (!read_sweep_arguments(argc, argv, &a, &e))
        return a.unexpected ? cli_unexpected(a.unexpected, sweep_usage) : cli_usage(sweep_usage);
    tare_status status = run_sweep(&a, &out, &e);
    if (!status) status = cli_show(&out, &e);
    return cli_end(status, &e);
}
