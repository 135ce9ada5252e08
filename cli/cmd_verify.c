/* tare verify PLUGIN [key=value ...]: verifies completions, one JSON object per line. */
#include "base/json.h"
#include "base/log.h"
#include "batch/verdict.h"
#include "cli/cli.h"
#include "verify/rows.h"
#include "verify/verify.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 512 };

const char verify_usage[] =
    "usage: tare verify PLUGIN [key=value ...] [--explain] [--threads N] [--timeout SECONDS]\n"
    "Reads {\"id\",\"completion\",\"answer\"} per line (\"pred\" is accepted for completion, \"gold\" for answer; other fields belong to\n"
    "the row) and writes {\"id\",\"reward\",\"verdict\",\"extracted\",\"reason\"} per line, in the order of the input.\n"
    "  --explain      add the steps to each verdict, in \"explain\"\n"
    "  --threads N    verify N lines at the same time and read in chunks; 0: one per core (default 1).\n"
    "                 The plugin python gets up to 512 lines in one call\n"
    "  --isolate      run the plugin in worker processes, so that a crash gives a verdict and does not end the program; workers\n"
    "                 have no network and the limits of verifier.confine and verifier.open_files (tare config docs verifier)\n"
    "  --network      with --isolate: allow connections\n"
    "  --confine M    with --isolate: try (default), require or off, as verifier.confine; off for verifiers that create sandboxes\n"
    "                 themselves (unshare, bubblewrap) or run 32-bit programs\n"
    "  --timeout S    seconds allowed per completion (default 10)\n"
    "  key=value      parameters of the plugin: tare plugin info PLUGIN\n";

struct line {
    json_t *object;
    struct str row;
    struct verify_text extracted, note;
    char name[96], number[32]; /* number: text of an answer that is a JSON number */
};

struct filter {
    struct verify *v;
    struct line *lines;        /* [capacity] */
    struct verify_item *items; /* [capacity] */
    int64_t n, capacity;
    bool explain;
    struct str out;
};

static tare_status add_field(struct str *out, const char *key, tare_text value, struct err *e)
{
    OWNED(json_decrefp) json_t *j = json_stringn(value.data ? value.data : "", (size_t)value.size);
    if (!j) FAIL(e, TARE_E_INVALID, "%s of a verdict: invalid UTF-8", key);
    TRY(str_addf(out, e, ",\"%s\":", key));
    return json_print(j, out, e);
}

static tare_status write_one(struct filter *f, int64_t i, struct err *e)
{
    const struct verify_item *item = &f->items[i];
    struct str *out = &f->out;
    char number[32];
    const json_t *id = json_object_get(f->lines[i].object, "id");
    TRY(str_add(out, "{\"id\":", -1, e));
    if (id)
        TRY(json_print(id, out, e));
    else
        TRY(str_add(out, "null", -1, e));
    TRY(str_addf(out, e, ",\"reward\":%s,\"verdict\":\"%s\"", str_from_double(number, item->reward), verdict_name(item->verdict)));
    TRY(add_field(out, "extracted", (tare_text){item->extracted->data, item->extracted->size}, e));
    if (item->note->size) TRY(add_field(out, "reason", (tare_text){item->note->data, item->note->size}, e));
    if (f->explain) {
        TRY(str_add(out, ",\"explain\":", -1, e));
        tare_completion completion = {.struct_size = sizeof completion,
                                      .prompt = item->prompt,
                                      .text = item->completion,
                                      .answer = item->answer.data ? item->answer : (tare_text){"", 0},
                                      .row = item->row,
                                      .group = item->group};
        TRY(plugin_explain(verify_instance(f->v, 0), &completion, out, e));
    }
    return str_add(out, "}\n", -1, e);
}

static tare_status flush_lines(struct filter *f, struct err *e)
{
    tare_status s = verify_items(f->v, f->items, f->n, (struct verify_parts){0}, e);
    for (int64_t i = 0; i < f->n; i++) {
        if (!s) s = write_one(f, i, e);
        json_decref(f->lines[i].object);
    }
    f->n = 0;
    if (!s) s = cli_print(&f->out, e);
    str_clear(&f->out);
    return s;
}

static tare_text text_member(const json_t *o, const char *key, const char *other)
{
    const json_t *j = json_object_get(o, key);
    if (!j) j = json_object_get(o, other);
    return json_is_string(j) ? (tare_text){json_string_value(j), (int64_t)json_string_length(j)} : (tare_text){0};
}

/* Returns the text of a number, such as "answer": 1000 in a row of training data. A fraction gets
 * the fewest digits that parse to the same value. */
static tare_text number_member(const json_t *o, char number[32])
{
    const json_t *j = json_object_get(o, "answer");
    if (!j) j = json_object_get(o, "gold");
    if (json_is_integer(j))
        snprintf(number, 32, "%lld", (long long)json_integer_value(j));
    else if (json_is_real(j))
        str_from_double(number, json_real_value(j));
    else
        return (tare_text){0};
    return (tare_text){number, (int64_t)strlen(number)};
}

