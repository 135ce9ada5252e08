/* tare ladder: trains small reference tasks and compares the results with a known range.
 *
 * A rung is configs/ladder/RUNG.ini. Its band in configs/ladder/bands.csv has the lines
 * rung,seed,before,after for 20 seeds of GRPO (fewer if the rung takes hours; `rung,,,` if none was
 * measured). A run of a correct program is below all 20 with probability 1/21, whatever their
 * distribution, and above all of them with the same probability. */
#include "base/fs.h"
#include "base/log.h"
#include "base/program.h"
#include "cli/cli.h"
#include "lab/report/report.h"
#include "sft/sft.h"
#include "sweep/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char ladder_usage[] =
    "usage: tare ladder [RUNG ...] [section.key=value ...] [--seeds A..B] [--list]\n"
    "Trains small tasks that are known to learn, and compares their held-out reward with the band of 20 seeds of GRPO\n"
    "(configs/ladder). A result below the band points to a defect in the code. Keys change the training: estimator.plugin=mine.\n"
    "  RUNG          default: every rung that needs no file. words and gsm8k need a model: model.path=FOLDER\n"
    "  --seeds A..B  default 21..23, which are in no band. Without other keys, a seed of a band must reproduce its value, bit by bit\n"
    "  --list        list the rungs with their bands and train nothing\n"
    "Runs are written to runs/ladder; the same command resumes after an interruption.\n"
    "Exit status: 0 inside or above every band, 1 below a band, or a seed of a band that gives another value.\n";

enum { RUNGS = 32, SEEDS = 64, OVERRIDES = 64, NAME = 48 };

struct rung {
    char name[NAME];
    int64_t seed[SEEDS], n;
    double before, after[SEEDS], low, high; /* before: the start model's, mean over seeds */
};

struct ladder {
    struct rung rungs[RUNGS];
    int64_t n;
    const char *wanted[RUNGS], *overrides[OVERRIDES], *seeds;
    int64_t n_wanted, n_overrides;
    bool list;
    bool bf16;         /* the rung trains in bf16, whose bits depend on the processor */
    bool below, other; /* results */
};

/* ---------------------------------------------------------------- bands.csv */

static struct rung *rung_of(struct ladder *l, const char *name, bool make)
{
    for (int64_t i = 0; i < l->n; i++)
        if (!strcmp(l->rungs[i].name, name)) return &l->rungs[i];
    if (!make || l->n == RUNGS) return NULL;
    struct rung *r = &l->rungs[l->n++];
    snprintf(r->name, sizeof r->name, "%s", name);
    return r;
}

static tare_status read_band_line(struct ladder *l, char *line, const char *path, int number, struct err *e)
{
    char *field[4], *rest = NULL;
    double before, after;
    int n = 0;
    for (char *at = strtok_r(line, ",", &rest); at && n < 4; at = strtok_r(NULL, ",", &rest)) field[n++] = at;
    if ((n != 1 && n < 4) || strlen(field[0]) >= NAME)
        FAIL(e, TARE_E_CORRUPT, "%s:%d: must be rung,seed,before,after", path, number);
    struct rung *r = rung_of(l, field[0], true);
    if (r && n == 1) return TARE_OK; /* without a band */
    if (!r || r->n == SEEDS)
        FAIL(e, TARE_E_RANGE, "%s:%d: too many lines: at most %d rungs and %d seeds", path, number, RUNGS, SEEDS);
    if (str_to_int(field[1], &r->seed[r->n], e) || str_to_double(field[2], &before, e) || str_to_double(field[3], &after, e))
        return err_prefix(e, "%s:%d", path, number);
    r->low = r->n ? fmin(r->low, after) : after;
    r->high = r->n ? fmax(r->high, after) : after;
    r->before += before;
    r->after[r->n++] = after;
    return TARE_OK;
}

/* Reads bands.csv, which is in the folder of the rungs, in the source tree and when installed. */
static tare_status read_bands(struct ladder *l, struct err *e)
{
    char common[FS_PATH], folder[FS_PATH], path[FS_PATH], *rest = NULL;
    struct str text = {0};
    int number = 1;
    TRY(program_builtin_config(common, "ladder/common", e));
    fs_dirname(folder, common);
    TRY(fs_join(path, folder, "bands.csv", e));
    TRY(fs_read_all(path, &text, e));
    tare_status status = TARE_OK;
    char *line = text.data ? strtok_r(text.data, "\n", &rest) : NULL; /* the header */
    while (!status && line && (line = strtok_r(NULL, "\n", &rest))) status = read_band_line(l, line, path, ++number, e);
    str_free(&text);
    for (int64_t i = 0; i < l->n; i++)
        if (l->rungs[i].n) l->rungs[i].before /= (double)l->rungs[i].n;
    return status;
}

/* ---------------------------------------------------------------- a rung */

