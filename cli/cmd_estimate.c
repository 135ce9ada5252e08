/* tare estimate: runs an estimator alone, one step per line, or recomputes a step of a run. */
#include "base/fs.h"
#include "base/log.h"
#include "cli/cli.h"
#include "config/config.h"
#include "data/dataset.h"
#include "estimate/estimate.h"

#include <stdio.h>
#include <string.h>

const char estimate_usage[] =
    "usage: tare estimate PLUGIN [clusters=K] [key=value ...] [--load FILE] [--save FILE]\n"
    "       tare estimate --replay RUN --step N\n"
    "The first form reads one step per line from standard input and carries the estimator's state from line to line:\n"
    "  in:   {\"groups\":[{\"cluster\":0,\"rewards\":[1,0]}]}\n"
    "  out:  {\"advantages\":[[...]],\"baseline\":[...],\"scale\":[...],\"confidence\":[...],\"state\":{...}}\n"
    "The second form recomputes a step of a run and compares it with the run's dump bit by bit.\n"
    "  --load, --save  state before the first step and after the last one, as in a checkpoint\n"
    "  clusters=K      number of clusters of the codebook\n"
    "scale is the divisor of the advantages: 1 where the estimator does not divide.\n"
    "A group may also have uid, lengths, components, entropy, logprob, ref_logprob, row, finish, completions, ids, verdicts,\n"
    "component_verdicts, fate, off_policy, policy_version, segments and segment_rewards.\n";

struct filter {
    struct estimator *est;
    struct arena arena;
    struct str line;
    int64_t step;
};

static tare_status print_step(struct filter *f, const struct batch *b, struct err *e)
{
    str_clear(&f->line);
    TRY(estimate_print(f->est, b, &f->line, e));
    return cli_print(&f->line, e);
}

static tare_status estimate_line(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct filter *f = ctx;
    struct batch b;
    arena_reset(&f->arena);
    TRY(estimate_parse(object, where, &f->arena, &b, e));
    b.step = f->step++;
    if (estimate_run(f->est, &b, &f->arena, e) ||
        estimate_apply(f->est, &(struct estimate_update){.step = b.step, .updates = 1}, e))
        return err_prefix(e, "%s", where);
    return print_step(f, &b, e);
}

/* ---------------------------------------------------------------- steps from standard input */

static int64_t find_param(const struct plugin *p, const char *key)
{
    for (uint32_t i = 0; i < p->desc.n_params; i++)
        if (!strcmp(p->params[i].key, key)) return i;
    return -1;
}

/* Opens an estimator. clusters=K sets the codebook's size, and the parameter of that name if there
 * is one. */
static tare_status open_plain(const char *name, const char **assignments, int64_t n, struct filter *f, struct err *e)
{
    const struct plugin *p;
    const struct config_param *settings;
    struct estimate_options o = {.plugin = name};
    int64_t kept = 0;
    TRY(plugin_open(name, TARE_KIND_ESTIMATOR, NULL, &p, e));
    for (int64_t i = 0; i < n; i++) {
        const bool clusters = !strncmp(assignments[i], "clusters=", 9);
        if (clusters && (str_to_int(assignments[i] + 9, &o.n_clusters, e) || o.n_clusters < 0))
            FAIL(e, TARE_E_CONFIG, "command line: clusters = '%s': must be a number of clusters", assignments[i] + 9);
        if (!clusters || find_param(p, "clusters") >= 0) assignments[kept++] = assignments[i];
    }
    TRY(plugin_settings(p, (struct plugin_words){assignments, kept}, NULL, &f->arena, &settings, e));
    o.settings = settings;
    return estimate_open(&o, &f->est, e);
}

static tare_status load_state(struct filter *f, const char *file, struct err *e)
{
    OWNED(str_free) struct str state = {0};
    TRY(fs_read_all(file, &state, e));
    return estimate_load(f->est, state.data, state.size, file, e);
}

static tare_status save_state(const struct filter *f, const char *file, struct err *e)
{
    OWNED(str_free) struct str state = {0};
    TRY(estimate_save(f->est, &state, e));
    return fs_write_atomic(file, state.data, state.size, e);
}

/* from, to: files of the state to load and save, or NULL. */
static tare_status estimate_lines(const char *name, const char **assignments, int64_t n, const char *from, const char *to,
                                  struct err *e)
{
    struct filter f = {0};
    arena_init(&f.arena, "estimate");
    tare_status status = open_plain(name, assignments, n, &f, e);
    if (!status && from) status = load_state(&f, from, e);
    if (!status) status = json_each_line(stdin, "standard input", estimate_line, &f, e);
    if (!status && to) status = save_state(&f, to, e);
    estimate_free(f.est);
    arena_free(&f.arena);
    str_free(&f.line);
    return status;
}