static tare_status read_line(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct filter *f = ctx;
    struct line *line = &f->lines[f->n];
    const tare_text completion = text_member(object, "completion", "pred");
    tare_text answer = text_member(object, "answer", "gold");
    if (!completion.data) FAIL(e, TARE_E_INVALID, "%s: \"completion\" (or \"pred\") is missing or not a text", where);
    if (!answer.data) answer = number_member(object, line->number);
    if (!answer.data && verify_row_answer(f->v, 0) == ROW_ANSWER_COMPARED)
        FAIL(e, TARE_E_INVALID, "%s: \"answer\" (or \"gold\") is missing or not a text or number", where);
    /* a shallow copy: the row without the completion */
    json_t *row = json_copy((json_t *)(uintptr_t)object);
    if (!row) FAIL(e, TARE_E_NOMEM, "%s: no memory", where);
    json_object_del(row, json_object_get(object, "completion") ? "completion" : "pred");
    str_clear(&line->row);
    const tare_status s = json_print(row, &line->row, e);
    json_decref(row);
    if (s) return s;
    snprintf(line->name, sizeof line->name, "%s", json_text_or(object, "id", where));
    line->object = json_incref((json_t *)(uintptr_t)object);
    f->items[f->n++] = (struct verify_item){
        .prompt = text_member(object, "question", "prompt"),
        .completion = completion,
        .answer = answer,
        .row = {line->row.data, line->row.size},
        .name = line->name,
        .group = f->n,
        .extracted = &line->extracted,
        .note = &line->note,
    };
    return f->n == f->capacity ? flush_lines(f, e) : TARE_OK;
}

static void filter_free(struct filter *f)
{
    for (int64_t i = 0; f->lines && i < f->capacity; i++) str_free(&f->lines[i].row);
    str_free(&f->out);
    mem_free(f->lines);
    mem_free(f->items);
    verify_close(f->v);
}

static tare_status run_verify(const char *plugin, const char *const *settings, int64_t n, struct verify_options *o, bool explain,
                              struct err *e)
{
    OWNED(arena_free) struct arena arena = {0};
    OWNED(filter_free) struct filter f = {.explain = explain, .capacity = o->workers == 1 ? 1 : CHUNK};
    arena_init(&arena, "parameters");
    const struct plugin *p = NULL;
    const struct config_param *params = NULL;
    TRY(plugin_open(plugin, TARE_KIND_VERIFIER, NULL, &p, e));
    TRY(plugin_settings(p, (struct plugin_words){settings, n}, NULL, &arena, &params, e));
    TRY(verify_new(o, &f.v, e));
    TRY(verify_add(f.v, &(struct verify_use){.plugin = plugin, .weight = 1}, NULL, params, NULL, e));
    if (p->verifier->flags & TARE_VERIFIER_TOGETHER) f.capacity = CHUNK;
    TRY(mem_new(f.capacity * (int64_t)sizeof *f.lines, (void **)&f.lines, e));
    TRY(mem_new(f.capacity * (int64_t)sizeof *f.items, (void **)&f.items, e));
    const tare_status read = json_each_line(stdin, "standard input", read_line, &f, e);
    struct err late;
    /* the lines before an invalid one are still answered */
    const tare_status last = flush_lines(&f, read ? &late : e);
    return read ? read : last;
}

static int usage_error(const char *what, const char *word)
{
    fprintf(stderr, "tare: verify: %s %s\n%s", what, word, verify_usage);
    return 2;
}

/* Reads --confine through a configuration, the only place that compares the texts of a choice
 * (config/choices.h). */
static tare_status confine_mode(const char *word, enum confine_mode *out, struct err *e)
{
    OWNED(config_free) struct config c = {0};
    char text[64];
    snprintf(text, sizeof text, "verifier.confine=%s", word);
    TRY(config_load(&c, NULL, (const char *const[]){text}, 1, e));
    *out = c.verifier.confine;
    return TARE_OK;
}

int cmd_verify(int argc, char **argv)
{
    struct verify_options o = {.workers = 1,
                               .timeout = 10,
                               .max_crash_share = 1,
                               /* as verifier.open_files and file_size */
                               .confine = {.open_files = 1024, .file_size = 4096}};
    /* started by the engine: core/verify/worker_group.c */
    if (argc == 2 && !strcmp(argv[1], "--worker")) return verify_worker(0);
    const char *plugin = NULL, **settings = NULL;
    bool explain = false, asked = false; /* asked: an option was given that needs --isolate */
    int64_t n = 0;
    struct err e = {0};
    if (mem_new((int64_t)sizeof *settings * (argc + 1), (void **)&settings, &e)) return log_error(&e), 1;
    int code = 0;
    for (int i = 1; i < argc && !code; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(a, "--isolate"))
            o.processes = true;
        else if (!strcmp(a, "--network"))
            o.confine.network = asked = true;
        else if (!strcmp(a, "--confine"))
            code = confine_mode(value, &o.confine.mode, &e) ? usage_error("--confine: must be try, require or off:", value) : 0,
            asked = true, i++;
        else if (!strcmp(a, "--explain"))
            explain = true;
        else if (!strcmp(a, "--threads"))
            code = str_to_int(value, &o.workers, &e) || o.workers < 0 || o.workers > 4096
                       ? usage_error("--threads: must be a number of threads:", value)
                       : 0,
            i++;
        else if (!strcmp(a, "--timeout"))
            code = str_to_double(value, &o.timeout, &e) || !(o.timeout > 0 && o.timeout <= 86400)
                       ? usage_error("--timeout: must be a number of seconds:", value)
                       : 0,
            i++;
        else if (a[0] == '-')
            code = usage_error("unknown option", a);
        else if (strchr(a, '='))
            settings[n++] = a;
        else if (plugin)
            code = usage_error("more than one plugin:", a);
        else
            plugin = a;
    }
    if (!code && !plugin) code = usage_error("PLUGIN is missing", "");
    if (!code && asked && !o.processes) code = usage_error("--network and --confine need worker processes; add", "--isolate");
    if (!code && explain && o.processes) code = usage_error("--explain works without worker processes only; remove", "--isolate");
    if (!code && run_verify(plugin, settings, n, &o, explain, &e)) {
        log_error(&e);
        code = err_exit_code(e.code);
    }
    mem_free(settings);
    return code;
}
