#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "lab/audit/audit.h"

#include <math.h>
#include <string.h>

const char audit_usage[] =
    "usage: tare audit DUMP ... [section.key=value ...] [options]\n"
    "Recomputes each rollout of a dump (answer, group, reward, advantage, loss scale) and names the first that disagrees.\n"
    "DUMP is a file of JSON lines, a folder of such files, or the folder of a run, which brings its configuration.\n"
    "  as=NAME               the conventions of verl, trl, openrlhf, slime or nemo\n"
    "  verifier.plugins=...  verifiers for the completions; default: math\n"
    "  data.train=FILE       answers and questions that the dump lacks or is compared with\n"
    "  rollout.group_size=G  default: the number of rollouts that most prompts have\n"
    "  --config FILE         a configuration to start from\n"
    "  --format NAME         tare, verl, trl, openrlhf, slime; default: by the columns\n"
    "  --field NAME=COLUMN   column or path (metadata.answer) of step, group, prompt, completion, answer, reward (also a sum:\n"
    "                        a+0.5*b), advantage, weight, length or loss_scale; groups=order or groups=prompt. Repeatable\n"
    "  --rewards WRONG,RIGHT rewards in the dump for the verifier's 0 and 1; default 0,1\n"
    "  --tolerance X         |a - b| <= X max(1, |b|) agrees; default 1e-5\n"
    "  --json                print one JSON object\n"
    "Exit status: 0 no rollout disagrees, 1 some do, 2 the dump could not be audited, or neither its rewards nor its advantages\n"
    "could be checked.\n";

struct audit_arguments {
    struct audit_options o;
    const char *file, *overrides[256], *bad;
    int64_t n;
    bool json;
};

static bool take_range(const char *text, struct audit_options *o)
{
    char first[64];
    const char *comma = strchr(text, ',');
    if (!comma || comma - text >= (long)sizeof first) return false;
    snprintf(first, sizeof first, "%.*s", (int)(comma - text), text);
    return !str_to_double(first, &o->wrong, NULL) && !str_to_double(comma + 1, &o->right, NULL) && isfinite(o->wrong) &&
           isfinite(o->right) && o->wrong != o->right;
}

/* Returns false if the option is unknown or its value invalid. */
static bool take_option(struct audit_arguments *a, const char *option, const char *value)
{
    if (!strcmp(option, "--config")) {
        a->file = value;
        return true;
    }
    if (!strcmp(option, "--format")) {
        a->o.format = value;
        return true;
    }
    if (!strcmp(option, "--field") && a->o.n_fields < AUDIT_MAPS) {
        a->o.fields[a->o.n_fields++] = value;
        return true;
    }
    if (!strcmp(option, "--rewards")) return take_range(value, &a->o);
    if (!strcmp(option, "--tolerance"))
        return !str_to_double(value, &a->o.tolerance, NULL) && a->o.tolerance >= 0 && a->o.tolerance < 1;
    return false;
}

static bool read_audit_arguments(int argc, char **argv, struct audit_arguments *a)
{
    for (int i = 1; i < argc; i++) {
        a->bad = argv[i];
        if (!strcmp(argv[i], "--json")) {
            a->json = true;
        } else if (argv[i][0] == '-') {
            if (i + 1 == argc || !take_option(a, argv[i], argv[i + 1])) return false;
            i++;
        } else if (strchr(argv[i], '=') && !fs_exists(argv[i])) {
            if (a->n == 256) return false;
            a->overrides[a->n++] = argv[i];
        } else if (a->o.n_dumps < AUDIT_DUMPS) {
            a->o.dumps[a->o.n_dumps++] = argv[i];
        } else {
            return false;
        }
    }
    a->bad = NULL;
    return true;
}

/* Loads --config, else the configuration of the run if the dump is a run's folder. */
static tare_status load_config(struct audit_arguments *a, struct config *c, struct err *e)
{
    char path[FS_PATH];
    if (!a->file) {
        TRY(fs_join(path, a->o.dumps[0], "config.ini", e));
        if (fs_exists(path)) return config_load(c, path, a->overrides, a->n, e);
    }
    return config_load(c, a->file, a->overrides, a->n, e);
}

/* code: the exit status described in audit_usage. */
static tare_status run_audit(struct audit_arguments *a, int *code, struct err *e)
{
    OWNED(config_free) struct config c = {0};
    OWNED(str_free) struct str out = {0};
    OWNED(json_decrefp) json_t *result = NULL;
    TRY(load_config(a, &c, e));
    a->o.config = &c;
    TRY(audit(&a->o, &result, e));
    TRY(a->json ? json_print(result, &out, e) : audit_print(result, &out, e));
    if (a->json) TRY(str_add(&out, "\n", 1, e));
    TRY(a->json ? cli_print(&out, e) : cli_show(&out, e));
    const bool computed = json_bool_or(result, "computed", 0);
    if (a->json && !computed) log_message(LOG_ERROR, "nothing could be checked: neither rewards nor advantages");
    *code = !json_bool_or(result, "agrees", 0) ? 1 : computed ? 0 : 2;
    return TARE_OK;
}

int cmd_audit(int argc, char **argv)
{
    struct err e = {0};
    int code = 2;
    struct audit_arguments a = {.o = {.tolerance = 1e-5, .right = 1}};
    json_end_with(2);
    if (!read_audit_arguments(argc, argv, &a)) return cli_unexpected(a.bad, audit_usage);
    if (!a.o.n_dumps) return cli_usage(audit_usage);
    if (run_audit(&a, &code, &e)) {
        log_error(&e);
        return 2;
    }
    return code;
}
