/* tare serve: an OpenAI-compatible HTTP server. */
#include "base/fs.h"
#include "base/log.h"
#include "cli/cli.h"
#include "infer/model_keys.h"
#include "model/adapter.h"
#include "serve/serve.h"
#include "settle/settle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define OPTION_LINE(NAME, OPTION, DEFAULT, LEAST, MOST, WHAT) "  --" OPTION " " #DEFAULT "\n      " WHAT "\n"

const char serve_usage[] =
    "usage: tare serve [NAME=]MODEL [[NAME=]MODEL ...] [section.key=value ...] [--option value ...]\n\n"
    "Serves models over HTTP with OpenAI's API: /v1/completions, /v1/chat/completions, /v1/models; also /health, and /metrics\n"
    "for Prometheus. MODEL is a Hugging Face folder, the folder of an adapter, or the folder of a run: its newest checkpoint.\n"
    "NAME defaults to the name of the folder. Requests join the running batch as slots become free; their tokens do not depend\n"
    "on the rest of the batch. SIGTERM and SIGINT stop the server after the running requests have finished. See docs/serving.md.\n\n"
    "Options, with their defaults:\n"
    "  --host 127.0.0.1\n"
    "      address to listen on. Addresses that other machines can reach require a key\n"
    "  --allow-host NAME[,NAME ...]\n"
    "      further names by which clients reach a server without a key. Requests for any other name are refused\n"
    "  --key-file FILE\n"
    "      file whose first line is the key that requests send as Authorization: Bearer KEY; or set the environment variable\n"
    "      TARE_SERVE_KEY\n" SERVE_OPTIONS(
        OPTION_LINE) "\nKeys, written with their section (`tare config docs` describes them):\n"
                     "  rollout.{batch,kv_tokens,speculate}, run.{seed,threads,kernels,device,deterministic}, data.{chat_template,chat_template_kwargs,date}\n"
                     "  model.{base,dtype,weights,rope_theta,max_position_embeddings}\n"
                     "rollout.batch defaults to 32. run.seed is the seed of requests without one.\n";

static const struct model_key KEYS[] = {
    {"rollout", "batch"}, {"rollout", "kv_tokens"},  {"rollout", "speculate"},         {"run", "seed"},
    MODEL_KEYS_COMMON,    {"data", "chat_template"}, {"data", "chat_template_kwargs"}, {"data", "date"},
};
enum { N_KEYS = sizeof KEYS / sizeof *KEYS, MODELS = 64 };

struct serving {
    struct serve_options options;
    struct serve_model *models; /* [MODELS] */
    int64_t n;
    char key_file[FS_PATH];
    struct str key;
};

/* ---- options */

#define OPTION_ROW(NAME, OPTION, DEFAULT, LEAST, MOST, WHAT) {OPTION, LEAST, MOST, offsetof(struct serve_options, NAME)},
static const struct {
    const char *name;
    int64_t least, most;
    size_t at;
} OPTIONS[] = {SERVE_OPTIONS(OPTION_ROW)};

static tare_status set_option(struct serving *s, const char *option, const char *text, struct err *e)
{
    const char *name = option + 2;
    int64_t value;
    if (!strcmp(name, "host")) {
        s->options.host = text;
        return TARE_OK;
    }
    if (!strcmp(name, "allow-host")) {
        s->options.allowed_hosts = text;
        return TARE_OK;
    }
    if (!strcmp(name, "key-file")) return fs_join(s->key_file, ".", text, e);
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++) {
        if (strcmp(name, OPTIONS[i].name) != 0) continue;
        if (str_to_int(text, &value, e)) return err_prefix(e, "%s", option);
        if (value < OPTIONS[i].least || value > OPTIONS[i].most)
            FAIL(e, TARE_E_CONFIG, "%s %s: must be an integer from %lld to %lld", option, text, (long long)OPTIONS[i].least,
                 (long long)OPTIONS[i].most);
        memcpy((char *)&s->options + OPTIONS[i].at, &value, sizeof value);
        return TARE_OK;
    }
    FAIL(e, TARE_E_CONFIG, "unknown option %s; `tare serve --help` lists the options", option);
}

/* Reads the key from a file or the environment, because every user can read the command line. */
static tare_status read_key(struct serving *s, struct err *e)
{
    const char *environment = getenv("TARE_SERVE_KEY");
    if (*s->key_file)
        TRY(fs_read_written(s->key_file, &s->key, e));
    else if (environment)
        TRY(str_add(&s->key, environment, -1, e));
    else
        return TARE_OK;
    s->key.size = (int64_t)strcspn(s->key.data ? s->key.data : "", "\r\n");
    if (!s->key.size)
        FAIL(e, TARE_E_CONFIG, "%s: the key must not be empty",
             *s->key_file ? s->key_file : "the environment variable TARE_SERVE_KEY");
    s->key.data[s->key.size] = 0;
    s->options.key = s->key.data;
    return TARE_OK;
}