/* ---------------------------------------------------------------- recomputing a step of a run */

struct dump {
    json_t *groups; /* [{"cluster", "rewards", ...}] */
    json_t *advantages;
    int64_t group; /* group of the previous line */
};

static tare_status dump_line(void *ctx, const json_t *line, const char *where, struct err *e)
{
    struct dump *d = ctx;
    int64_t group;
    double reward, advantage;
    static const char *const MEMBERS[][2] = {{"reward", "rewards"},
                                             {"length", "lengths"},
                                             {"components", "components"},
                                             {"completion", "completions"},
                                             {"verdict", "verdicts"},
                                             {"finish", "finish"},
                                             {"component_verdicts", "component_verdicts"},
                                             {"fate", "fate"}};
    TRY(json_get_int(line, "group", where, &group, e));
    TRY(json_get_double(line, "reward", where, &reward, e));
    TRY(json_get_double(line, "advantage", where, &advantage, e));
    if (group < d->group)
        FAIL(e, TARE_E_CORRUPT, "%s: group %lld follows group %lld", where, (long long)group, (long long)d->group);
    if (group > d->group || !json_array_size(d->groups)) {
        json_t *g = json_object();
        json_array_append_new(d->groups, g);
        if (json_object_get(line, "cluster")) json_object_set(g, "cluster", json_object_get(line, "cluster"));
        if (json_object_get(line, "prompt_uid")) json_object_set(g, "uid", json_object_get(line, "prompt_uid"));
        d->group = group;
    }
    json_t *g = json_array_get(d->groups, json_array_size(d->groups) - 1);
    for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++) {
        json_t *value = json_object_get(line, MEMBERS[i][0]);
        if (!value) continue;
        if (!json_object_get(g, MEMBERS[i][1])) json_object_set_new(g, MEMBERS[i][1], json_array());
        json_array_append(json_object_get(g, MEMBERS[i][1]), value);
    }
    json_array_append_new(d->advantages, json_real(advantage));
    return TARE_OK;
}

static tare_status read_dump(const char *path, struct dump *d, struct err *e)
{
    OWNED(fs_close_at) FILE *file = fopen(path, "rb");
    if (!file) FAIL(e, TARE_E_NOT_FOUND, "%s: missing: a run records the rollouts of its steps with log.rollouts = true", path);
    d->groups = json_array();
    d->advantages = json_array();
    return json_each_line(file, path, dump_line, d, e);
}

/* Opens the estimator with the run's parameters and its state before the step. */
static tare_status open_replay(const char *run, int64_t number, struct filter *f, struct err *e)
{
    OWNED(config_free) struct config config = {0};
    OWNED(str_free) struct str state = {0};
    char path[FS_PATH], file[64];
    TRY(fs_join(path, run, "config.ini", e));
    TRY(config_load(&config, path, NULL, 0, e));
    snprintf(file, sizeof file, "estimator/step-%06lld.state", (long long)number);
    TRY(fs_join(path, run, file, e));
    TRY(fs_read_all(path, &state, e));
    int64_t clusters;
    TRY(plugin_state_clusters(state.data, state.size, path, &clusters, e));
    const struct plugin_search search = {.folder = config.run.plugins};
    const struct estimate_options o = {.plugin = config.estimator.plugin,
                                       .search = &search,
                                       .settings = config.params,
                                       .n_clusters = clusters,
                                       .env = {.seed = (uint64_t)config.run.seed}};
    TRY(estimate_open(&o, &f->est, e));
    return estimate_load(f->est, state.data, state.size, path, e);
}

/* Finds the rows of a dump's prompts in data.train by their uid. */
static tare_status find_rows(const struct config *c, struct arena *a, struct batch *b, struct err *e)
{
    OWNED(dataset_free) struct dataset d = {0};
    TRY(dataset_of(c, "train", &d, e));
    TRY(arena_new(a, &b->row_json, b->n_groups + 1, e));
    for (int64_t m = 0; m < b->n_groups; m++) {
        char *copy = NULL;
        int64_t i = 0;
        while (i < d.n && d.rows[i].uid != b->prompt_uid[m]) i++;
        if (i == d.n)
            FAIL(e, TARE_E_NOT_FOUND,
                 "group %lld: data.train = %s has no row with the prompt uid %016llx; has the file changed since the run?",
                 (long long)m, c->data.train, (unsigned long long)b->prompt_uid[m]);
        TRY(arena_strdup(a, d.rows[i].json.data, d.rows[i].json.size, &copy, e));
        b->row_json[m] = (tare_text){copy, d.rows[i].json.size};
    }
    return TARE_OK;
}

