/* Turns [sweep] into axes and cells. */
#include "base/fs.h"
#include "base/log.h"
#include "config/kinds.h"
#include "sweep/sweep.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { AXES_MOST = 64, CELLS_MOST = 20000, NAME_MOST = 120 };

static const char *const OPTIONS[] = {"name", "dir", "threads", "concurrent", "metric", "baseline", "pair", "slurm", NULL};

struct grid {
    const struct config *c;
    struct arena *a;
    struct sweep_plan *plan;
    int dial[AXES_MOST];       /* the counter that advances the axis; paired axes share one */
    int64_t sizes[AXES_MOST];  /* length of each counter */
    double *number[AXES_MOST]; /* values of each axis as numbers; NAN: a text */
    int n_dials;
    struct err *e;
};

const char *sweep_option(const struct config *c, const char *key)
{
    for (const struct config_param *p = c->params; p; p = p->next)
        if (!strcmp(p->section, "sweep") && !strcmp(p->key, key)) return p->value;
    return NULL;
}

/* ---------------------------------------------------------------- axes */

static tare_status check_option(struct grid *g, const struct config_param *p)
{
    const char *best = OPTIONS[0];
    for (int i = 0; OPTIONS[i]; i++) {
        if (!strcmp(OPTIONS[i], p->key)) return TARE_OK;
        if (str_distance(p->key, OPTIONS[i]) < str_distance(p->key, best)) best = OPTIONS[i];
    }
    FAIL(g->e, TARE_E_CONFIG, "%s: [sweep] has no option '%s'; did you mean '%s'? An axis is a whole key: section.key = values",
         p->where, p->key, best);
}

static tare_status read_numbers(struct grid *g, int64_t axis)
{
    const struct sweep_axis *x = &g->plan->axes[axis];
    TRY(arena_new(g->a, &g->number[axis], x->n, g->e));
    for (int64_t i = 0; i < x->n; i++)
        if (str_to_double(x->values[i], &g->number[axis][i], NULL)) g->number[axis][i] = NAN;
    return TARE_OK;
}

static tare_status read_axes(struct grid *g)
{
    struct sweep_plan *plan = g->plan;
    TRY(arena_new(g->a, &plan->axes, AXES_MOST, g->e));
    for (int pass = 0; pass < 2; pass++) /* the seed first, because it advances slowest */
        for (const struct config_param *p = g->c->params; p; p = p->next) {
            if (strcmp(p->section, "sweep") || (!strcmp(p->key, "run.seed")) != (pass == 0)) continue;
            if (!strchr(p->key, '.')) {
                TRY(check_option(g, p));
                continue;
            }
            if (!strcmp(p->key, "run.dir") || !strcmp(p->key, "run.name") || !strcmp(p->key, "run.threads"))
                FAIL(g->e, TARE_E_CONFIG, "%s: %s is set by the sweep itself (name, dir and threads of [sweep])", p->where, p->key);
            if (!*p->value) {
                /* switches off an axis of an included file, or of the file by the command line */
                log_info("%s: the axis %s is off", p->where, p->key);
                continue;
            }
            if (plan->n_axes == AXES_MOST) FAIL(g->e, TARE_E_CONFIG, "%s: more than %d axes", p->where, AXES_MOST);
            struct sweep_axis *x = &plan->axes[plan->n_axes];
            g->dial[plan->n_axes++] = -1;
            TRY(arena_strdup(g->a, p->key, -1, (char **)(uintptr_t)&x->key, g->e));
            TRY(sweep_values(p->value, p->where, g->a, &x->values, &x->n, g->e));
            TRY(read_numbers(g, plan->n_axes - 1));
        }
    return TARE_OK;
}