static int by_reward(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tare_status print_verdict(struct ladder *l, const struct rung *r, const struct sweep_row *row, struct str *out,
                                 struct err *e)
{
    double sorted[SEEDS];
    int64_t n = 0;
    for (int64_t c = 0; c < row->n_cells && n < SEEDS; c++)
        if (!isnan(row->x[c])) sorted[n++] = row->x[c];
    if (!n) FAIL(e, TARE_E_STATE, "%s: missing: no run has a held-out reward", r->name);
    qsort(sorted, (size_t)n, sizeof *sorted, by_reward);
    const double median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    const char *verdict = median < r->low    ? "below the band: suspect a defect in the code"
                          : median > r->high ? "above the band"
                                             : "inside the band";
    l->below = l->below || (r->n && median < r->low);
    if (r->n)
        TRY(str_addf(out, e, "%-11s start %.3f  band %.3f to %.3f  runs", r->name, r->before, r->low, r->high));
    else
        TRY(str_addf(out, e, "%-11s no band measured  runs", r->name));
    for (int64_t i = 0; i < n; i++) TRY(str_addf(out, e, " %.3f", sorted[i]));
    return str_addf(out, e, "%s%s\n", r->n ? "  " : "", r->n ? verdict : "");
}

/* Compares a run whose seed is one of the band's: it is the same computation. */
static tare_status compare_again(struct ladder *l, const struct rung *r, const struct sweep_plan *p, const struct sweep_row *row,
                                 struct str *out, struct err *e)
{
    const int64_t axis = sweep_plan_axis(p, "run.seed");
    for (int64_t c = 0; c < row->n_cells && axis >= 0 && !l->n_overrides; c++) {
        int64_t seed = -1;
        if (isnan(row->x[c]) || str_to_int(p->cells[row->cells[c]].value[axis], &seed, NULL)) continue;
        for (int64_t i = 0; i < r->n; i++) {
            if (r->seed[i] != seed) continue;
            const bool same = r->after[i] == row->x[c];
            l->other = l->other || (!same && !l->bf16);
            TRY(str_addf(out, e, "  seed %lld: %s\n", (long long)seed,
                         same      ? "equal to bands.csv, bit by bit"
                         : l->bf16 ? "differs from bands.csv, which is possible in bf16 on another kind of processor"
                                   : "differs from bands.csv: this program computes something else"));
        }
    }
    return TARE_OK;
}

/* makes: true if the rung makes its start model; otherwise the user must name one. */
static tare_status makes_its_model(const char *rung, bool *makes, struct err *e)
{
    struct config c;
    char file[FS_PATH];
    snprintf(file, sizeof file, "builtin:ladder/%s", rung);
    TRY(config_load(&c, file, NULL, 0, e));
    *makes = c.model.warm_start && *c.model.warm_start;
    config_free(&c);
    return TARE_OK;
}

/* Checks that the files of a rung exist; its first lines say where to get them. */
static tare_status check_rung_files(const struct config *c, const char *rung, struct err *e)
{
    const struct {
        const char *key, *path;
    } needs[] = {{"model.path", c->model.path}, {"data.train", c->data.train}, {"data.eval", c->data.eval}};
    for (int i = 0; i < 3; i++) {
        const char *path = needs[i].path ? needs[i].path : "";
        if (strncmp(path, "builtin:", 8) && !strpbrk(path, ",*?[") && !fs_exists(path))
            FAIL(e, TARE_E_CONFIG, "%s: %s is missing; set %s=PATH. The first lines of configs/ladder/%s.ini say where to get it",
                 rung, *path ? path : needs[i].key, needs[i].key, rung);
    }
    return TARE_OK;
}

/* Makes the start model of all seeds with seed 1, regardless of which seed is run first. */
static tare_status make_start(struct ladder *l, const char *rung, const char **overrides, int64_t n, struct err *e)
{
    OWNED(config_free) struct config c = {0};
    char file[FS_PATH];
    snprintf(file, sizeof file, "builtin:ladder/%s", rung);
    overrides[n] = "run.seed=1";
    TRY(config_load(&c, file, overrides, n + 1, e));
    const bool makes = c.model.warm_start && *c.model.warm_start;
    l->bf16 = c.model.dtype == PRECISION_BF16;
    return makes ? warm_start(&c, e) : check_rung_files(&c, rung, e);
}

/* Runs a rung. Runs with other keys go to a separate folder. */
static tare_status run_rung(struct ladder *l, const struct rung *r, struct str *out, struct err *e)
{
    const char *overrides[OVERRIDES + 4];
    char file[FS_PATH], seeds[80], dir[200], name[80];
    uint64_t keys = 0;
    int64_t n = 0;
    OWNED(sweep_close) struct sweep s = {0};
    struct sweep_table t = {0};
    for (; n < l->n_overrides; n++) {
        overrides[n] = l->overrides[n];
        keys = fs_hash(overrides[n], (int64_t)strlen(overrides[n]), keys);
    }
    snprintf(file, sizeof file, "builtin:ladder/%s", r->name);
    snprintf(seeds, sizeof seeds, "sweep.run.seed=%s", l->seeds ? l->seeds : "21..23");
    snprintf(name, sizeof name, "sweep.name=%s", r->name);
    if (n)
        snprintf(dir, sizeof dir, "sweep.dir=runs/ladder/%s-%08x", r->name, (unsigned)keys);
    else
        snprintf(dir, sizeof dir, "sweep.dir=runs/ladder/%s", r->name);
    TRY(make_start(l, r->name, overrides, n, e));
    overrides[n++] = seeds;
    overrides[n++] = name;
    overrides[n++] = dir;
    TRY(sweep_open(&s, file, overrides, n, e));
    TRY(sweep_run(&s, &(struct sweep_mode){.cell = -1}, e));
    TRY(sweep_table_make(&s.plan, NULL, "", &s.arena, &t, e));
    if (t.n_rows != 1) FAIL(e, TARE_E_CONFIG, "%s: invalid rung: the seed must be its only axis", r->name);
    TRY(print_verdict(l, r, &t.rows[0], out, e));
    return compare_again(l, r, &s.plan, &t.rows[0], out, e);
}

/* ---------------------------------------------------------------- the verb */

static tare_status list_rungs(const struct ladder *l, struct str *out, struct err *e)
{
    for (int64_t i = 0; i < l->n; i++) {
        const struct rung *r = &l->rungs[i];
        if (r->n)
            TRY(str_addf(out, e, "%-11s start %.3f  band of %lld seeds: %.3f to %.3f\n", r->name, r->before, (long long)r->n,
                         r->low, r->high));
        else
            TRY(str_addf(out, e, "%-11s no band measured\n", r->name));
    }
    return TARE_OK;
}

static tare_status check_arguments(struct ladder *l, struct err *e)
{
    for (int64_t i = 0; i < l->n_wanted; i++)
        if (!rung_of(l, l->wanted[i], false))
            FAIL(e, TARE_E_CONFIG, "%s: unknown rung; `tare ladder --list` lists the rungs", l->wanted[i]);
    if (l->list && (l->n_overrides || l->seeds)) FAIL(e, TARE_E_CONFIG, "--list trains nothing; remove the keys and --seeds");
    return TARE_OK;
}

/* Runs the named rungs, or those that need no file. */
static tare_status run_rungs(struct ladder *l, struct str *out, struct err *e)
{
    for (int64_t i = 0; i < (l->n_wanted ? l->n_wanted : l->n); i++) {
        const struct rung *r = l->n_wanted ? rung_of(l, l->wanted[i], false) : &l->rungs[i];
        bool run = true;
        if (!l->n_wanted) TRY(makes_its_model(r->name, &run, e));
        if (!run)
            log_info("%s is skipped: it needs a model (tare ladder %s model.path=FOLDER)", r->name, r->name);
        else
            TRY(run_rung(l, r, out, e));
        if (out->size) TRY(cli_show(out, e));
        str_clear(out);
    }
    return TARE_OK;
}

static tare_status run_ladder(struct ladder *l, struct err *e)
{
    OWNED(str_free) struct str out = {0};
    TRY(check_arguments(l, e));
    TRY(l->list ? list_rungs(l, &out, e) : run_rungs(l, &out, e));
    return out.size ? cli_show(&out, e) : TARE_OK;
}

static bool read_ladder_arguments(int argc, char **argv, struct ladder *l, const char **bad)
{
    for (int i = 1; i < argc; i++) {
        *bad = argv[i];
        if (!strcmp(argv[i], "--list"))
            l->list = true;
        else if (!strcmp(argv[i], "--seeds") && i + 1 < argc)
            l->seeds = argv[++i];
        else if (argv[i][0] == '-')
            return false;
        else if (strchr(argv[i], '=') && l->n_overrides < OVERRIDES)
            l->overrides[l->n_overrides++] = argv[i];
        else if (!strchr(argv[i], '=') && l->n_wanted < RUNGS)
            l->wanted[l->n_wanted++] = argv[i];
        else
            return false;
    }
    return true;
}

int cmd_ladder(int argc, char **argv)
{
    struct err e = {0};
    struct ladder *l;
    const char *bad = "";
    int code;
    if (mem_new((int64_t)sizeof *l, (void **)&l, &e)) {
        log_error(&e);
        return 1;
    }
    if (!read_ladder_arguments(argc, argv, l, &bad)) {
        mem_free(l);
        return cli_unexpected(bad, ladder_usage);
    }
    tare_status status = read_bands(l, &e);
    if (!status) status = run_ladder(l, &e);
    if (status) log_error(&e);
    code = status ? err_exit_code(status) : l->below || l->other;
    mem_free(l);
    return code;
}
