/* Which models a run reads, and whether one that goes on reads those that it was trained with. What comes out of a checkpoint then is not read from them: the
 * weights of the policy and of the process reward model; their config.json is compared with the checkpoint's own (model_check_folder). */
#include "base/log.h"
#include "loop/run.h"
#include "model/adapter.h"
#include "observe/model_sums.h"

#include <stdio.h>
#include <string.h>

enum { ROLES = 5 };
static const char POLICY[] = "model.path", PROCESS[] = "process_reward.model";

/* base: room for the folder of an adapter's base */
static tare_status roles_of(const struct run *r, struct model_role roles[ROLES], int *n, char base[FS_PATH], struct err *e)
{
    const struct config *c = r->config;
    const bool own_reference = r->engine.reference && (*c->model.reference || !r->engine.model->lora);
    *n = 0;
    roles[(*n)++] = (struct model_role){POLICY, c->model.path};
    TRY(adapter_base(c->model.path, &c->model, base, e));
    if (strcmp(base, c->model.path)) roles[(*n)++] = (struct model_role){"model.base", base};
    if (own_reference)
        roles[(*n)++] = (struct model_role){"model.reference", *c->model.reference ? c->model.reference : c->model.path};
    if (r->engine.process)
        roles[(*n)++] = (struct model_role){PROCESS, *c->process_reward.model ? c->process_reward.model : c->model.path};
    if (*c->data.chat_template) roles[(*n)++] = (struct model_role){"data.chat_template", c->data.chat_template};
    return TARE_OK;
}

struct changes {
    const struct run *run;
    bool checkpoint; /* the run goes on from one */
    struct str refused, unused;
};

/* Whether nothing of the file is used. A checkpoint as model.path has a generation_config.json although the model may have had none. */
static bool is_unused(const struct changes *c, const struct model_change *d)
{
    const bool own = !strcmp(d->key, PROCESS) && *c->run->config->process_reward.model;
    if (!c->checkpoint || (strcmp(d->key, POLICY) && strcmp(d->key, PROCESS))) return false;
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

static tare_status judge(const struct changes *c, struct err *e)
{
    const char *dir = c->run->config->run.dir;
    if (c->refused.size && !c->run->start->allow_change)
        FAIL(e, TARE_E_CONFIG,
             "%s: --resume would go on with another model: %.1400s (by the sums in manifest.json); put the files back, or add "
             "--allow-change to go on with these",
             dir, c->refused.data);
    if (c->refused.size) log_warn("%s goes on with another model: %.1400s", dir, c->refused.data);
    if (c->unused.size) log_info("%.1400s; what the checkpoint has is taken in its place", c->unused.data);
    return TARE_OK;
}

tare_status models_take(struct run *r, int64_t step, struct err *e)
{
    struct model_role roles[ROLES];
    struct changes c = {.run = r, .checkpoint = step >= 0};
    OWNED(json_decrefp) json_t *then = NULL;
    char base[FS_PATH];
    int n;
    if (r->comm.rank) return TARE_OK;
    TRY(roles_of(r, roles, &n, base, e));
    TRY(model_sums(roles, n, &r->models, e));
    if (!r->start->resume) return TARE_OK;
    TRY(model_sums_recorded(r->config->run.dir, &then, e));
    tare_status status = model_sums_compare(then, r->models, take_change, &c, e);
    if (!status) status = judge(&c, e);
    str_free(&c.refused);
    str_free(&c.unused);
    return status;
}
