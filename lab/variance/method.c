#include "lab/variance/method.h"

#include <string.h>

const char *const STATE_NAMES[STATES] = {"-", "cold", "saved", "warmed"};

/* Return the reason why the estimator cannot be measured, or NULL. */
static const char *why_unmeasurable(const struct plugin *p)
{
    if (p->estimator->flags & TARE_ESTIMATOR_GIVES_TOKENS) return "its advantages are per token";
    if (plugin_requires(p, COLUMN_LOGPROB) || plugin_requires(p, COLUMN_ENTROPY) || plugin_requires(p, COLUMN_REF_LOGPROB))
        return "it uses the tokens' probabilities";
    if (plugin_requires(p, COLUMN_OFF_POLICY)) return "it uses the rows' own completions";
    return NULL;
}

/* Parse "NAME key=value ..."; cuts spec into words. */
static tare_status parse_method(const struct config *c, char *spec, struct arena *a, struct method *m, struct err *e)
{
    const struct plugin_search search = {.folder = c->run.plugins};
    const char *words[64];
    char *rest = spec;
    int64_t n = 0;
    for (char *word; n < 64 && (word = strtok_r(rest, " ", &rest));) words[n++] = word;
    if (!n || n == 64)
        FAIL(e, TARE_E_CONFIG, "--estimator '%s': must be a name, followed by key=value separated by spaces", m->label);
    TRY(plugin_open(words[0], TARE_KIND_ESTIMATOR, &search, &m->plugin, e));
    m->has_state = m->plugin->estimator->save != NULL;
    m->settings = c->params;
    return n > 1 ? plugin_settings(m->plugin, (struct plugin_words){words + 1, n - 1}, c->params, a, &m->settings, e) : TARE_OK;
}

static tare_status add_method(const struct config *c, const char *spec, bool named, struct arena *a, struct methods *out,
                              struct err *e)
{
    struct method m = {0};
    char *label, *copy;
    if (out->n == VARIANCE_METHODS || out->n_left_out == VARIANCE_METHODS)
        FAIL(e, TARE_E_CONFIG, "--estimator: at most %d estimators", VARIANCE_METHODS);
    TRY(arena_strdup(a, spec, -1, &label, e));
    TRY(arena_strdup(a, spec, -1, &copy, e));
    m.label = label;
    TRY(parse_method(c, copy, a, &m, e));
    const char *why = why_unmeasurable(m.plugin);
    if (why && named) FAIL(e, TARE_E_CONFIG, "estimator %s cannot be measured: %s", spec, why);
    if (why) {
        struct left_out *l = &out->left_out[out->n_left_out++];
        l->name = label;
        snprintf(l->why, sizeof l->why, "%s", why);
        return TARE_OK;
    }
    out->method[out->n++] = m;
    return TARE_OK;
}

tare_status variance_methods_find(const struct config *c, const struct variance_options *o, struct arena *a, struct methods *out,
                                  struct err *e)
{
    *out = (struct methods){0};
    for (int64_t i = 0; i < o->n_estimators; i++) TRY(add_method(c, o->estimators[i], true, a, out, e));
    for (const struct plugin_builtin *b = PLUGIN_BUILTINS; !o->n_estimators && b->name; b++)
        if (b->built && !strcmp(b->folder, "estimators")) TRY(add_method(c, b->name, false, a, out, e));
    out->method[out->n++] = (struct method){.label = "(mean reward)", .oracle = ORACLE_MEAN};
    out->method[out->n++] = (struct method){.label = "(best constant)", .oracle = ORACLE_BEST};
    return TARE_OK;
}

bool method_is_saved(const struct method *m, const struct method_place *place)
{
    return m->has_state && place->saved && !strcmp(m->plugin->desc.name, place->config->estimator.plugin);
}

tare_status method_open(const struct method *m, const struct method_place *place, enum state state, struct estimator **out,
                        struct err *e)
{
    const struct plugin_search search = {.folder = place->config->run.plugins};
    char name[FS_PATH];
    *out = NULL;
    if (m->oracle) return TARE_OK;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(m->label, " "), m->label);
    TRY(estimate_open(&(struct estimate_options){.plugin = name,
                                                 .search = &search,
                                                 .settings = m->settings,
                                                 .n_clusters = place->n_clusters,
                                                 .env = {.seed = (uint64_t)place->config->run.seed}},
                      out, e));
    const tare_status status = state == STATE_SAVED ? estimate_load(*out, place->saved, place->n_saved, place->where, e) : TARE_OK;
    if (status) {
        estimate_free(*out);
        *out = NULL;
    }
    return status;
}
