#include "cli/arguments.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "config/config.h"

#include <stdio.h>
#include <string.h>

/* one is reserved for run.dir */
enum { MOST = sizeof((struct arguments){0}.overrides) / sizeof(char *) - 1 };

static bool refuse_argument(const char *argument, const char *what)
{
    log_message(LOG_ERROR, "'%s': %s", argument, what);
    return false;
}

/* Refuses an option and, where it is a key of another trainer or misspelt, names the key. */
static bool refuse_option(const char *argument)
{
    char text[400], key[100];
    struct err e = {0};
    const char *word = argument + strspn(argument, "-");
    if (strchr(word, '.') && strchr(word, '=')) {
        snprintf(text, sizeof text, "unknown option; keys are set without dashes: %.300s", word);
        return refuse_argument(argument, text);
    }
    snprintf(key, sizeof key, "%.*s", (int)strcspn(word, "="), word);
    snprintf(text, sizeof text, "'%.200s'", argument);
    config_no_key(key, text, "unknown option; keys are set as section.key=value, and --help lists the options", &e);
    log_message(LOG_ERROR, "%s", e.message);
    return false;
}

/* Replaces a run's folder by its config.ini and puts run.dir first, so that a run.dir on the
 * command line overrides it. */
static void use_run(struct arguments *out)
{
    snprintf(out->run_config, sizeof out->run_config, "%.4000s/config.ini", out->file);
    if (!fs_is_dir(out->file) || !fs_exists(out->run_config)) return;
    snprintf(out->run_dir, sizeof out->run_dir, "run.dir=%.4000s", out->file);
    memmove(out->overrides + 1, out->overrides, (size_t)out->n * sizeof *out->overrides);
    out->overrides[0] = out->run_dir;
    out->n++;
    out->file = out->run_config;
}

static bool take_until(const char *text, struct arguments *out)
{
    if (text && !str_to_int(text, &out->until, NULL) && out->until > 0) return true;
    return refuse_argument("--until", "must be followed by a step, 1 or greater");
}

bool arguments_read(int argc, char **argv, struct arguments *out)
{
    *out = (struct arguments){0};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) return out->help = true;
        if (!strcmp(argv[i], "--resume"))
            out->resume = true;
        else if (!strcmp(argv[i], "--allow-change"))
            out->allow_change = true;
        else if (!strcmp(argv[i], "--until") && !strcmp(argv[0], "train")) {
            if (!take_until(argv[++i < argc ? i : argc], out)) return false;
        } else if (argv[i][0] == '-')
            return refuse_option(argv[i]);
        else if (!strchr(argv[i], '=')) {
            if (out->file) return refuse_argument(argv[i], "must be section.key=value; the configuration is already given");
            out->file = argv[i];
        } else if (out->n < MOST)
            out->overrides[out->n++] = argv[i];
        else
            return refuse_argument(argv[i], "too many arguments");
    }
    if (!out->file) return out->n ? refuse_argument(out->overrides[0], "CONFIG is missing before it") : false;
    use_run(out);
    return true;
}
