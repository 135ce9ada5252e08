/* tare plugin check: checks a plugin, or all that are built in. */
#include "base/arena.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "plugin/check/check.h"
#include "plugin/internal.h"

#include <stdio.h>
#include <string.h>

enum report_format { REPORT_TEXT, REPORT_JSON, REPORT_TAP };
struct report {
    enum report_format format;
    bool quiet;         /* a text report names failures only */
    int64_t n, skipped; /* tests; those that were skipped */
};

/* Rows of a file, for verifiers. */
struct check_rows {
    struct str text;
    tare_text *row;
    int64_t n;
};

static void report_one(void *ctx, const struct check_result *r)
{
    static const char *const OUTCOMES[] = {"pass", "FAIL", "skip"};
    struct report *report = ctx;
    report->n++;
    report->skipped += r->outcome == CHECK_SKIP;
    if (report->quiet && r->outcome != CHECK_FAIL) return;
    if (report->format == REPORT_JSON) {
        json_t *j = json_pack("{s:s, s:s, s:s, s:s%, s:f}", "test", r->name, "what", r->what, "outcome", OUTCOMES[r->outcome],
                              "message", r->message, strlen(r->message), "seconds", r->seconds);
        if (j) json_dumpf(j, stdout, JSON_COMPACT);
        json_decref(j);
        puts("");
    } else if (report->format == REPORT_TAP) {
        printf("%sok %lld - %s: %s%s%s\n", r->outcome == CHECK_FAIL ? "not " : "", (long long)report->n, r->name, r->what,
               r->outcome == CHECK_SKIP ? " # SKIP "
               : r->message[0]          ? " # "
                                        : "",
               r->message);
    } else {
        printf("%s  %-11s %s%s%s\n", OUTCOMES[r->outcome], r->name, r->what, r->message[0] ? "\n                  " : "",
               r->message);
    }
    fflush(stdout);
}

/* Finds the file of a plugin of any kind on the search path. Does not open it: its code runs only
 * in the child processes. */
static tare_status resolve_file(const char *name, char found[FS_PATH], const char **path, struct err *e)
{
    *path = name;
    if (strchr(name, '/') || strstr(name, ".so")) {
        const char *end = strstr(name, ".so:");
        char file[FS_PATH];
        snprintf(file, sizeof file, "%.*s", end ? (int)(end + 3 - name) : (int)strlen(name), name);
        if (!fs_exists(file)) FAIL(e, TARE_E_CONFIG, "%s: no such file", file);
        return TARE_OK;
    }
    *path = found;
    return plugin_find(name, 0, NULL, found, e);
}

static int check_usage(const char *what)
{
    fprintf(stderr, "tare: plugin check: %s\n%s", what, plugin_usage);
    return 2;
}

/* Reads rows=FILE: JSON objects, one a line. */
static tare_status read_check_rows(const char *path, struct check_rows *rows, struct err *e)
{
    int64_t line = 0;
    TRY(fs_read_all(path, &rows->text, e));
    TRY(mem_new((rows->text.size + 1) * (int64_t)sizeof *rows->row, (void **)&rows->row, e));
    for (char *at = rows->text.data, *end; at && *at; at = end) {
        const int64_t n = (int64_t)strcspn(at, "\n");
        end = at + n + (at[n] == '\n');
        line++;
        if (strspn(at, " \t\r\n") >= (size_t)n) continue;
        json_t *object = json_loadb(at, (size_t)n, 0, NULL);
        const bool good = json_is_object(object);
        json_decref(object);
        if (!good) FAIL(e, TARE_E_CONFIG, "%s:%lld: must be a JSON object, a row of a data set", path, (long long)line);
        rows->row[rows->n++] = (tare_text){at, n};
    }
    if (!rows->n) FAIL(e, TARE_E_CONFIG, "%s: has no rows", path);
    return TARE_OK;
}

struct check_arguments {
    struct check_options options;
    enum report_format format;
    const char *name, *rows;
    bool all;
    int64_t seed;
};

/* Parses the arguments; returns 0, or the exit status. assignments: compacted in place. */
static int parse_check(int argc, char **argv, struct check_arguments *c)
{
    const char **assignments = (const char **)(uintptr_t)argv;
    struct check_options *o = &c->options;
    struct err e = {0};
    for (int i = 2; i < argc; i++) {
        const char *a = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(a, "--json") || !strcmp(a, "--tap")) {
            c->format = a[2] == 'j' ? REPORT_JSON : REPORT_TAP;
        } else if (!strcmp(a, "--in-process")) {
            o->in_process = true;
        } else if (!strcmp(a, "--all")) {
            c->all = true;
        } else if (!strcmp(a, "--only") && next) {
            o->only = argv[++i];
        } else if (!strcmp(a, "--seed") && next) {
            if (str_to_int(argv[++i], &c->seed, &e)) return check_usage(e.message);
        } else if (!strcmp(a, "--fewer") && next) {
            if (str_to_int(argv[++i], &o->fewer, &e) || o->fewer < 1) return check_usage("--fewer must be a number of at least 1");
        } else if (!strcmp(a, "--limit") && next) {
            if (str_to_double(argv[++i], &o->limit, &e) || !(o->limit > 0))
                return check_usage("--limit must be a number of seconds");
        } else if (a[0] == '-') {
            return check_usage(a);
        } else if (!strncmp(a, "rows=", 5)) {
            c->rows = a + 5;
        } else if (strchr(a, '=')) {
            assignments[o->n_assignments++] = a;
        } else if (!c->name) {
            c->name = a;
        } else {
            return check_usage(a);
        }
    }
    if (c->all && (c->name || o->n_assignments || c->rows || c->format != REPORT_TEXT))
        return check_usage("--all has no PLUGIN, parameters, rows or formats");
    if (!c->all && !c->name) return check_usage("PLUGIN is missing");
    o->assignments = assignments;
    o->seed = (uint64_t)c->seed;
    return 0;
}

