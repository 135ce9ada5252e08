/* tare plugin: lists, describes, checks and creates plugins, and lists their columns. */
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "plugin/internal.h"
#include "plugin/new.h"

#include <stdio.h>
#include <string.h>

#define KIND_USAGE(CONSTANT, NAME, ...) " " #NAME
const char plugin_usage[] =
    "usage: tare plugin list [--json | --md]\n"
    "       tare plugin info PLUGIN [--ini | --json | --md]\n"
    "       tare plugin check PLUGIN [key=value ...] [rows=FILE] [--only TEST] [--seed S] [--limit SECONDS] [--json | --tap]\n"
    "                         [--fewer N] [--in-process]\n"
    "       tare plugin check --all [--only TEST] [--seed S] [--limit SECONDS]\n"
    "       tare plugin columns [--md]\n"
    "       tare plugin new KIND NAME [--lang c | cpp | rust]\n"
    "columns lists the columns that a plugin can want.\n"
    "check --fewer N makes the N-th part of the rounds, for a plugin that starts a program for each verdict.\n"
    "check --all checks the built-in plugins. rows: rows of a data set for a verifier that reads their fields, a JSON object a line.\n"
    "PLUGIN is a name on the search path, or a file. The search path is TARE_PLUGIN_PATH, the folder plugins next to the program,\n"
    "and PREFIX/lib/tare; the first match is used.\n"
    "KIND:" PLUGIN_KINDS(KIND_USAGE) "\n";

struct listing {
    enum plugin_format format;
    int32_t kind; /* 0: all */
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
    if (l->kind && l->kind != p->desc.kind) return TARE_OK;
    l->n++;
    if (l->format == PLUGIN_MARKDOWN && str_add(&l->text, "\n", 1, &e)) return e.code;
    if (l->format != PLUGIN_TEXT) return plugin_describe(p, l->format, &l->text, &e);
    return str_addf(&l->text, &e, "%-10s %-22s %-8s %s\n", plugin_kind_name(p->desc.kind), p->desc.name, p->desc.version,
                    p->desc.summary);
}

static int print_output(const struct str *text)
{
    struct err e = {0};
    if (!cli_print(text, &e)) return 0;
    log_error(&e);
    return 1;
}

/* Prints docs/plugins.md: every plugin under the heading of its kind; no heading for a kind without
 * plugins. */
static tare_status list_markdown(struct listing *l, struct err *e)
{
    TRY(str_add(
        &l->text,
        "# Plugins\n\nWritten by `tare plugin list --md` from the tables in the plugins. Parameters go into the configuration's section\n`[KIND.NAME]`, or on the command line as `KIND.NAME.key=value`.\n",
        -1, e));
    for (l->kind = PLUGIN_FIRST_KIND; l->kind <= PLUGIN_LAST_KIND; l->kind++) {
        const int64_t n = l->n, size = l->text.size;
        TRY(str_addf(&l->text, e, "\n## %s\n", CONFIG_KINDS[l->kind].heading));
        TRY(plugin_list(NULL, list_one, l, e));
        if (l->n == n) l->text.data[l->text.size = size] = 0;
    }
    return TARE_OK;
}

static int list_plugins(enum plugin_format format)
{
    struct listing l = {.format = format};
    struct err e = {0};
    int rc = 1;
    if (format == PLUGIN_MARKDOWN ? list_markdown(&l, &e) : plugin_list(NULL, list_one, &l, &e))
        log_error(&e);
    else
        rc = print_output(&l.text);
    if (!rc && !l.n) log_warn("no plugin found; set TARE_PLUGIN_PATH");
    str_free(&l.text);
    return rc;
}

/* ---------------------------------------------------------------- columns */

struct column_list {
    bool markdown;
    int32_t kind;
    struct str text;
};

static tare_status add_column(struct column_list *l, const char *name, int32_t axis, const struct column_info *c, struct err *e)
{
    char type[32];
    snprintf(type, sizeof type, "%s%s", column_type_name(c->type), c->width ? "" : "[C]");
    if (!l->markdown)
        return str_addf(&l->text, e, "%-10s %-17s %-7s %-6s %s\n", plugin_kind_name(l->kind), name, column_axis_name(axis), type,
                        c->doc);
    return str_addf(&l->text, e, "| `%s` | %s | `%s` | %s |\n", name, column_axis_name(axis), type, c->doc);
}

static tare_status add_columns(struct column_list *l, struct err *e)
{
    bool heading = l->markdown;
    for (enum column_id id = COLUMN_ROW_FIELD; id < COLUMN_IDS; id++) {
        const struct column_info *c = &COLUMNS[id];
        const char *name = id == COLUMN_ROW_FIELD ? "row.KEY" : c->name;
        for (int32_t axis = TARE_AXIS_ONE; axis <= TARE_AXIS_TOKEN; axis++) {
            if (column_find(l->kind, name, axis) != id) continue;
            if (heading)
                TRY(str_addf(&l->text, e, "\n## %s\n\n| column | an entry for each | type | meaning |\n|---|---|---|---|\n",
                             CONFIG_KINDS[l->kind].heading));
            heading = false;
            TRY(add_column(l, name, axis, c, e));
        }
    }
    return TARE_OK;
}

