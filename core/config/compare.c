#include "config/config.h"
#include "config/ini_file.h"
#include "config/keys.h"
#include "config/kinds.h"
#include "config/paths.h"
#include "config/value.h"

#include <stdio.h>
#include <string.h>

/* Keys that may change when a run is resumed: locations of files (which may have moved; the user
 * vouches for their content), what is recorded, and how the work is distributed. "section." stands
 * for a whole section. */
static const char *const FREE[] = {"run.dir",
                                   "run.name",
                                   "run.plugins",
                                   "run.paths_from",
                                   "run.as", /* the keys that it set are compared instead */
                                   "run.threads",
                                   "run.kernels",
                                   "model.path",
                                   "model.save_dtype",
                                   "model.warm_start",
                                   "model.reference",
                                   "data.train",
                                   "data.eval",
                                   "rollout.batch",
                                   "rollout.kv_tokens",
                                   "rollout.speculate",
                                   "verifier.workers",
                                   "verifier.isolate",
                                   "verifier.confine",
                                   "verifier.network",
                                   "verifier.memory",
                                   "verifier.open_files",
                                   "verifier.file_size",
                                   "train.recompute",
                                   "train.skip_zero",
                                   "dist.ranks",
                                   "dist.communicator",
                                   "dist.timeout_s",
                                   "dist.shard",
                                   "sft.",
                                   "eval.",
                                   "checkpoint.",
                                   "log."};

bool config_changes_training(const char *section, const char *key)
{
    char name[300];
    snprintf(name, sizeof name, "%s.%s", section, key);
    for (size_t i = 0; i < sizeof FREE / sizeof *FREE; i++) {
        const size_t n = strlen(FREE[i]);
        if (FREE[i][n - 1] == '.' ? !strncmp(name, FREE[i], n) : !strcmp(name, FREE[i])) return false;
    }
    return true;
}

/* Returns true if a key's list of names, files or name:weight may choose the plugin. A file may
 * hold a plugin of any name. */
static bool may_choose(const char *list, const char *plugin)
{
    const size_t n = strlen(plugin);
    if (strchr(list, '/') || strstr(list, ".so")) return true;
    for (const char *p = list; *p;) {
        const size_t m = strcspn(p, " ,\t:");
        if (m == n && !memcmp(p, plugin, n)) return true;
        p += strcspn(p, " ,\t");
        p += strspn(p, " ,\t");
    }
    return false;
}

bool config_uses(const struct config *c, const char *section)
{
    const char *dot = strchr(section, '.');
    if (!dot) return false;
    const int32_t kind = config_kind_of_section(section);
    const char *chosen = kind ? config_kind_choice(c, kind) : NULL;
    if (!chosen) return false;
    return may_choose(kind == TARE_KIND_CODEBOOK && !config_codebook_settled(c) ? "kmeans" : chosen, dot + 1);
}

static const char *param_of(const struct config *c, const char *section, const char *key)
{
    for (const struct config_param *p = c->params; p; p = p->next)
        if (!strcmp(p->section, section) && !strcmp(p->key, key)) return p->value;
    return NULL;
}

static tare_status compare_params(const struct config *before, const struct config *after, config_difference_visit visit, void *ctx,
                                  struct err *e)
{
    for (int pass = 0; pass < 2; pass++) {
        /* parameters of `before`, then those that only `after` has */
        for (const struct config_param *p = pass ? after->params : before->params; p; p = p->next) {
            const char *a = param_of(before, p->section, p->key), *b = param_of(after, p->section, p->key);
            if (!strcmp(p->section, "sweep") || (pass && a) || (a && b && !strcmp(a, b))) continue;
            const struct config_difference d = {p->section, p->key, a ? a : "(not set)", b ? b : "(not set)",
                                                config_uses(before, p->section) || config_uses(after, p->section)};
            TRY(visit(ctx, &d, e));
        }
    }
    return TARE_OK;
}

struct comparison {
    const struct config *before, *after;
    config_difference_visit visit;
    void *ctx;
    struct str text[2]; /* the key's two values */
};

/* Prints the key's two values: as they are written, or with absolute paths. */
static tare_status print_values(struct comparison *c, const struct config_key *k, bool full, struct err *e)
{
    for (int i = 0; i < 2; i++) {
        const struct config *one = i ? c->after : c->before;
        bool printed = full;
        str_clear(&c->text[i]);
        if (full)
            TRY(paths_print_full(one, k, &c->text[i], e));
        else
            TRY(paths_print(one, k, &c->text[i], &printed, e));
        if (!printed) TRY(value_print(one, k, &c->text[i], e));
    }
    return TARE_OK;
}

static bool same_values(const struct comparison *c)
{
    return c->text[0].size == c->text[1].size &&
           (!c->text[0].size || !memcmp(c->text[0].data, c->text[1].data, (size_t)c->text[0].size));
}

/* Paths are compared by the files that they name. */
static tare_status compare_key(struct comparison *c, const struct config_key *k, struct err *e)
{
    if (!strcmp(k->key, "paths_from")) return TARE_OK;
    TRY(print_values(c, k, true, e));
    if (same_values(c)) return TARE_OK;
    TRY(print_values(c, k, false, e));
    if (same_values(c)) TRY(print_values(c, k, true, e));
    const char *a = c->text[0].size ? c->text[0].data : "", *b = c->text[1].size ? c->text[1].data : "";
    const struct config_difference d = {k->section, k->key, *a ? a : "(empty)", *b ? b : "(empty)",
                                        config_changes_training(k->section, k->key)};
    return c->visit(c->ctx, &d, e);
}

tare_status config_compare(const struct config *before, const struct config *after, config_difference_visit visit, void *ctx,
                           struct err *e)
{
    struct comparison c = {.before = before, .after = after, .visit = visit, .ctx = ctx};
    tare_status status = TARE_OK;
    for (const struct config_key *k = CONFIG_KEYS; !status && k->section; k++) status = compare_key(&c, k, e);
    if (!status) status = compare_params(before, after, visit, ctx, e);
    str_free(&c.text[0]);
    str_free(&c.text[1]);
    return status;
}
