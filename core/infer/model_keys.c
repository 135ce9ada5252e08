#include "infer/model_keys.h"

#include "base/fs.h"
#include "base/log.h"

#include <string.h>

tare_status model_key_set(struct config *c, const char *verb, const struct model_key *keys, int n_keys, const char *argument,
                          struct err *e)
{
    const char *equals = strchr(argument, '=');
    const int n = (int)(equals - argument);
    const char *near = NULL;
    int64_t nearest = INT64_MAX;
    char given[128], full[128];
    snprintf(given, sizeof given, "%.*s", n, argument);
    for (int i = 0; i < n_keys; i++) {
        snprintf(full, sizeof full, "%s.%s", keys[i].section, keys[i].key);
        if (!strcmp(given, full) || !strcmp(given, keys[i].key))
            return config_set(c, keys[i].section, keys[i].key, equals + 1, "command line", e);
        const int64_t distance = str_distance(given, strchr(given, '.') ? full : keys[i].key);
        if (distance < nearest) {
            nearest = distance;
            near = keys[i].key;
        }
    }
    const char *ours;
    if (config_is_foreign(given, &ours)) {
        bool taken = !ours;
        for (int i = 0; i < n_keys && !taken; i++) {
            snprintf(full, sizeof full, "%s.%s", keys[i].section, keys[i].key);
            taken = !strcmp(full, ours);
        }
        char where[300];
        snprintf(where, sizeof where, "tare %s has no key '%s'%s", verb, given, taken ? "" : ", and no equivalent");
        return config_hint(given, where, "", e);
    }
    FAIL(e, TARE_E_CONFIG, "tare %s has no key '%s'; the nearest is '%s', `tare %s --help` lists them", verb, given, near, verb);
}

tare_status model_keys_of_run(struct config *c, const char *run, bool messages, struct err *e)
{
    char path[FS_PATH], where[FS_PATH];
    OWNED(config_free) struct config own = {0};
    TRY(fs_join(path, run, "config.ini", e));
    if (!fs_exists(path)) return TARE_OK;
    TRY(config_load(&own, path, NULL, 0, e));
    const struct {
        const char *key, *value;
    } keys[] = {{"chat_template", own.data.chat_template},
                {"date", own.data.date},
                {"prompt", config_chosen(&own, "data", "prompt")},
                {"system", own.data.system},
                {"suffix", own.data.suffix}};
    const size_t n = messages ? 2 : sizeof keys / sizeof *keys;
    for (size_t i = 0; i < n; i++) {
        snprintf(where, sizeof where, "%s", config_where(&own, "data", keys[i].key));
        TRY(config_set(c, "data", keys[i].key, keys[i].value, where, e));
    }
    if (messages && own.data.prompt == PROMPT_PLAIN)
        log_warn("%s: data.prompt = plain, so this model was trained without a chat template; send its prompts to /v1/completions",
                 path);
    if (messages)
        log_info(
            "data.chat_template as in %s; requests bring their own messages, so the run's data.system and data.suffix are not added",
            path);
    else
        log_info("data.prompt = %s, and chat_template, system and suffix as in %s", keys[2].value, path);
    return TARE_OK;
}