/* Reads one group of "pair" and gives its axes a common dial. */
static tare_status read_pair(struct grid *g, const char *text, const char *where)
{
    const char **keys;
    int64_t n, size = -1;
    TRY(sweep_values(text, where, g->a, &keys, &n, g->e));
    for (int64_t i = 0; i < n; i++) {
        const int64_t axis = sweep_plan_axis(g->plan, keys[i]);
        if (axis < 0) FAIL(g->e, TARE_E_CONFIG, "%s: pair: axis %s is not in [sweep]", where, keys[i]);
        if (g->dial[axis] >= 0) FAIL(g->e, TARE_E_CONFIG, "%s: pair: axis %s is listed twice", where, keys[i]);
        if (size >= 0 && size != g->plan->axes[axis].n)
            FAIL(g->e, TARE_E_CONFIG, "%s: pair: %s has %lld values, %s has %lld; paired lists must have equal lengths", where,
                 keys[0], (long long)size, keys[i], (long long)g->plan->axes[axis].n);
        size = g->plan->axes[axis].n;
        g->dial[axis] = g->n_dials;
    }
    g->sizes[g->n_dials++] = size;
    return TARE_OK;
}

static tare_status read_pairs(struct grid *g)
{
    const char *text = sweep_option(g->c, "pair");
    char *copy;
    if (!text || !*text) return TARE_OK;
    const char *where = config_where(g->c, "sweep", "pair");
    TRY(arena_strdup(g->a, text, -1, &copy, g->e));
    for (char *at = copy; at;) {
        char *bar = strchr(at, '|');
        if (bar) *bar++ = 0;
        TRY(read_pair(g, at, where));
        at = bar;
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- unused and repeated values */

static const char *where_of(const struct grid *g, const char *key)
{
    return config_where(g->c, "sweep", key);
}

/* Compares values as numbers if both are, so that "0.001" equals 1e-3. */
static bool same_value(const struct grid *g, int64_t axis, int64_t i, int64_t j)
{
    const char *const *v = g->plan->axes[axis].values;
    return v[i] == v[j] || g->number[axis][i] == g->number[axis][j] || !strcmp(v[i], v[j]);
}

static tare_status refuse_repeat(struct grid *g, int dial, int64_t i, int64_t j)
{
    const struct sweep_axis *first = NULL;
    int64_t axes = 0;
    for (int64_t k = g->plan->n_axes - 1; k >= 0; k--)
        if (g->dial[k] == dial) {
            first = &g->plan->axes[k];
            axes++;
        }
    if (axes > 1)
        FAIL(
            g->e, TARE_E_CONFIG,
            "%s: pair: places %lld and %lld of the lists of %s and its partners are equal, which would repeat a run; remove one of them",
            where_of(g, "pair"), (long long)i + 1, (long long)j + 1, first->key);
    FAIL(g->e, TARE_E_CONFIG, "%s: the axis %s has %s twice (places %lld and %lld), which would repeat a run; remove one of them",
         where_of(g, first->key), first->key, first->values[i], (long long)i + 1, (long long)j + 1);
}

/* Gives equal values of a paired axis the same text, so that equal cells are found to be one
 * cell. */
static tare_status check_repeats(struct grid *g, int dial)
{
    for (int64_t j = 1; j < g->sizes[dial]; j++)
        for (int64_t i = 0; i < j; i++) {
            bool all = true;
            for (int64_t k = 0; k < g->plan->n_axes; k++) {
                if (g->dial[k] != dial) continue;
                if (same_value(g, k, i, j))
                    g->plan->axes[k].values[j] = g->plan->axes[k].values[i];
                else
                    all = false;
            }
            if (all) return refuse_repeat(g, dial, i, j);
        }
    return TARE_OK;
}

/* Refuses an override without effect, because the sweep or an axis sets its key in every cell. */
static tare_status check_override(const struct sweep_plan *plan, const char *override, const struct config *c, struct err *e)
{
    static const char *const SET[] = {"run.dir", "run.name", "run.threads"};
    const size_t n = strcspn(override, "=");
    for (size_t i = 0; i < sizeof SET / sizeof *SET; i++)
        if (strlen(SET[i]) == n && !strncmp(SET[i], override, n))
            FAIL(
                e, TARE_E_CONFIG,
                "command line: %s has no effect: the sweep sets %s for each cell; the options are sweep.name, sweep.dir and sweep.threads",
                override, SET[i]);
    for (int64_t i = 0; i < plan->n_axes; i++)
        if (strlen(plan->axes[i].key) == n && !strncmp(plan->axes[i].key, override, n))
            FAIL(
                e, TARE_E_CONFIG,
                "command line: %s has no effect: the axis %s of [sweep] (%s) decides; sweep.%s replaces the axis by one value, an empty sweep.%s= switches the axis off",
                override, plan->axes[i].key, config_where(c, "sweep", plan->axes[i].key), override, plan->axes[i].key);
    return TARE_OK;
}

tare_status sweep_check_overrides(const struct sweep_plan *plan, const struct config *c, const char *const *overrides, int64_t n,
                                  struct err *e)
{
    for (int64_t i = 0; i < n; i++) TRY(check_override(plan, overrides[i], c, e));
    return TARE_OK;
}

/* Refuses an axis that no cell uses: its plugin is misspelt or missing. */
static tare_status check_used(struct grid *g)
{
    for (int64_t i = 0; i < g->plan->n_axes; i++) {
        const char *key = g->plan->axes[i].key, *name = strchr(key, '.') + 1;
        bool used = false;
        for (int64_t c = 0; !used && c < g->plan->n_cells; c++) used = g->plan->cells[c].value[i];
        if (used) continue;
        const int kind = (int)(name - 1 - key), size = (int)strcspn(name, ".");
        const char *choice = CONFIG_KINDS[config_kind_of_section(key)].key;
        FAIL(
            g->e, TARE_E_CONFIG,
            "%s: the axis %s changes nothing: no cell runs the %.*s '%.*s'; correct its name, add it to %.*s.%s, or remove the axis (an empty value switches off one of an included file; a plugin of a file is called like the file, or FILE.so:NAME)",
            where_of(g, key), key, kind, key, size, name, kind, key, choice);
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- cells */

/* Returns the value of a key in a cell: from an axis, or from the file. */
static const char *value_in(const struct grid *g, const char **value, const char *key, const char *otherwise)
{
    for (int64_t i = 0; i < g->plan->n_axes; i++)
        if (!strcmp(g->plan->axes[i].key, key)) return value[i];
    return otherwise;
}

/* Compares a plugin's name with a word of a key: a name (with an optional weight after ':'), or a
 * file, FILE.so:NAME or FILE.so whose last part is the name. */
static bool is_named(const char *word, size_t size, const char *name, size_t n)
{
    const char *end = word + size, *last = word;
    for (const char *at = word; at < end; at++) {
        if (*at == '/') last = at + 1;
        if (end - at > 4 && !strncmp(at, ".so:", 4) && isalpha((unsigned char)at[4])) {
            last = at + 4;
            break;
        }
    }
    const size_t most = (size_t)(end - last);
    size_t m = 0;
    while (m < most && last[m] != ':' && strncmp(last + m, ".so", most - m < 3 ? most - m : 3)) m++;
    return m == n && !strncmp(last, name, n);
}

static bool has_word(const char *list, const char *word, size_t n)
{
    for (const char *at = list; *at;) {
        at += strspn(at, " ,\t");
        const size_t size = strcspn(at, " ,\t");
        if (size && is_named(at, size, word, n)) return true;
        at += size;
    }
    return false;
}

/* Returns false for a parameter of a plugin that the cell does not run. */
static bool uses_axis(const struct grid *g, const char **value, const char *key)
{
    const char *first = strchr(key, '.'), *second = first ? strchr(first + 1, '.') : NULL;
    if (!second) return true;
    const char *plugin = first + 1;
    const size_t n = (size_t)(second - plugin);
    const int32_t kind = config_kind_of_section(key);
    if (!kind) return true; /* refused later like any unknown key */
    char choice[100];
    snprintf(choice, sizeof choice, "%s.%s", CONFIG_KINDS[kind].name, CONFIG_KINDS[kind].key);
    const char *chosen = value_in(g, value, choice, config_kind_choice(g->c, kind));
    if (!chosen) return false;
    return has_word(kind == TARE_KIND_CODEBOOK && !strcmp(chosen, "auto") ? "kmeans" : chosen, plugin, n);
}

static bool same_values(const struct grid *g, const char **a, const char **b)
{
    for (int64_t i = 0; i < g->plan->n_axes; i++)
        if (a[i] != b[i]) return false; /* both point into the axis's list */
    return true;
}

static tare_status add_combination(struct grid *g, const int64_t *at)
{
    struct sweep_plan *p = g->plan;
    const char **all, **value;
    TRY(arena_new(g->a, &all, p->n_axes + 1, g->e));
    TRY(arena_new(g->a, &value, p->n_axes + 1, g->e));
    for (int64_t i = 0; i < p->n_axes; i++) all[i] = p->axes[i].values[at[g->dial[i]]];
    for (int64_t i = 0; i < p->n_axes; i++) value[i] = uses_axis(g, all, p->axes[i].key) ? all[i] : NULL;
    for (int64_t c = 0; c < p->n_cells; c++)
        if (same_values(g, p->cells[c].value, value)) return TARE_OK;
    p->cells[p->n_cells++].value = value;
    return TARE_OK;
}

/* Moves dial d to position 0. */
static void make_slowest(struct grid *g, int d)
{
    const int64_t size = g->sizes[d];
    g->sizes[d] = g->sizes[0];
    g->sizes[0] = size;
    for (int64_t i = 0; i < g->plan->n_axes; i++) g->dial[i] = g->dial[i] == d ? 0 : g->dial[i] == 0 ? d : g->dial[i];
}

static tare_status make_cells(struct grid *g)
{
    int64_t total = 1, at[AXES_MOST] = {0};
    for (int i = 0; i < g->n_dials; i++) {
        total *= g->sizes[i];
        if (total > CELLS_MOST) FAIL(g->e, TARE_E_CONFIG, "[sweep]: more than %d cells; shorten the lists", CELLS_MOST);
    }
    TRY(arena_new(g->a, &g->plan->cells, total, g->e));
    for (int64_t k = 0; k < total; k++) {
        TRY(add_combination(g, at));
        for (int i = g->n_dials - 1; i >= 0 && ++at[i] == g->sizes[i]; i--) at[i] = 0;
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- names of cells */

/* Appends a value to a cell's name. Only the last part of a plugin's file is used: plugins/mine.so
 * becomes mine. */
static tare_status add_word(struct str *out, const char *text, struct err *e)
{
    const char *end = strstr(text, ".so"), *slash = end ? strrchr(text, '/') : NULL;
    if (end && !end[3]) {
        text = slash ? slash + 1 : text;
        return str_add(out, text, end - text, e);
    }
    for (; *text; text++) TRY(str_addf(out, e, "%c", isalnum((unsigned char)*text) || strchr("._+-", *text) ? *text : '-'));
    return TARE_OK;
}

/* Prints the cell's name with the seed last: bv_blend_temperature-0.1_seed-3. */
static tare_status print_name(struct grid *g, const struct sweep_cell *c, struct str *out)
{
    const struct sweep_plan *p = g->plan;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < p->n_axes; i++) {
            const char *key = p->axes[i].key, *dot = strrchr(key, '.') + 1;
            if ((!strcmp(key, "run.seed")) != (pass == 1) || !c->value[i] || (p->axes[i].n == 1 && pass == 0)) continue;
            if (out->size) TRY(str_add(out, "_", 1, g->e));
            if (strcmp(dot, "plugin")) TRY(str_addf(out, g->e, "%s-", dot));
            TRY(add_word(out, c->value[i], g->e));
        }
    return out->size ? TARE_OK : str_add(out, "cell", -1, g->e);
}

static tare_status name_cell(struct grid *g, int64_t index, struct str *text)
{
    struct sweep_cell *c = &g->plan->cells[index];
    str_clear(text);
    TRY(print_name(g, c, text));
    bool clash = text->size > NAME_MOST || text->data[0] == '.';
    for (int64_t i = 0; !clash && i < index; i++) clash = !strcmp(g->plan->cells[i].name, text->data);
    if (clash) {
        /* too long, or equal texts for two values: a hash of the values makes the name unique */
        uint64_t hash = 0;
        for (int64_t i = 0; i < g->plan->n_axes; i++)
            if (c->value[i]) hash = fs_hash(c->value[i], (int64_t)strlen(c->value[i]), hash + (uint64_t)i);
        char end[24];
        snprintf(end, sizeof end, "_%08llx", (unsigned long long)(hash & 0xffffffffu));
        if (text->size > NAME_MOST) text->data[text->size = NAME_MOST] = 0;
        if (text->data[0] == '.') text->data[0] = '-';
        TRY(str_add(text, end, -1, g->e));
    }
    return arena_strdup(g->a, text->data, -1, (char **)(uintptr_t)&c->name, g->e);
}

static tare_status name_plan(struct grid *g)
{
    const char *name = sweep_option(g->c, "name"), *dir = sweep_option(g->c, "dir");
    char base[200], path[FS_PATH];
    if (!name || !*name) {
        const char *slash = g->c->file ? strrchr(g->c->file, '/') : NULL;
        snprintf(base, sizeof base, "%s", slash ? slash + 1 : g->c->file ? g->c->file : "sweep");
        char *end = strrchr(base, '.');
        if (end && !strcmp(end, ".ini")) *end = 0;
        name = base;
    }
    if (strchr(name, '/'))
        FAIL(g->e, TARE_E_CONFIG, "%s: sweep.name = %s: a name cannot contain '/'; dir sets the folder",
             config_where(g->c, "sweep", "name"), name);
    snprintf(path, sizeof path, "runs/%s", name);
    TRY(arena_strdup(g->a, name, -1, (char **)(uintptr_t)&g->plan->name, g->e));
    TRY(arena_strdup(g->a, dir && *dir ? dir : path, -1, (char **)(uintptr_t)&g->plan->dir, g->e));
    const char *metric = sweep_option(g->c, "metric"), *baseline = sweep_option(g->c, "baseline");
    TRY(arena_strdup(g->a, metric && *metric ? metric : "eval/reward", -1, (char **)(uintptr_t)&g->plan->metric, g->e));
    return arena_strdup(g->a, baseline ? baseline : "", -1, (char **)(uintptr_t)&g->plan->baseline, g->e);
}

tare_status sweep_grid(const struct config *c, struct arena *a, struct sweep_plan *out, struct err *e)
{
    struct grid g = {.c = c, .a = a, .plan = out, .e = e};
    OWNED(str_free) struct str text = {0};
    *out = (struct sweep_plan){0};
    TRY(name_plan(&g));
    TRY(read_axes(&g));
    if (!out->n_axes)
        FAIL(e, TARE_E_CONFIG, "%s: [sweep] has no axis; add one, for example run.seed = 1..5 or estimator.plugin = grpo, bv_blend",
             c->file ? c->file : "command line");
    TRY(read_pairs(&g));
    for (int64_t i = 0; i < out->n_axes; i++)
        if (g.dial[i] < 0) {
            g.sizes[g.n_dials] = out->axes[i].n;
            g.dial[i] = g.n_dials++;
        }
    if (!strcmp(out->axes[0].key, "run.seed")) make_slowest(&g, g.dial[0]);
    for (int i = 0; i < g.n_dials; i++) TRY(check_repeats(&g, i));
    TRY(make_cells(&g));
    TRY(check_used(&g));
    for (int64_t i = 0; i < out->n_cells; i++) TRY(name_cell(&g, i, &text));
    return TARE_OK;
}
