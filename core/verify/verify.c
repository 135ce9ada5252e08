#include "verify/verify.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/program.h"
#include "batch/verdict.h"
#include "call/worker.h"
#include "verify/internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

tare_status verify_new(const struct verify_options *options, struct verify **out, struct err *e)
{
    *out = NULL;
    struct verify *v = NULL;
    TRY(mem_new(sizeof *v, (void **)&v, e));
    v->options = *options;
    v->segmenter = -1;
    arena_init(&v->arena, "verifiers");
    tare_status s = pool_new((int)options->workers, &v->pool, e);
    if (s) err_prefix(e, "verifier.workers = %lld", (long long)options->workers);
    if (!s && options->processes) s = worker_group_new(pool_threads(v->pool), &v->workers, e);
    if (s) {
        verify_close(v);
        return s;
    }
    *out = v;
    return TARE_OK;
}

void verify_close(struct verify *v)
{
    if (!v) return;
    worker_group_free(v->workers, pool_threads(v->pool));
    pool_free(v->pool);
    for (int64_t c = 0; c < v->n_verifiers; c++) {
        struct verifier *f = &v->verifiers[c];
        waiting_free(v, c);
        for (int64_t k = 0; k < f->n_instances; k++) plugin_destroy(f->instance[k]);
        mem_free(f->instance);
    }
    arena_free(&v->arena);
    mem_free(v);
}

void verify_close_at(struct verify **v)
{
    verify_close(*v);
}

/* Takes the verifier's name, which must be unique and valid as a section name. */
static tare_status take_name(struct verify *v, struct verifier *f, const char *as, struct err *e)
{
    const char *name = as ? as : f->plugin->desc.name;
    if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] || strspn(name, "0123456789_") || !*name ||
        strlen(name) > TARE_LIMIT_NAME)
        FAIL(e, TARE_E_CONFIG,
             "verifier.plugins: invalid verifier name '%s': use lowercase letters, digits and '_', starting with a letter", name);
    if (!strcmp(name, "overlong"))
        FAIL(e, TARE_E_CONFIG, "verifier.plugins: the name overlong is reserved for verifier.overlong; choose another");
    if (!strcmp(name, "environment"))
        FAIL(e, TARE_E_CONFIG,
             "verifier.plugins: the name environment is reserved for the rewards of environment.plugin; choose another");
    for (int64_t c = 0; c < v->n_verifiers; c++)
        if (!strcmp(v->verifiers[c].name, name))
            FAIL(
                e, TARE_E_CONFIG,
                "the verifier %s is listed twice: list it once, with the sum of the weights, or rename one, with separate parameters: %s as strict, [verifier.strict]",
                name, f->plugin->desc.name);
    char *copy;
    TRY(arena_strdup(&v->arena, name, -1, &copy, e));
    f->name = copy;
    return TARE_OK;
}

/* Returns whether p is this program's own verifier `code`, whose sandboxes need namespaces. Checks
 * its name and its path, because any plugin could claim the name. */
static bool makes_sandboxes(const struct plugin *p)
{
    const char *const folders[] = {"plugins", PROGRAM_LIBRARIES};
    char folder[FS_PATH], real[PATH_MAX];
    for (size_t i = 0; i < sizeof folders / sizeof *folders && !strcmp(p->desc.name, "code"); i++)
        if (program_path(folder, folders[i]) && realpath(folder, real) && !strncmp(p->path, real, strlen(real))) return true;
    return false;
}

/* Reads the parameters. verifier.opened is the default of `opened`, a bool of verifiers that read what
 * follows a thought; one with its own tag, `open`, has no default. */
static tare_status read_params(struct verify *v, struct verifier *f, const struct config_param *settings, struct err *e)
{
    const int64_t opened = v->options.opened ? plugin_find_param(f->plugin, "opened") : -1;
    char section[128];
    struct config_param set = {.section = section, .key = "opened", .value = "true", .where = "verifier.opened", .next = NULL};
    snprintf(section, sizeof section, "%s.%s", plugin_section_kind(TARE_KIND_VERIFIER), f->name);
    bool given = opened < 0 || f->plugin->params[opened].type != TARE_PARAM_BOOL;
    for (const struct config_param *s = settings; s && !given; s = s->next)
        given = !strcmp(s->section, section) && (plugin_find_param(f->plugin, s->key) == opened || !strcmp(s->key, "open"));
    set.next = (struct config_param *)(uintptr_t)settings;
    return plugin_params_as(f->plugin, f->name, given ? settings : &set, &v->arena, &f->values, e);
}