static int print_columns(bool markdown)
{
    static const char HEAD[] =
        "# Columns\n"
        "\n"
        "Written by `tare plugin columns --md` from core/plugin/columns.h. A plugin names the columns that it reads in its table of\n"
        "wants (`tare_want` in tare/base.h), with name, axis, type and width as listed here, and finds them in that order in\n"
        "`column`. A column that no plugin wants is not computed. [C]: as many numbers as there are reward components.\n"
        "\n"
        "The axis says what a column has an entry for. One: the whole run. Row: the data set's rows. Group: the rollouts of one\n"
        "prompt. Rollout, turn, token: `turn_begin` and `token_begin` of tare_batch divide rollouts into turns and tokens. Tokens\n"
        "include the context of an episode, where `sampled` is 0; those of objectives are the sampled ones.\n"
        "\n"
        "None is NaN for f32 and f64, -1 for an index, 0 for a code such as a verdict, and size 0 for a text. An optional column\n"
        "(TARE_WANT_OPTIONAL) that the host does not have is data NULL; a required one is refused before the run starts.\n";
    struct column_list l = {.markdown = markdown};
    struct err e = {0};
    tare_status status = markdown ? str_add(&l.text, HEAD, -1, &e) : TARE_OK;
    for (l.kind = PLUGIN_FIRST_KIND; !status && l.kind <= PLUGIN_LAST_KIND; l.kind++) status = add_columns(&l, &e);
    if (status) log_error(&e);
    const int rc = status ? err_exit_code(status) : print_output(&l.text);
    str_free(&l.text);
    return rc;
}

/* ---------------------------------------------------------------- info */

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

/* Describes the plugins of a file, or the plugins with a name in every kind. */
static int print_info(const char *name, enum plugin_format format)
{
    struct err e = {0}, first = {0};
    struct asked a = {.format = format, .e = &e};
    const struct plugin *p;
    tare_status status = TARE_E_NOT_FOUND;
    if (strstr(name, ".so:") || !(strchr(name, '/') || strstr(name, ".so"))) {
        for (int32_t kind = PLUGIN_FIRST_KIND; kind <= PLUGIN_LAST_KIND; kind++) {
            struct err *slot = first.code ? &e : &first;
            const tare_status got = plugin_open(name, kind, NULL, &p, slot);
            if (!got) status = info_one(&a, NULL, p, NULL);
            if (got && got != TARE_E_NOT_FOUND && got != TARE_E_CONFIG) first = *slot;
        }
        if (status == TARE_E_NOT_FOUND) e = first;
    } else {
        status = plugin_each(name, info_one, &a, &e);
    }
    int rc = status ? err_exit_code(status) : print_output(&a.text);
    if (status) log_error(&e);
    str_free(&a.text);
    return rc;
}

/* ---------------------------------------------------------------- new */

static int make_new(int argc, char **argv)
{
    struct err e = {0};
    int32_t kind = PLUGIN_FIRST_KIND;
    const char *language = "c";
    if (argc == 6 && !strcmp(argv[4], "--lang"))
        language = argv[5];
    else if (argc != 4)
        return cli_usage(plugin_usage);
    while (kind <= PLUGIN_LAST_KIND && strcmp(argv[2], plugin_kind_name(kind))) kind++;
    if (kind > PLUGIN_LAST_KIND) return fprintf(stderr, "tare: plugin new: unknown kind '%s'\n%s", argv[2], plugin_usage), 2;
    const tare_status status = plugin_template(kind, argv[3], language, &e);
    if (status) {
        log_error(&e);
        return err_exit_code(status);
    }
    printf("%s/ is written; next: cd %s && make check\n", argv[3], argv[3]);
    return fflush(stdout) ? 1 : 0;
}

int cmd_plugin(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "", *name = NULL;
    enum plugin_format format = PLUGIN_TEXT;
    if (!strcmp(verb, "check")) return plugin_check_verb(argc, argv);
    if (!strcmp(verb, "new")) return make_new(argc, argv);
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            format = PLUGIN_JSON;
        else if (!strcmp(argv[i], "--ini"))
            format = PLUGIN_INI;
        else if (!strcmp(argv[i], "--md"))
            format = PLUGIN_MARKDOWN;
        else if (argv[i][0] == '-' || name)
            return fprintf(stderr, "tare: plugin %s: unexpected argument '%s'\n%s", verb, argv[i], plugin_usage), 2;
        else
            name = argv[i];
    }
    if (!strcmp(verb, "list") && !name && format != PLUGIN_INI) return list_plugins(format);
    if (!strcmp(verb, "columns") && !name && (format == PLUGIN_TEXT || format == PLUGIN_MARKDOWN))
        return print_columns(format == PLUGIN_MARKDOWN);
    if (!strcmp(verb, "info") && name) return print_info(name, format);
    return cli_usage(plugin_usage);
}
