#include "settle/settle.h"

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "plan/plan.h"
#include "plugin/plugin.h"
#include "template/chat.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NEW_TOKENS = 512 };

tare_status settle_model(const char *given, char *folder, struct err *e)
{
    char config[FS_PATH], path[FS_PATH];
    int64_t step;
    TRY(fs_join(config, given, "config.json", e));
    TRY(fs_join(path, given, "checkpoints", e));
    if (fs_exists(config) || !fs_is_dir(path)) {
        TRY(checkpoint_check(given, e));
        return fs_join(folder, "", given, e);
    }
    TRY(checkpoint_latest(given, folder, &step, e));
    if (step < 0) FAIL(e, TARE_E_NOT_FOUND, "%s: this run has no complete checkpoint; name another model", given);
    log_info("%s is a run folder: using its newest checkpoint, %s", given, folder);
    return TARE_OK;
}

/* Changes the value but keeps the recorded origin of the key, for messages. */
static tare_status set_model(struct config *c, const char *key, const char *given, struct err *e)
{
    char folder[FS_PATH], where[FS_PATH];
    if (!*given || !fs_is_dir(given)) return TARE_OK;
    TRY(settle_model(given, folder, e));
    if (!strcmp(folder, given)) return TARE_OK;
    snprintf(where, sizeof where, "%s", config_where(c, "model", key));
    return config_set(c, "model", key, folder, where, e);
}

static tare_status set_codebook(struct config *c, bool logs, struct err *e)
{
    const struct plugin *p;
    const struct plugin_search search = {.folder = c->run.plugins};
    if (config_codebook_settled(c)) return TARE_OK;
    if (plugin_open(c->estimator.plugin, TARE_KIND_ESTIMATOR, &search, &p, e))
        return err_prefix(e, "%s: estimator.plugin", config_where(c, "estimator", "plugin"));
    const bool by_cluster = plugin_requires(p, COLUMN_CLUSTER);
    if (by_cluster && logs)
        log_info("codebook.plugin = auto: %s works by cluster, so kmeans assigns prompts to %lld clusters (encoder %s)",
                 p->desc.name, (long long)c->codebook.clusters, c->encoder.plugin);
    return config_set(c, "codebook", "plugin", by_cluster ? "kmeans" : "none", "auto", e);
}

static int64_t new_tokens(int64_t context)
{
    const int64_t half = context / 2;
    return half < 1 ? 1 : half < NEW_TOKENS ? half : NEW_TOKENS;
}

tare_status settle_tokens(struct config *c, bool logs, struct err *e)
{
    struct model_shape shape;
    char text[32];
    if (!*c->model.path)
        FAIL(e, TARE_E_CONFIG, "model.path is missing; set it to a Hugging Face folder, a checkpoint or a run: model.path=FOLDER");
    if (c->rollout.max_new_tokens) return TARE_OK;
    TRY(plan_shape(c, 0, &shape, e));
    snprintf(text, sizeof text, "%lld", (long long)new_tokens(shape.max_position));
    if (logs)
        log_info("rollout.max_new_tokens = 0: completions of at most %s tokens (the context has %lld)", text,
                 (long long)shape.max_position);
    return config_set(c, "rollout", "max_new_tokens", text, "auto", e);
}

/* A resumed run keeps the date of its first start. */
static tare_status set_date(struct config *c, struct err *e)
{
    char path[FS_PATH], today[32];
    struct config run;
    const time_t now = time(NULL);
    struct tm t;
    if (*c->data.date) return TARE_OK;
    gmtime_r(&now, &t);
    strftime(today, sizeof today, "%Y-%m-%d", &t);
    TRY(fs_join(path, c->run.dir, "config.ini", e));
    if (fs_exists(path) && !config_load(&run, path, NULL, 0, NULL)) {
        if (*run.data.date && strlen(run.data.date) < sizeof today) memcpy(today, run.data.date, strlen(run.data.date) + 1);
        config_free(&run);
    }
    return config_set(c, "data", "date", today, "auto", e);
}

/* A template that cannot be read, or refuses the question, opens no thought here; the prompts of the
 * rows give the error. */
static tare_status set_opened(struct config *c, bool logs, struct err *e)
{
    struct chat *chat = NULL;
    struct err unread = {0};
    bool opened = false;
    if (c->verifier.opened != OPENED_AUTO) return TARE_OK;
    if (c->data.prompt == PROMPT_CHAT && *c->model.path && !chat_load(c->model.path, c->data.chat_template, &chat, &unread) &&
        !chat_set_kwargs(chat, c->data.chat_template_kwargs, &unread))
        opened = chat_opens_thought(chat);
    chat_free(chat);
    if (opened && logs)
        log_info("verifier.opened = auto: the chat template opens a thought, so completions that do not close it have no answer");
    return config_set(c, "verifier", "opened", opened ? "true" : "false", "auto", e);
}

static tare_status settle_keys(struct config *c, bool logs, struct faults *f, struct err *e)
{
    TRY(err_note_fault(f, set_date(c, e), e));
    TRY(err_note_fault(f, set_model(c, "path", c->model.path, e), e));
    TRY(err_note_fault(f, set_model(c, "reference", c->model.reference, e), e));
    TRY(err_note_fault(f, set_codebook(c, logs, e), e));
    TRY(err_note_fault(f, set_opened(c, logs, e), e));
    return err_note_fault(f, settle_tokens(c, logs, e), e);
}

tare_status settle(struct config *c, bool logs, struct faults *f, struct err *e)
{
    return err_as_config(settle_keys(c, logs, f, e), e);
}

/* The clocks of ranks may show different days, at midnight or always. A rank with a date from the
 * user keeps it: a rank whose date differs is refused later, where all keys are compared. */
tare_status settle_ranks(struct config *c, struct comm *comm, struct err *e)
{
    const bool given = *c->data.date;
    char date[32] = "";
    TRY(comm_agree(comm, settle(c, !comm->rank, NULL, e), e));
    if (comm->size == 1) return TARE_OK;
    if (!given) snprintf(date, sizeof date, "%s", c->data.date);
    TRY(comm->broadcast(comm, date, sizeof date, 0, e));
    date[sizeof date - 1] = 0;
    return comm_agree(comm, given || !*date ? TARE_OK : config_set(c, "data", "date", date, "auto", e), e);
}
