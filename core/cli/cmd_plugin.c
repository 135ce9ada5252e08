/* tare plugin: what plugins there are, what they take. */
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "plugin/plugin.h"

#include <stdio.h>
#include <string.h>

static const char USAGE[] =
    "usage: tare plugin list [--json]\n"
    "       tare plugin info PLUGIN [--ini | --json | --md]\n"
    "PLUGIN: a name on the search path, or a file. list looks into TARE_PLUGIN_PATH, the folder plugins beside the program, and\n"
    "PREFIX/lib/tare; a name found twice is taken from the first place.\n";

struct listing {
    bool json;
    struct str text;
    int64_t n, broken;
};

static tare_status list_one(void *ctx, const char *path, const struct plugin *p, const struct err *why)
{
    struct listing *l = ctx;
    struct err e = {0};
    if (!p) {
        l->broken++;
        log_warn("%s: cannot be used: %s", path, why->message);
        return TARE_OK;
    }
    l->n++;
    if (l->json) return plugin_describe(p, PLUGIN_JSON, &l->text, &e);
    return str_addf(&l->text, &e, "%-10s %-22s %-8s %s\n", plugin_kind_name(p->desc.kind), p->desc.name, p->desc.version,
                    p->desc.summary);
}

static int print(const struct str *text)
{
    if (text->size) fwrite(text->data, 1, (size_t)text->size, stdout);
    if (!fflush(stdout) && !ferror(stdout)) return 0;
    log_message(LOG_ERROR, "standard output cannot be written");
    return 1;
}

static int list(bool json)
{
    struct listing l = {.json = json};
    struct err e = {0};
    int rc = 1;
    if (plugin_list(NULL, list_one, &l, &e))
        log_error(&e);
    else
        rc = print(&l.text);
    if (!rc && !l.n) log_warn("no plugin was found; set TARE_PLUGIN_PATH");
    str_free(&l.text);
    return rc;
}

struct asked {
    enum plugin_format format;
    struct str text;
    struct err *e;
};

static tare_status info_one(void *ctx, const char *path, const struct plugin *p, const struct err *why)
{
    (void)path, (void)why;
    struct asked *a = ctx;
    return plugin_describe(p, a->format, &a->text, a->e);
}

/* The plugins of a file, or of a name in every kind. */
static int info(const char *name, enum plugin_format format)
{
    struct err e = {0}, first = {0};
    struct asked a = {.format = format, .e = &e};
    const struct plugin *p;
    tare_status status = TARE_E_NOT_FOUND;
    if (strstr(name, ".so:") || !(strchr(name, '/') || strstr(name, ".so"))) {
        for (int32_t kind = TARE_ESTIMATOR; kind <= TARE_CODEBOOK; kind++) {
            struct err *slot = first.code ? &e : &first;
            const tare_status got = plugin_open(name, kind, NULL, &p, slot);
            if (!got) status = info_one(&a, NULL, p, NULL);
            if (got && got != TARE_E_NOT_FOUND && got != TARE_E_CONFIG) first = *slot;
        }
        if (status == TARE_E_NOT_FOUND) e = first;
    } else {
        status = plugin_each(name, info_one, &a, &e);
    }
    int rc = status ? err_exit_code(status) : print(&a.text);
    if (status) log_error(&e);
    str_free(&a.text);
    return rc;
}

int cmd_plugin(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "", *name = NULL;
    enum plugin_format format = PLUGIN_TEXT;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return fputs(USAGE, stdout) < 0;
    }
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            format = PLUGIN_JSON;
        else if (!strcmp(argv[i], "--ini"))
            format = PLUGIN_INI;
        else if (!strcmp(argv[i], "--md"))
            format = PLUGIN_MARKDOWN;
        else if (argv[i][0] == '-' || name)
            return fprintf(stderr, "tare: plugin %s: unexpected '%s'\n%s", verb, argv[i], USAGE), 2;
        else
            name = argv[i];
    }
    if (!strcmp(verb, "list") && !name && (format == PLUGIN_TEXT || format == PLUGIN_JSON)) return list(format == PLUGIN_JSON);
    if (!strcmp(verb, "info") && name) return info(name, format);
    return fputs(USAGE, stderr), 2;
}
