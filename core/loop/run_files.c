#include "loop/run_files.h"

#include "base/fs.h"
#include "base/log.h"
#include "observe/named_files.h"

#include <string.h>

/* ---------------------------------------------------------------- the words of a command */

/* Reads the next word of a line for the shell into `word`, without its quotes. *output: it is the
 * target of a redirection. Variables and patterns are not expanded. Returns false at the end. */
static bool next_word(const char **line, char word[FS_PATH], bool *output)
{
    const char *at = *line;
    char quote = 0;
    size_t n = 0;
    for (*output = false; *at && strchr(" \t\n;|&()<>", *at); at++) {
        if (*at == '>') *output = true;
        if (strchr(";|&\n", *at)) *output = false;
    }
    if (!*at) return false;
    for (; *at && (quote || !strchr(" \t\n;|&()<>", *at)); at++) {
        if (quote ? *at == quote : *at == '"' || *at == '\'') {
            quote = quote ? 0 : *at;
            continue;
        }
        if (*at == '\\' && quote != '\'' && at[1]) at++;
        if (n < FS_PATH - 1) word[n++] = *at;
    }
    word[n] = 0;
    *line = at;
    return true;
}

static tare_status add_words(json_t *list, const char *key, const char *command, struct err *e)
{
    char word[FS_PATH], folder[FS_PATH] = "", path[FS_PATH];
    bool output;
    if (!strncmp(command, "cd /", 4) || !strncmp(command, "cd '/", 5)) {
        command += 3;
        next_word(&command, folder, &output);
    }
    while (next_word(&command, word, &output)) {
        if (fs_join(path, folder, word, NULL)) continue;
        if (!output && !fs_is_dir(path)) TRY(named_files_add(list, key, path, e));
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- parameters */

/* name: the plugin's name in its section. */
static tare_status add_values(json_t *list, const struct plugin *p, const char *name, const tare_value *values, struct err *e)
{
    char key[400];
    for (uint32_t i = 0; i < p->desc.n_params; i++) {
        const tare_param *param = &p->params[i];
        if (param->type != TARE_PARAM_PATH && !plugin_is_command(p, param)) continue;
        if (!values[i].s || !*values[i].s) continue;
        snprintf(key, sizeof key, "%s.%.120s.%.120s", plugin_section_kind(p->desc.kind), name, param->key);
        TRY(param->type == TARE_PARAM_PATH ? named_files_add(list, key, values[i].s, e) : add_words(list, key, values[i].s, e));
    }
    return TARE_OK;
}

/* Adds the files of a plugin with the values in the configuration; p NULL: none. */
static tare_status add_plugin_files(json_t *list, const struct config *c, const struct plugin *p, const char *name, struct err *e)
{
    OWNED(arena_free) struct arena a = {0};
    const tare_value *values;
    if (!p) return TARE_OK;
    arena_init(&a, "parameters of a plugin");
    TRY(plugin_params_as(p, name, c->params, &a, &values, e));
    return add_values(list, p, name, values, e);
}

/* The codebook's path may be a default that only its instance has. */
static tare_status add_instance_files(json_t *list, const struct plugin_instance *i, struct err *e)
{
    return i ? add_values(list, i->plugin, i->plugin->desc.name, i->values, e) : TARE_OK;
}

tare_status run_files_take(const struct run *r, json_t **out, struct err *e)
{
    const struct config *c = r->config;
    const struct plugin *const plugins[] = {estimate_plugin(r->learner.estimator), objective_plugin(r->engine.objective),
                                            curriculum_plugin(r->curriculum)};
    const struct verify *v = r->engine.verify;
    OWNED(json_decrefp) json_t *list = json_array();
    if (!list) FAIL(e, TARE_E_NOMEM, "out of memory for the checksums of files");
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++)
        if (plugins[i]) TRY(add_plugin_files(list, c, plugins[i], plugins[i]->desc.name, e));
    for (int64_t k = 0; k < verify_n_components(v); k++)
        TRY(add_plugin_files(list, c, verify_plugin(v, k), verify_component_name(v, k), e));
    TRY(add_instance_files(list, r->cluster.encoder, e));
    TRY(add_instance_files(list, r->cluster.codebook, e));
    *out = json_incref(list);
    return TARE_OK;
}

/* ---------------------------------------------------------------- a resumed run */

static tare_status add_change(void *ctx, const struct model_change *d, struct err *e)
{
    struct str *list = ctx;
    return str_addf(list, e, "%s%s = %s: %s %s", list->size ? "; " : "", d->key, d->path, d->file, d->what);
}

tare_status run_files_warn(const struct run *r, const json_t *files, struct err *e)
{
    OWNED(json_decrefp) json_t *then = NULL;
    OWNED(str_free) struct str changed = {0};
    TRY(named_files_recorded(r->config->run.dir, &then, e));
    TRY(named_files_compare(then, files, add_change, &changed, e));
    if (changed.size)
        log_warn("%s is resumed with changed files (by the checksums in manifest.json): %.1400s", r->config->run.dir, changed.data);
    return TARE_OK;
}