/* Adds the rows of the data set, which a dump does not contain, if the estimator reads them. */
static tare_status add_rows(const char *run, struct filter *f, struct batch *b, struct err *e)
{
    struct config config;
    char path[FS_PATH];
    if (!estimate_wants(f->est, COLUMN_ROW_JSON) && !estimate_wants(f->est, COLUMN_ROW_FIELD)) return TARE_OK;
    TRY(fs_join(path, run, "config.ini", e));
    TRY(config_load(&config, path, NULL, 0, e));
    const tare_status status = find_rows(&config, &f->arena, b, e);
    config_free(&config);
    return status ? err_prefix(e, "%s", run) : TARE_OK;
}

static tare_status compare_advantages(const struct batch *b, const json_t *dumped, const char *run, struct err *e)
{
    for (int64_t m = 0; m < b->n_groups; m++) {
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) {
            const double was = json_real_value(json_array_get(dumped, (size_t)i)), is = b->advantage[i];
            if (memcmp(&was, &is, sizeof was) && !(was == 0 && is == 0))
                FAIL(e, TARE_E_GENERIC,
                     "%s: group %lld, rollout %lld: the advantage is %.17g, but the run recorded %.17g; is it the same plugin?",
                     run, (long long)m, (long long)(i - b->group_begin[m]), is, was);
        }
    }
    return TARE_OK;
}

static tare_status replay_into(const char *run, int64_t number, struct filter *f, struct dump *d, struct err *e)
{
    char path[FS_PATH], file[64];
    struct batch b;
    snprintf(file, sizeof file, "rollouts/step-%06lld.jsonl", (long long)number);
    TRY(fs_join(path, run, file, e));
    TRY(read_dump(path, d, e));
    TRY(open_replay(run, number, f, e));
    json_t *object = json_pack("{s:O}", "groups", d->groups);
    const tare_status status = estimate_parse(object, path, &f->arena, &b, e);
    json_decref(object);
    TRY(status);
    b.step = number;
    TRY(add_rows(run, f, &b, e));
    TRY(estimate_run(f->est, &b, &f->arena, e));
    TRY(print_step(f, &b, e));
    TRY(compare_advantages(&b, d->advantages, run, e));
    log_info("%s: step %lld: %lld advantages, bit-identical to the run's", run, (long long)number, (long long)b.n_rollouts);
    return TARE_OK;
}

static tare_status replay_step(const char *run, int64_t number, struct err *e)
{
    struct filter f = {0};
    struct dump d = {0};
    arena_init(&f.arena, "estimate");
    const tare_status status = replay_into(run, number, &f, &d, e);
    json_decref(d.groups);
    json_decref(d.advantages);
    estimate_free(f.est);
    arena_free(&f.arena);
    str_free(&f.line);
    return status;
}

/* ---------------------------------------------------------------- command */

static int usage_error(const char *what, const char *which)
{
    fprintf(stderr, "tare: estimate: %s%s\n%s", what, which, estimate_usage);
    return 2;
}

int cmd_estimate(int argc, char **argv)
{
    const char *name = NULL, *run = NULL, *number = NULL, *from = NULL, *to = NULL;
    const struct {
        const char *option, **value;
    } options[] = {{"--replay", &run}, {"--step", &number}, {"--load", &from}, {"--save", &to}};
    const char **assignments = (const char **)(uintptr_t)argv; /* compacted in place */
    int64_t n = 0;
    struct err e = {0};
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        size_t k = 0;
        while (k < 4 && strcmp(a, options[k].option)) k++;
        if (k < 4) {
            if (i + 1 == argc) return usage_error("missing value of ", a);
            *options[k].value = argv[++i];
        } else if (a[0] == '-') {
            if (!config_hint(a, a, "unknown option; a plugin's parameters are set as key=value", &e))
                return usage_error("unknown option ", a);
            log_error(&e);
            return 2;
        } else if (!name && !strchr(a, '=')) {
            name = a;
        } else if (strchr(a, '=')) {
            assignments[n++] = a;
        } else {
            return usage_error("unexpected argument ", a);
        }
    }
    int64_t step_number = -1;
    if (run ? name || n || !number || from || to : !name || number)
        return usage_error(run ? "--replay accepts only RUN and --step N" : "PLUGIN is missing", "");
    if (number && (str_to_int(number, &step_number, &e) || step_number < 0)) return usage_error("invalid step: ", number);
    const tare_status status = run ? replay_step(run, step_number, &e) : estimate_lines(name, assignments, n, from, to, &e);
    return cli_end(status, &e);
}
