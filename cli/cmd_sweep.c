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
    "Trains one run for each cell of the grid in [sweep]; a sweep that was stopped continues with the same command.\n"
    "  --retry      cells that failed before, too\n"
    "  --dry-run    checks the cells, prints them (with --slurm: the script) and runs nothing\n"
    "  --slurm      writes and submits an sbatch array in place of local processes\n"
    "  --table      the results so far: mean, deviation, interval, paired difference to the baseline\n"
    "  --metric     eval/reward, reward/mean:tail, ... (:last :first :mean :max :min :tail); may be given several times\n"
    "  --csv        the table as CSV\n"
    "  --latex      the table as LaTeX (booktabs)\n"
    "  --plan       from the cells that are done: the seeds that show a mean difference of X with probability P (default 0.8) at level A\n"
    "               (default 0.05), and intervals that hold at every look, so that the study may stop when they leave 0\n"
    "  --until-decided  runs cells until all those intervals have left 0\n"
    "  --suggest    lines of [sweep] for the parameters that the plugin declares sweepable\n"
    "An axis is a key with several values: estimator.plugin = grpo, bv_blend; run.seed = 1..10;\n"
    "on the command line: sweep.train.lr=1e-4,2e-4 (one value in place of an axis of the file: sweep.run.seed=1)\n"
    "estimator.bv_blend.temperature = log 0.01..1 x 5; pair = KEY, KEY makes lists advance together.\n";

enum { METRICS = 16, OVERRIDES = 256 };

struct arguments {
    const char *file, *overrides[OVERRIDES], *metrics[METRICS], *baseline, *suggest, *unexpected;
    int n, n_metrics;
    bool table, csv, latex, dry_run, slurm, retry, plan, until_decided;
    struct study_plan study;
    int64_t cell;
};

/* Options with a value; NULL: arg is none of them. */
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

static bool parse(int argc, char **argv, struct arguments *a, struct err *e)
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

/* A baseline that names no cell is refused before the first run: the table is made without any data. */
static tare_status check_baseline(const struct sweep *s, const char *baseline, bool needed, struct err *e)
{
    OWNED(arena_free) struct arena arena = {0};
    struct sweep_table t = {0};
    arena_init(&arena, "baseline");
    TRY(arena_new(&arena, &t.runs, s->plan.n_cells + 1, e));
    TRY(err_as_config(sweep_table_make(&s->plan, NULL, baseline, &arena, &t, e), e));
    if (needed && !t.baseline[0])
        FAIL(e, TARE_E_CONFIG,
             "--until-decided compares variants with a baseline; name one: --baseline key=value, or baseline in [sweep]");
    return TARE_OK;
}

/* What would be refused before the first run is refused here. */
static tare_status print_cells(struct sweep *s, struct str *out, struct err *e)
{
    TRY(sweep_check_cells(s, 0, s->plan.n_cells, preflight_cell, e));
    for (int64_t i = 0; i < s->plan.n_cells; i++)
        for (int64_t k = 0; s->jobs[i].argv[k]; k++)
            TRY(str_addf(out, e, "%s%s", s->jobs[i].argv[k], s->jobs[i].argv[k + 1] ? " " : "\n"));
    return str_addf(out, e, "%lld cells, %lld at a time, %lld thread%s each\n", (long long)s->plan.n_cells,
                    (long long)s->concurrent, (long long)s->threads, s->threads == 1 ? "" : "s");
}

static tare_status slurm(struct sweep *s, const struct arguments *a, struct str *out, struct err *e)
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

/* Called after each cell. A look that fails (a file that is just being written) decides nothing. */
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

static tare_status run(const struct arguments *a, struct str *out, struct err *e)
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
    if (a->slurm) return slurm(&s, a, out, e);
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
    if (!parse(argc, argv, &a, &e)) return a.unexpected ? cli_unexpected(a.unexpected, sweep_usage) : cli_usage(sweep_usage);
    tare_status status = run(&a, &out, &e);
    if (!status) status = cli_show(&out, &e);
    return cli_end(status, &e);
}
