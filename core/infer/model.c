#include "infer/model.h"

#include "base/fs.h"
#include "base/log.h"
#include "infer/model_keys.h"
#include "model/adapter.h"
#include "settle/settle.h"

#include <string.h>

/* The first CHANGE keys may be changed by infer_set. */
static const struct model_key KEYS[] = {
    {"rollout", "group_size"},
    {"rollout", "max_new_tokens"},
    {"rollout", "temperature"},
    {"rollout", "top_p"},
    {"rollout", "top_k"},
    {"rollout", "min_p"},
    {"rollout", "stop_ids"},
    {"rollout", "ignore_eos"},
    {"run", "seed"},
    {"rollout", "batch"},
    {"rollout", "kv_tokens"},
    {"rollout", "speculate"},
    {"rollout", "max_prompt_tokens"},
    MODEL_KEYS_COMMON,
    {"data", "prompt"},
    {"data", "chat_template"},
    {"data", "chat_template_kwargs"},
    {"data", "system"},
    {"data", "suffix"},
};
enum { N_KEYS = sizeof KEYS / sizeof *KEYS, CHANGE = 9 };

static tare_status open_engine(struct infer *m, const char *given, struct err *e)
{
    char path[FS_PATH], folder[FS_PATH], base[FS_PATH];
    TRY(settle_model(given, folder, e));
    TRY(config_set(&m->config, "model", "path", folder, "command line", e));
    TRY(adapter_base(folder, &m->config.model, base, e));
    TRY(fs_join(path, base, "config.json", e)); /* if it is missing, the loader reports it */
    if (fs_exists(path)) TRY(settle_tokens(&m->config, false, e));
    TRY(fs_join(path, base, "tokenizer.json", e));
    TRY(engine_open(&m->engine, ENGINE_SAMPLER | (fs_exists(path) ? ENGINE_TOKENIZER : 0), e));
    const long long most = (long long)m->config.rollout.max_new_tokens, context = (long long)m->engine.model->shape.max_position;
    if (most >= context)
        log_warn(
            "rollout.max_new_tokens = %lld, but the context of %s, for prompt and completion together, has %lld tokens: completions end there; set a smaller rollout.max_new_tokens",
            most, folder, context);
    return TARE_OK;
}

static tare_status set_key(struct infer *m, const char *assignment, int n_keys, struct err *e)
{
    if (!strchr(assignment, '=')) FAIL(e, TARE_E_CONFIG, "%s: expected key=value; see tare generate --help", assignment);
    TRY(model_key_set(&m->config, "generate", KEYS, n_keys, assignment, e));
    const char *key = strncmp(assignment, "rollout.", 8) ? assignment : assignment + 8;
    m->group_given = m->group_given || !strncmp(key, "group_size=", 11);
    return TARE_OK;
}

tare_status infer_set(struct infer *m, const char *assignment, struct err *e)
{
    return set_key(m, assignment, CHANGE, e);
}

tare_status infer_open(struct infer *m, const char *given, const char *const *settings, int64_t n, struct err *e)
{
    TRY(config_load(&m->config, NULL, NULL, 0, e));
    engine_init(&m->engine, &m->config, NULL);
    TRY(model_keys_of_run(&m->config, given, false, e));
    for (int64_t i = 0; i < n; i++) TRY(set_key(m, settings[i], N_KEYS, e));
    return open_engine(m, given, e);
}

void infer_close(struct infer *m)
{
    engine_close(&m->engine);
    config_free(&m->config);
}
