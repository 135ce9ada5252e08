/* Compares the model files of a resumed training with those it was trained with. Files whose
 * contents come from the checkpoint are not compared: the weights of the policy and of the process
 * reward model; their config.json is compared with the checkpoint's (model_check_folder). */
#include "engine/models.h"

#include "base/fs.h"
#include "base/log.h"
#include "model/adapter.h"
#include "observe/model_sums.h"

#include <stdio.h>
#include <string.h>

enum { ROLES = 5 };
static const char POLICY[] = "model.path", PROCESS[] = "process_reward.model";

/* base: FS_PATH bytes for the folder of an adapter's base */
static tare_status roles_of(const struct engine *g, struct model_role roles[ROLES], int *n, char base[FS_PATH], struct err *e)
{
    const struct config *c = g->config;
    const bool own_reference = g->reference && (*c->model.reference || !g->model->lora);
    *n = 0;
    if (*g->model->folder) { /* a new model comes from no file */
        roles[(*n)++] = (struct model_role){POLICY, c->model.path};
        TRY(adapter_base(c->model.path, &c->model, base, e));
        if (strcmp(base, c->model.path)) roles[(*n)++] = (struct model_role){"model.base", base};
    }
    if (own_reference)
        roles[(*n)++] = (struct model_role){"model.reference", *c->model.reference ? c->model.reference : c->model.path};
    if (g->reward_model)
        roles[(*n)++] = (struct model_role){PROCESS, *c->process_reward.model ? c->process_reward.model : c->model.path};
    if (*c->data.chat_template) roles[(*n)++] = (struct model_role){"data.chat_template", c->data.chat_template};
    return TARE_OK;
}

struct changes {
    const struct models_resume *how;
    const struct config *config;
    struct str refused, unused;
};

/* True if the file is not used at all. A checkpoint as model.path has a generation_config.json even
 * if the model had none. */
static bool is_unused(const struct changes *c, const struct model_change *d)
{
    const bool own = !strcmp(d->key, PROCESS) && *c->config->process_reward.model;
    if (!c->how->checkpoint || (strcmp(d->key, POLICY) && strcmp(d->key, PROCESS))) return false;
    if (strstr(d->file, ".safetensors")) return true;
    return !own && (!strcmp(d->file, "config.json") || !strcmp(d->file, "adapter_config.json") ||
                    (d->is_new && !strcmp(d->file, "generation_config.json")));
}

static tare_status take_change(void *ctx, const struct model_change *d, struct err *e)
{
    struct changes *c = ctx;
    struct str *list = is_unused(c, d) ? &c->unused : &c->refused;
    return str_addf(list, e, "%s%s = %s: %s %s", list->size ? "; " : "", d->key, d->path, d->file, d->what);
}

/* Compares whether the policy was new then and is new now. */
static tare_status compare_policy(struct changes *c, const json_t *then, const json_t *now, struct err *e)
{
    const bool was = json_object_get(then, POLICY), is = json_object_get(now, POLICY);
    if (was == is) return TARE_OK;
    return str_addf(&c->refused, e, "%s = %s: %s", POLICY, c->config->model.path,
                    is ? "was not there, and a new model was begun" : "is missing, and a new model would replace it");
}

static tare_status check_changes(const struct changes *c, struct err *e)
{
    const char *dir = c->how->folder;
    if (c->refused.size && !c->how->allow_change)
        FAIL(
            e, TARE_E_CONFIG,
            "%s: --resume would continue with another model: %.1400s (by the checksums in manifest.json); put the files back, or %s",
            dir, c->refused.data, c->how->advice);
    if (c->refused.size) log_warn("%s is resumed with another model: %.1400s", dir, c->refused.data);
    if (c->unused.size) log_info("%.1400s; the checkpoint's values are used instead", c->unused.data);
    return TARE_OK;
}

/* *then is NULL if the recorded checksums cannot be read and how->allow_change accepts that, with a
 * warning. */
static tare_status read_recorded(const struct models_resume *how, json_t **then, struct err *e)
{
    const tare_status status = model_sums_recorded(how->folder, then, e);
    if (status && !how->allow_change)
        return err_prefix(e, "cannot check that the models are unchanged; put the file back, or %s", how->advice);
    if (!status) return TARE_OK;
    log_warn("%s: cannot check that the models are unchanged", e->message);
    *e = (struct err){0};
    return TARE_OK;
}

static tare_status compare_models(const struct models_resume *how, const struct config *config, const json_t *now, struct err *e)
{
    struct changes c = {.how = how, .config = config};
    OWNED(json_decrefp) json_t *then = NULL;
    TRY(read_recorded(how, &then, e));
    if (!then) return TARE_OK;
    tare_status status = compare_policy(&c, then, now, e);
    if (!status) status = model_sums_compare(then, now, take_change, &c, e);
    if (!status) status = check_changes(&c, e);
    str_free(&c.refused);
    str_free(&c.unused);
    return status;
}

tare_status models_take(const struct engine *g, const struct models_resume *how, json_t **out, struct err *e)
{
    struct model_role roles[ROLES];
    char base[FS_PATH];
    int n;
    TRY(roles_of(g, roles, &n, base, e));
    TRY(model_sums(roles, n, out, e));
    return how ? compare_models(how, g->config, *out, e) : TARE_OK;
}