tare_status verify_add(struct verify *v, const struct verify_use *use, const struct plugin_search *search,
                       const struct config_param *settings, const struct plugin_env *env, struct err *e)
{
    if (v->n_verifiers == TARE_LIMIT_VERIFIERS)
        FAIL(e, TARE_E_CONFIG, "verifier.plugins: more than %d verifiers; remove some", TARE_LIMIT_VERIFIERS);
    struct verifier *f = &v->verifiers[v->n_verifiers];
    *f = (struct verifier){.weight = use->weight};
    TRY(plugin_open(use->plugin, TARE_KIND_VERIFIER, search, &f->plugin, e));
    TRY(take_name(v, f, use->as, e));
    if (f->plugin->verifier->flags & TARE_VERIFIER_GIVES_SEGMENTS) {
        if (v->segmenter >= 0)
            FAIL(e, TARE_E_CONFIG, "verifier.plugins: %s and %s both reward parts of completions; at most one verifier may",
                 v->verifiers[v->segmenter].name, f->name);
        v->segmenter = v->n_verifiers;
    }
    const bool many = f->plugin->desc.calls == TARE_CALLS_INSTANCE_PER_THREAD && !verify_together(v, v->n_verifiers) &&
                      !verify_waits_for(v, v->n_verifiers);
    const int64_t n = many ? pool_threads(v->pool) : 1;
    TRY(mem_new(n * (int64_t)sizeof(struct plugin_instance *), (void **)&f->instance, e));
    v->n_verifiers++; /* from here on verify_close frees it */
    if (env) v->env = *env;
    struct plugin_env own = env ? *env : (struct plugin_env){0};
    own.instance = f->name;
    if (makes_sandboxes(f->plugin)) v->options.confine.namespaces = true;
    TRY(read_params(v, f, settings, e));
    TRY(plugin_uses(f->plugin, f->values, &f->uses, e));
    if (!v->workers)
        for (int64_t k = 0; k < n; k++) {
            TRY(plugin_create(f->plugin, f->values, 0, &own, &f->instance[k], e));
            f->n_instances++;
        }
    return TARE_OK;
}

/* Splits "name:weight". The colon of "FILE.so:NAME" is part of the name, because no number follows
 * it. */
static tare_status split_weight(char *text, double *weight, struct err *e)
{
    *weight = 1;
    char *colon = strrchr(text, ':');
    if (!colon) return TARE_OK;
    struct err ignored;
    if (str_to_double(colon + 1, weight, &ignored)) {
        *weight = 1;
        if (strstr(text, ".so:")) return TARE_OK;
        FAIL(e, TARE_E_CONFIG, "verifier.plugins: \"%s\": the weight after the colon is not a number; write NAME or NAME:WEIGHT",
             text);
    }
    *colon = 0;
    return TARE_OK;
}

tare_status verify_list_next(struct verify_list *l, struct verify_use *use, bool *more, struct err *e)
{
    char *word = l->begun ? l->next : strtok_r(l->next, " ,\t", &l->rest), *last = word;
    l->begun = true;
    *use = (struct verify_use){.plugin = word};
    *more = word != NULL;
    if (!word) return TARE_OK;
    l->next = strtok_r(NULL, " ,\t", &l->rest);
    if (l->next && !strcmp(l->next, "as")) {
        last = strtok_r(NULL, " ,\t", &l->rest);
        if (!last)
            FAIL(e, TARE_E_CONFIG, "verifier.plugins: missing name after 'as'; write %s as NAME, or %s as NAME:WEIGHT", word, word);
        use->as = last;
        l->next = strtok_r(NULL, " ,\t", &l->rest);
    }
    return split_weight(last, &use->weight, e);
}

/* A completion that no verifier judges would count as one with reward 0 in the baseline of its group. */
static tare_status refuse_abstention(const struct verify *v, struct err *e)
{
    for (int64_t c = 0; c < v->n_verifiers; c++) {
        const struct verifier *f = &v->verifiers[c];
        const int64_t i = plugin_find_param(f->plugin, "none"); /* of the verifier `python` */
        if (i < 0 || f->plugin->params[i].type != TARE_PARAM_CHOICE) return TARE_OK;
        if (!strcmp(f->plugin->params[i].choices[f->values[i].i], "refuse")) return TARE_OK;
    }
    if (!v->n_verifiers || v->options.environment) return TARE_OK;
    FAIL(
        e, TARE_E_CONFIG,
        "verifier.plugins: %s may return None and no other verifier judges the rows, so None would be reward 0; add a verifier, or return a number and remove none = zero",
        v->verifiers[0].name);
}

