/* Axes of a sweep over parameters that hold secrets. */
#include "config/kinds.h"
#include "plugin/plugin.h"
#include "sweep/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cuts ":WEIGHT" off a name of verifier.plugins; the colon of "FILE.so:NAME" stays. */
static void cut_weight(char *word)
{
    char *colon = strrchr(word, ':'), *end;
    if (!colon) return;
    (void)strtod(colon + 1, &end);
    if (end != colon + 1 && !*end) *colon = 0;
}

/* Finds the verifier that has the section [verifier.NAME] among those of the configuration. NULL: none
 * that can be opened; the run that uses it says why. */
static tare_status find_verifier(const struct config *c, const char *name, const struct plugin **out, struct err *e)
{
    const struct plugin_search search = {.folder = c->run.plugins};
    OWNED(arena_free) struct arena a = {0};
    char *list, *rest;
    arena_init(&a, "verifier names");
    TRY(arena_strdup(&a, c->verifier.plugins, -1, &list, e));
    *out = NULL;
    for (char *word = strtok_r(list, " ,\t", &rest); word && !*out;) {
        const struct plugin *p;
        struct err unused;
        char *next = strtok_r(NULL, " ,\t", &rest), *as = NULL;
        if (next && !strcmp(next, "as")) {
            as = strtok_r(NULL, " ,\t", &rest);
            next = as ? strtok_r(NULL, " ,\t", &rest) : NULL;
        }
        cut_weight(as ? as : word);
        if (!plugin_open(word, TARE_KIND_VERIFIER, &search, &p, &unused) && !strcmp(as ? as : p->desc.name, name)) *out = p;
        word = next;
    }
    return TARE_OK;
}

static tare_status find_plugin(const struct config *c, int32_t kind, const char *name, const struct plugin **out, struct err *e)
{
    const struct plugin_search search = {.folder = c->run.plugins};
    struct err unused;
    *out = NULL;
    if (kind == TARE_KIND_VERIFIER) TRY(find_verifier(c, name, out, e));
    const char *chosen = kind == TARE_KIND_VERIFIER ? NULL : config_kind_choice(c, kind);
    if (chosen && *chosen && !plugin_open(chosen, kind, &search, out, &unused) && strcmp((*out)->desc.name, name) != 0) *out = NULL;
    if (!*out && plugin_open(name, kind, &search, out, &unused)) *out = NULL;
    return TARE_OK;
}

tare_status sweep_check_secrets(const struct sweep_plan *plan, const struct config *c, struct err *e)
{
    for (int64_t i = 0; i < plan->n_axes; i++) {
        const char *key = plan->axes[i].key, *name = strchr(key, '.') + 1, *dot = strchr(name, '.');
        const int32_t kind = config_kind_of_section(key);
        const struct plugin *p;
        char plugin[128];
        if (!dot || !kind) continue;
        snprintf(plugin, sizeof plugin, "%.*s", (int)(dot - name), name);
        TRY(find_plugin(c, kind, plugin, &p, e));
        const int64_t k = p ? plugin_find_param(p, dot + 1) : -1;
        if (k >= 0 && p->params[k].flags & TARE_PARAM_SECRET)
            FAIL(e, TARE_E_CONFIG, "sweep.%s: the parameter holds a secret and cannot be swept; set it outside of [sweep]", key);
    }
    return TARE_OK;
}