/* ---- models */

static bool is_key(const char *argument)
{
    for (int i = 0; i < N_KEYS; i++) {
        const size_t n = strlen(KEYS[i].section);
        if (!strncmp(argument, KEYS[i].section, n) && argument[n] == '.') return true;
    }
    return false;
}

/* Sets a model's name, which appears in addresses and metrics: letters, digits and a few signs. */
static tare_status set_name(struct serving *s, struct serve_model *m, const char *name, int n, struct err *e)
{
    bool good = n > 0 && n < (int)sizeof m->name;
    for (int i = 0; good && i < n; i++) good = isalnum((unsigned char)name[i]) || strchr("._-:/+@", name[i]);
    if (!good)
        FAIL(e, TARE_E_CONFIG, "invalid model name '%.*s': use 1 to %zu letters, digits and ._-:/+@, as NAME=MODEL", n, name,
             sizeof m->name - 1);
    snprintf(m->name, sizeof m->name, "%.*s", n, name);
    for (int64_t i = 0; i < s->n; i++)
        if (!strcmp(s->models[i].name, m->name))
            FAIL(e, TARE_E_CONFIG, "two models have the name '%s'; name them with NAME=MODEL", m->name);
    return TARE_OK;
}

/* Names a model after its folder; the path may end in slashes. */
static tare_status name_of_folder(struct serving *s, struct serve_model *m, const char *path, struct err *e)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin && path[begin - 1] != '/') begin--;
    return set_name(s, m, path + begin, (int)(end - begin), e);
}

static tare_status add_model(struct serving *s, const char *argument, int argc, char **argv, struct err *e)
{
    const char *equals = strchr(argument, '='), *given = equals ? equals + 1 : argument;
    char folder[FS_PATH];
    if (s->n == MODELS) FAIL(e, TARE_E_CONFIG, "too many models: at most %d", MODELS);
    struct serve_model *m = &s->models[s->n];
    if (!fs_is_dir(given))
        FAIL(e, TARE_E_NOT_FOUND, "%s: no such folder; name the folder of a Hugging Face model, an adapter or a run%s%s%s", given,
             equals ? " ('" : "", equals ? argument : "", equals ? "' is read as NAME=MODEL; a key is section.key=value)" : "");
    TRY(equals ? set_name(s, m, argument, (int)(equals - argument), e) : name_of_folder(s, m, given, e));
    TRY(config_load(&m->config, NULL, NULL, 0, e));
    s->n++;
    TRY(model_keys_of_run(&m->config, given, true, e));
    for (int i = 1; i < argc; i++)
        if (is_key(argv[i])) TRY(model_key_set(&m->config, "serve", KEYS, N_KEYS, argv[i], e));
    TRY(settle_model(given, folder, e));
    return config_set(&m->config, "model", "path", folder, "command line", e);
}

static tare_status read_serve_arguments(struct serving *s, int argc, char **argv, struct err *e)
{
    TRY(mem_new(MODELS * (int64_t)sizeof *s->models, (void **)&s->models, e));
    for (int i = 1; i < argc; i++) {
        if (is_key(argv[i])) continue;
        if (strncmp(argv[i], "--", 2) != 0) {
            TRY(add_model(s, argv[i], argc, argv, e));
            continue;
        }
        if (i + 1 == argc) FAIL(e, TARE_E_CONFIG, "%s: missing value; `tare serve --help` lists the options", argv[i]);
        TRY(set_option(s, argv[i], argv[i + 1], e));
        i++;
    }
    return read_key(s, e);
}

int cmd_serve(int argc, char **argv)
{
#define OPTION_DEFAULT(NAME, OPTION, DEFAULT, LEAST, MOST, WHAT) .NAME = DEFAULT,
    struct serving s = {.options = {.host = "127.0.0.1", SERVE_OPTIONS(OPTION_DEFAULT)}};
    struct err e = {0};
    if (argc < 2) return cli_usage(serve_usage);
    tare_status status = read_serve_arguments(&s, argc, argv, &e);
    if (!status && !s.n) {
        log_message(LOG_ERROR, "MODEL is missing");
        status = TARE_E_CONFIG;
        cli_usage(serve_usage);
    } else {
        if (!status) status = serve_run(&s.options, s.models, s.n, &e);
        if (status) log_error(&e);
    }
    for (int64_t i = 0; i < s.n; i++) config_free(&s.models[i].config);
    mem_free(s.models);
    str_free(&s.key);
    return status ? err_exit_code(status) : 0;
}