static tare_status add_all(struct verify *v, const struct config *c, const struct plugin_search *search,
                           const struct plugin_env *env, char *text, struct err *e)
{
    struct verify_list list = {.next = text};
    struct verify_use use;
    bool more;
    TRY(verify_list_next(&list, &use, &more, e));
    while (more) {
        TRY(verify_add(v, &use, search, c->params, env, e));
        TRY(verify_list_next(&list, &use, &more, e));
    }
    if (!v->n_verifiers && !v->options.environment)
        FAIL(e, TARE_E_CONFIG, "verifier.plugins is empty; set it, for instance to number");
    return refuse_abstention(v, e);
}

tare_status verify_open(const struct config *c, const struct plugin_search *search, const struct plugin_env *env,
                        struct verify **out, struct err *e)
{
    *out = NULL;
    const struct verifier_config *k = &c->verifier;
    struct verify_options o = {
        .workers = k->workers,
        .timeout = k->timeout,
        .processes = k->isolate == ISOLATE_PROCESS,
        .confine = {.mode = k->confine,
                    .network = k->network,
                    .memory = k->memory,
                    .open_files = k->open_files,
                    .file_size = k->file_size},
        .max_crash_share = k->max_crash_share,
        .opened = k->opened == OPENED_TRUE,
        .overlong = k->overlong,
        .overlong_buffer = k->overlong_buffer,
        .max_new_tokens = c->rollout.max_new_tokens,
        .overlong_penalty = k->overlong_penalty,
        .environment = *c->environment.plugin != 0,
    };
    if (o.overlong == OVERLONG_LINEAR && (o.overlong_buffer < 1 || o.overlong_buffer > o.max_new_tokens))
        FAIL(e, TARE_E_CONFIG,
             "%s: verifier.overlong_buffer = %lld: must be in 1 .. rollout.max_new_tokens (%lld) for overlong = linear",
             config_where(c, "verifier", "overlong_buffer"), (long long)o.overlong_buffer, (long long)o.max_new_tokens);
    if (o.processes) TRY(worker_program(&o.worker, e));
    char *list = NULL;
    const int64_t n = (int64_t)strlen(k->plugins) + 1;
    TRY(mem_new(n, (void **)&list, e));
    memcpy(list, k->plugins, (size_t)n);
    struct verify *v = NULL;
    tare_status s = verify_new(&o, &v, e);
    if (!s) s = add_all(v, c, search, env, list, e);
    /* report a plugin that refuses to open now */
    if (!s && o.processes) s = worker_group_start(v, 0, e);
    if (!s && o.processes) s = worker_group_identities(v, e);
    mem_free(list);
    if (s)
        verify_close(v);
    else
        *out = v;
    return s;
}

int64_t verify_n_components(const struct verify *v)
{
    return v->n_verifiers + v->options.environment + (v->options.overlong != OVERLONG_NONE);
}

bool verify_gives_segments(const struct verify *v)
{
    return v->segmenter >= 0;
}

const char *verify_component_name(const struct verify *v, int64_t c)
{
    return c < v->n_verifiers ? v->verifiers[c].name : v->options.environment && c == v->n_verifiers ? "environment" : "overlong";
}

const struct plugin *verify_plugin(const struct verify *v, int64_t c)
{
    return c < v->n_verifiers ? v->verifiers[c].plugin : NULL;
}

struct plugin_instance *verify_instance(const struct verify *v, int64_t c)
{
    return c < v->n_verifiers && v->verifiers[c].n_instances ? v->verifiers[c].instance[0] : NULL;
}

const char *verify_identity(const struct verify *v, int64_t c)
{
    return c < v->n_verifiers ? v->verifiers[c].identity : NULL;
}

const char *verify_unrepeatable(const struct verify *v)
{
    for (int64_t c = 0; c < v->n_verifiers; c++)
        if (!(v->verifiers[c].plugin->verifier->flags & TARE_VERIFIER_REPEATS)) return v->verifiers[c].name;
    return NULL;
}

void verify_count(const int32_t *verdicts, int64_t n, int64_t counts[TARE_VERDICT_PARTIAL + 1])
{
    memset(counts, 0, (TARE_VERDICT_PARTIAL + 1) * sizeof *counts);
    for (int64_t i = 0; i < n; i++)
        if (verdict_name(verdicts[i])) counts[verdicts[i]]++;
}
