#include "config/config.h"
#include "config/ini_file.h"
#include "config/keys.h"

#include <string.h>

/* Keys that a first run sets or may soon need. value NULL: the default, commented out. */
static const struct {
    const char *section, *key, *value;
} LINES[] = {{"model", "path", ""},
             {"data", "train", ""},
             {"data", "eval", NULL},
             {"data", "prompt", NULL},
             {"data", "suffix", NULL},
             {"verifier", "plugins", NULL},
             {"estimator", "plugin", NULL},
             {"codebook", "plugin", NULL},
             {"rollout", "prompts", NULL},
             {"rollout", "group_size", NULL},
             {"rollout", "max_new_tokens", NULL},
             {"loss", "entropy_coef", NULL},
             {"loss", "kl_coef", NULL},
             {"train", "steps", NULL},
             {"train", "lr", NULL},
             {"train", "max_grad_norm", NULL},
             {"eval", "every", NULL},
             {"eval", "after", NULL},
             {"checkpoint", "every", NULL},
             {"checkpoint", "keep", NULL},
             {"run", "dir", NULL},
             {"run", "seed", NULL},
             {"run", "device", NULL}};

static const char HEAD[] =
    "# A run needs two keys, model.path and data.train. Every other key below has its default; remove the ; to change it.\n"
    "#   tare config check FILE     checks keys, files and plugins\n"
    "#   tare train FILE            keys may also be given here: tare train FILE estimator.plugin=grpo\n"
    "# `tare config docs` explains every key, `tare plugin list` the estimators and verifiers.\n";

/* Adds a comment with lines of at most 100 characters. */
static tare_status add_comment(struct str *out, const char *text, struct err *e)
{
    while (*text) {
        size_t n = strlen(text);
        if (n > 100)
            for (n = 100; n && text[n] != ' ';) n--;
        TRY(str_addf(out, e, "# %.*s\n", (int)n, text));
        text += n + (text[n] == ' ');
    }
    return TARE_OK;
}

tare_status config_starter(struct str *out, struct err *e)
{
    const char *section = "";
    str_clear(out);
    TRY(str_add(out, HEAD, -1, e));
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
        const struct config_key *k = CONFIG_KEYS;
        while (k->section && (strcmp(k->section, LINES[i].section) || strcmp(k->key, LINES[i].key))) k++;
        if (!k->section) FAIL(e, TARE_E_INVALID, "%s.%s: no such key", LINES[i].section, LINES[i].key);
        if (strcmp(section, k->section)) TRY(str_addf(out, e, "\n[%s]\n", k->section));
        section = k->section;
        TRY(add_comment(out, k->doc, e));
        TRY(str_addf(out, e, "%s%s = ", LINES[i].value ? "" : ";", k->key));
        TRY(ini_quote(out, LINES[i].value ? LINES[i].value : k->fallback, e));
        TRY(str_add(out, "\n", 1, e));
    }
    return TARE_OK;
}