/* Adds what the example of a built-in plugin gives, unless the arguments give it. key: of its
 * assignment. */
static tare_status add_example(struct check_options *o, const struct check_example *x, const char **assignments, tare_text *row)
{
    const size_t n = strcspn(x->assignment, "=") + 1;
    bool given = !*x->assignment;
    for (int64_t i = 0; i < o->n_assignments; i++) {
        assignments[i] = o->assignments[i];
        given = given || !strncmp(assignments[i], x->assignment, n);
    }
    if (!given) assignments[o->n_assignments++] = x->assignment;
    o->assignments = assignments;
    if (!o->fewer) o->fewer = x->fewer;
    if (x->row && !o->n_rows) {
        *row = (tare_text){x->row, (int64_t)strlen(x->row)};
        o->rows = row;
        o->n_rows = 1;
    }
    return TARE_OK;
}

/* Runs the check of one plugin, with the example of a built-in one. name: a name or a file. */
static tare_status check_one(struct check_options o, const char *name, struct report *report, int64_t *failed, struct err *e)
{
    struct check_example x;
    const char **assignments;
    tare_text row;
    TRY(check_example(name, &x, e));
    tare_status status = mem_new((o.n_assignments + 1) * (int64_t)sizeof *assignments, (void **)&assignments, e);
    if (!status) status = add_example(&o, &x, assignments, &row);
    if (!status) status = check_run(&o, report_one, report, failed, e);
    if (!status) mem_free(assignments);
    check_example_end(&x);
    return status;
}

/* Checks every built-in plugin; one that needs a file of the user is skipped. */
static int check_all(const struct check_arguments *c)
{
    int64_t failed = 0, skipped = 0, n = 0;
    for (const struct plugin_builtin *b = PLUGIN_BUILTINS; b->name; b++) {
        struct err e = {0};
        char found[FS_PATH];
        struct check_options o = c->options;
        struct report report = {.quiet = true};
        int64_t wrong = 0;
        n++;
        if (resolve_file(b->name, found, &o.path, &e)) {
            printf("skip  %-22s %s\n", b->name, e.message);
            skipped++;
            continue;
        }
        if (o.limit <= 0) o.limit = 120; /* creating 200 instances that each start a program takes some time */
        o.needs_values = true;
        const tare_status status = check_one(o, b->name, &report, &wrong, &e);
        if (status == TARE_E_CONFIG) {
            printf("skip  %-22s %s\n", b->name, e.message);
            skipped++;
            continue;
        }
        if (status) log_error(&e);
        wrong += status != 0;
        printf("%s  %-22s %lld tests, %lld skipped, %lld failed\n", wrong ? "FAIL" : "pass", b->name, (long long)report.n,
               (long long)report.skipped, (long long)wrong);
        fflush(stdout);
        failed += wrong > 0;
    }
    printf("%lld plugins, %lld skipped, %lld failed\n", (long long)n, (long long)skipped, (long long)failed);
    return failed > 0;
}

static tare_status check_named(struct check_arguments *c, struct str *certificate, int64_t *failed, struct err *e)
{
    struct report report = {.format = c->format};
    struct check_options *o = &c->options;
    struct check_rows rows = {0};
    char found[FS_PATH];
    TRY(resolve_file(c->name, found, &o->path, e));
    tare_status status = c->rows ? read_check_rows(c->rows, &rows, e) : TARE_OK;
    o->rows = rows.row;
    o->n_rows = rows.n;
    if (!status && c->format == REPORT_TEXT) printf("%s, seed %lld\n", o->path, (long long)c->seed);
    if (!status) status = check_one(*o, c->name, &report, failed, e);
    mem_free(rows.row);
    str_free(&rows.text);
    TRY(status);
    if (c->format == REPORT_TAP) printf("1..%lld\n", (long long)report.n);
    if (c->format != REPORT_TEXT) return TARE_OK;
    printf("%lld tests, %lld failed\n", (long long)report.n, (long long)*failed);
    return o->only ? TARE_OK : check_certificate(o, report.n, *failed, certificate, e);
}

int plugin_check_verb(int argc, char **argv)
{
    struct check_arguments c = {.seed = 1};
    struct err e = {0};
    OWNED(str_free) struct str certificate = {0};
    int64_t failed = 0;
    const int usage = parse_check(argc, argv, &c);
    if (usage) return usage;
    if (c.all) return check_all(&c);
    if (check_named(&c, &certificate, &failed, &e)) {
        log_error(&e);
        return err_exit_code(e.code);
    }
    if (certificate.size && cli_print(&certificate, &e)) {
        log_error(&e);
        return 1;
    }
    return failed > 0;
}
