#include "cli/clusterers.h"

#include "base/fs.h"
#include "cluster/match.h"

#include <stdlib.h>
#include <string.h>

tare_status cli_plugin_open(const char *name, int32_t kind, const char *const *settings, int64_t n, struct cli_plugin *out,
                            struct err *e)
{
    const struct plugin *p;
    const struct config_param *params = NULL;
    const tare_value *values;
    arena_init(&out->arena, "plugin");
    out->open = true;
    TRY(plugin_open(name, kind, NULL, &p, e));
    TRY(plugin_settings(p, (struct plugin_words){settings, n}, NULL, &out->arena, &params, e));
    TRY(plugin_params(p, params, &out->arena, &values, e));
    return plugin_create(p, values, 0, NULL, &out->instance, e);
}

void cli_plugin_close(struct cli_plugin *p)
{
    if (!p->open) return;
    plugin_destroy(p->instance);
    arena_free(&p->arena);
    *p = (struct cli_plugin){0};
}

tare_status cli_codebook_open(const char *name, const char *const *settings, int64_t n, struct cli_plugin *out, struct err *e)
{
    if (!str_ends_with(name, ".safetensors")) return cli_plugin_open(name, TARE_KIND_CODEBOOK, settings, n, out, e);
    char path[FS_PATH + 8];
    if (snprintf(path, sizeof path, "path=%s", name) >= (int)sizeof path) FAIL(e, TARE_E_INVALID, "%s: the path is too long", name);
    OWNED(mem_free_at) const char **all = NULL;
    TRY(mem_new((n + 1) * (int64_t)sizeof *all, (void **)&all, e));
    all[0] = path;
    for (int64_t i = 0; i < n; i++) all[i + 1] = settings[i];
    return cli_plugin_open("kmeans", TARE_KIND_CODEBOOK, all, n + 1, out, e);
}

static bool key_equals(const char *key, const char *text, size_t n)
{
    return strlen(key) == n && !strncmp(key, text, n);
}

static bool has_old_key(const tare_param *param, const char *text, size_t n)
{
    for (const char *const *old = param->old_keys; old && *old; old++)
        if (key_equals(*old, text, n)) return true;
    return false;
}

static bool has_param(const struct plugin *p, const char *assignment)
{
    const size_t n = strcspn(assignment, "=");
    for (uint32_t i = 0; i < p->desc.n_params; i++)
        if (key_equals(p->params[i].key, assignment, n) || has_old_key(&p->params[i], assignment, n)) return true;
    return false;
}

/* Opens the encoder with identity "name/version key=value ... rest", which is split in place. Skips
 * words that do not name a parameter of the plugin. */
static tare_status open_by_identity(char *identity, const char *const *settings, int64_t n, struct cli_plugin *out, struct err *e)
{
    const struct plugin *p;
    OWNED(mem_free_at) const char **all = NULL;
    int64_t used = 0, words = 1;
    for (const char *c = identity; *c; c++) words += *c == ' ';
    identity[strcspn(identity, "/ ")] = 0;
    char *rest = identity + strlen(identity) + 1;
    TRY(plugin_open(identity, TARE_KIND_ENCODER, NULL, &p, e));
    TRY(mem_new((words + n) * (int64_t)sizeof *all, (void **)&all, e));
    char *save = NULL;
    for (char *word = strtok_r(rest, " ", &save); word; word = strtok_r(NULL, " ", &save))
        if (strchr(word, '=') && has_param(p, word)) all[used++] = word;
    for (int64_t i = 0; i < n; i++) all[used++] = settings[i];
    return cli_plugin_open(identity, TARE_KIND_ENCODER, all, used, out, e);
}

tare_status cli_encoder_for(struct plugin_instance *codebook, const char *codebook_name, const struct cli_choice *choice,
                            struct cli_plugin *out, struct err *e)
{
    if (!codebook->sizes.dim) return TARE_OK;
    if (choice->name) {
        TRY(cli_plugin_open(choice->name, TARE_KIND_ENCODER, choice->settings, choice->n, out, e));
    } else {
        OWNED(str_free) struct str identity = {0};
        TRY(match_identity(codebook, &identity, e));
        if (!identity.size)
            FAIL(e, TARE_E_CONFIG, "%s: does not record the encoder of its embeddings; name it with --encoder", codebook_name);
        TRY(open_by_identity(identity.data, choice->settings, choice->n, out, e));
    }
    return match_encoder(codebook, out->instance, codebook_name, e);
}
