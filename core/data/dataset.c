#include "data/dataset.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "data/builtin.h"
#include "data/files.h"
#include "data/hash_set.h"
#include "data/lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- one row */

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p;
}

/* Returns the end of the string that opens at p. The text was parsed before, so it is well
 * formed. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\' && p + 1 < end) p++;
    return p < end ? p + 1 : end;
}

static const char *skip_value(const char *p, const char *end)
{
    int depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            continue;
        }
        if (*p == '{' || *p == '[') depth++;
        if ((*p == '}' || *p == ']') && depth-- == 0) break;
        if (*p == ',' && depth == 0) break;
        p++;
    }
    return p;
}

/* Returns the text of a member of the row as the file has it, so numbers keep their digits; {NULL,
 * 0} if its key is written with escapes. */
static tare_text member_text(const char *json, int64_t n, const char *key)
{
    const char *p = skip_space(json, json + n), *end = json + n;
    const size_t size = strlen(key);
    for (p++; p < end; p++) { /* after { or , */
        p = skip_space(p, end);
        if (p >= end || *p != '"') break;
        const char *name = p + 1;
        p = skip_string(p, end);
        const size_t name_size = (size_t)(p - name) - 1;
        p = skip_space(p, end);
        const char *value = skip_space(p + 1, end);
        p = skip_value(value, end);
        if (name_size != size || memcmp(name, key, size)) continue;
        const char *last = p;
        while (last > value && strchr(" \t\r\n", last[-1])) last--;
        return (tare_text){value, last - value};
    }
    return (tare_text){0};
}

struct reader { /* arguments common to all fields of a row */
    const json_t *row;
    const char *json, *where;
    int64_t n;
    struct arena *arena;
};

static const json_t *find_field(const struct reader *r, const char *key)
{
    const json_t *v = json_object_get(r->row, key);
    return json_is_null(v) ? NULL : v;
}

static tare_status keep_text(const struct reader *r, const char *data, int64_t n, tare_text *out, struct err *e)
{
    char *copy;
    TRY(arena_strdup(r->arena, data, n, &copy, e));
    *out = (tare_text){copy, n};
    return TARE_OK;
}

/* Reads a string, or the text of a number where numbers are allowed; absent: {NULL, 0}. */
static tare_status read_text(const struct reader *r, const char *key, bool numbers, tare_text *out, struct err *e)
{
    const json_t *v = find_field(r, key);
    *out = (tare_text){0};
    if (!v) return TARE_OK;
    if (json_is_string(v)) return keep_text(r, json_string_value(v), (int64_t)json_string_length(v), out, e);
    if (!numbers || !json_is_number(v))
        FAIL(e, TARE_E_INVALID, "%s: \"%s\" is not a string%s", r->where, key, numbers ? " or a number" : "");
    const tare_text raw = member_text(r->json, r->n, key);
    if (raw.data) return keep_text(r, raw.data, raw.size, out, e);
    char digits[32];
    if (json_is_integer(v))
        snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(v));
    else
        str_from_double(digits, json_real_value(v));
    return keep_text(r, digits, (int64_t)strlen(digits), out, e);
}

static tare_status read_id(const struct reader *r, struct row *out, struct err *e)
{
    tare_text id;
    TRY(read_text(r, "id", true, &id, e));
    if (id.data && memchr(id.data, 0, (size_t)id.size)) FAIL(e, TARE_E_INVALID, "%s: \"id\" holds a NUL character", r->where);
    if (id.size) {
        out->id = id.data;
        out->has_id = true;
        out->uid = fs_hash(id.data, id.size, 0);
        return TARE_OK;
    }
    const char *colon = strrchr(r->where, ':');
    OWNED(str_free) struct str name = {0};
    TRY(str_addf(&name, e, "line-%s", colon ? colon + 1 : r->where));
    tare_text kept = {0};
    TRY(keep_text(r, name.data, name.size, &kept, e));
    out->id = kept.data;
    out->uid = fs_hash(out->question.data, out->question.size, 1);
    return TARE_OK;
}

static tare_status read_choices(const struct reader *r, struct row *out, struct err *e)
{
    const json_t *list = find_field(r, "choices");
    if (!list) return TARE_OK;
    if (!json_is_array(list) || !json_array_size(list))
        FAIL(e, TARE_E_INVALID, "%s: \"choices\" is not a list of at least one string", r->where);
    tare_text *choices;
    const size_t n = json_array_size(list);
    TRY(arena_new(r->arena, &choices, n, e));
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_string(v)) FAIL(e, TARE_E_INVALID, "%s: \"choices\"[%zu] is not a string", r->where, i);
        TRY(keep_text(r, json_string_value(v), (int64_t)json_string_length(v), &choices[i], e));
    }
    out->choices = choices;
    out->n_choices = (int64_t)n;
    return TARE_OK;
}

/* Reads "parts": [{"text": ..., "loss": true or false}, ...]. */
static tare_status read_parts(const struct reader *r, struct row *out, struct err *e)
{
    const json_t *list = find_field(r, "parts");
    struct row_part *parts;
    bool learns = false;
    if (!list) return TARE_OK;
    if (out->completion.data) FAIL(e, TARE_E_INVALID, "%s: has both \"completion\" and \"parts\"; remove one of them", r->where);
    const size_t n = json_is_array(list) ? json_array_size(list) : 0;
    TRY(arena_new(r->arena, &parts, n, e));
    for (size_t i = 0; i < n; i++) {
        const json_t *part = json_array_get(list, i), *text = json_object_get(part, "text"), *loss = json_object_get(part, "loss");
        if (!json_is_string(text) || !json_is_boolean(loss))
            FAIL(e, TARE_E_INVALID, "%s: \"parts\"[%zu] must be an object with the string \"text\" and true or false as \"loss\"",
                 r->where, i);
        TRY(keep_text(r, json_string_value(text), (int64_t)json_string_length(text), &parts[i].text, e));
        parts[i].loss = json_is_true(loss);
        learns = learns || parts[i].loss;
    }
    if (!learns)
        FAIL(e, TARE_E_INVALID, "%s: \"parts\" must be a list of {\"text\",\"loss\"}, at least one of which has \"loss\": true",
             r->where);
    out->parts = parts;
    out->n_parts = (int64_t)n;
    return TARE_OK;
}

static tare_status read_messages(const struct reader *r, const char *key, struct row *out, struct err *e)
{
    const json_t *list = find_field(r, key), *m;
    size_t i;
    if (!list) return TARE_OK;
    if (!json_is_array(list) || !json_array_size(list))
        FAIL(e, TARE_E_INVALID, "%s: \"%s\" is not a list of at least one {\"role\",\"content\"}", r->where, key);
    json_array_foreach(list, i, m)
    {
        if (!json_is_string(json_object_get(m, "role")) || !json_is_string(json_object_get(m, "content")))
            FAIL(e, TARE_E_INVALID, "%s: \"%s\"[%zu] must be an object with the strings \"role\" and \"content\"", r->where, key,
                 i);
    }
    OWNED(str_free) struct str text = {0};
    TRY(json_print(list, &text, e));
    return keep_text(r, text.data, text.size, &out->messages, e);
}

/* Returns true for a text without a visible character: blanks of ASCII, U+00A0, U+2000 to U+200F,
 * U+2028, U+2029, U+202F, U+2060, U+3000 and U+FEFF. */
static bool is_blank(const char *text, int64_t n)
{
    for (int64_t i = 0; i < n;) {
        const unsigned char *c = (const unsigned char *)text + i;
        if (*c <= 0x20 || *c == 0x7F) {
            i++;
        } else if (n - i >= 2 && c[0] == 0xC2 && c[1] == 0xA0) {
            i += 2;
        } else if (n - i >= 3 &&
                   ((c[0] == 0xE2 && c[1] == 0x80 && (c[2] <= 0x8F || c[2] == 0xA8 || c[2] == 0xA9 || c[2] == 0xAF)) ||
                    (c[0] == 0xE2 && c[1] == 0x81 && c[2] == 0xA0) || (c[0] == 0xE3 && c[1] == 0x80 && c[2] == 0x80) ||
                    (c[0] == 0xEF && c[1] == 0xBB && c[2] == 0xBF))) {
            i += 3;
        } else {
            return false;
        }
    }
    return true;
}

/* Uses the last user message as the question, for encoders and codebooks. */
static tare_status question_of_messages(const struct reader *r, const json_t *list, struct row *out, struct err *e)
{
    for (size_t i = json_array_size(list); i-- > 0;) {
        const json_t *m = json_array_get(list, i), *content = json_object_get(m, "content");
        if (strcmp(json_text_or(m, "role", ""), "user") || !json_is_string(content)) continue;
        if (is_blank(json_string_value(content), (int64_t)json_string_length(content)))
            FAIL(e, TARE_E_INVALID, "%s: the last user message is %s, but it is the question", r->where,
                 json_string_length(content) ? "blank" : "empty");
        return keep_text(r, json_string_value(content), (int64_t)json_string_length(content), &out->question, e);
    }
    FAIL(e, TARE_E_INVALID, "%s: \"messages\" has no user message", r->where);
}

/* Reads "question", else "prompt" (a text, or messages as in TRL), else "messages". */
static tare_status read_question(const struct reader *r, struct row *out, struct err *e)
{
    const json_t *prompt = find_field(r, "prompt");
    TRY(read_text(r, "question", false, &out->question, e));
    TRY(read_messages(r, "messages", out, e));
    if (!out->question.size && json_is_array(prompt)) {
        TRY(read_messages(r, "prompt", out, e));
        return question_of_messages(r, prompt, out, e);
    }
    if (!out->question.size && prompt) TRY(read_text(r, "prompt", false, &out->question, e));
    if (!out->question.size && out->messages.data) return question_of_messages(r, find_field(r, "messages"), out, e);
    if (out->question.size && is_blank(out->question.data, out->question.size))
        FAIL(e, TARE_E_INVALID, "%s: \"%s\" is blank: it has only spaces or other invisible characters", r->where,
             find_field(r, "question") ? "question" : "prompt");
    if (out->question.size) return TARE_OK;
    FAIL(e, TARE_E_INVALID, "%s: \"question\" is missing or empty; a row needs a \"question\", a \"prompt\" or \"messages\"",
         r->where);
}

static tare_status read_fields(const struct reader *r, struct row *out, struct err *e)
{
    if (!json_is_object(r->row)) FAIL(e, TARE_E_INVALID, "%s: not a JSON object", r->where);
    TRY(read_question(r, out, e));
    TRY(read_text(r, "answer", true, &out->answer, e));
    TRY(read_text(r, "completion", false, &out->completion, e));
    TRY(read_parts(r, out, e));
    TRY(read_text(r, "subject", true, &out->subject, e));
    TRY(read_id(r, out, e));
    TRY(read_choices(r, out, e));
    const json_t *level = find_field(r, "level");
    if (level && !json_is_number(level) && !json_is_string(level))
        FAIL(e, TARE_E_INVALID, "%s: \"level\" must be a number or a text (1 for true); correct or remove it", r->where);
    out->level = json_is_number(level) ? json_number_value(level) : NAN;
    return TARE_OK;
}

/* A line that does not begin as an object is rarely a damaged row; usually the file has another
 * format: CSV, Parquet, or JSON over several lines. */
static tare_status parse_line(const char *json, int64_t n, const char *where, json_t **out, struct err *e)
{
    int64_t begin = 0;
    while (begin < n && (json[begin] == ' ' || json[begin] == '\t')) begin++;
    const bool object = begin < n && json[begin] == '{';
    const int64_t bad = str_utf8_error(json, n);
    if (bad && object) FAIL(e, TARE_E_INVALID, "%s: invalid UTF-8 at byte %lld of the line", where, (long long)bad);
    const tare_status status = bad ? TARE_E_INVALID : json_parse(json, n, where, out, e);
    if (!status) return TARE_OK;
    if (object && strstr(e->message, "near end of file")) {
        const struct err why = *e;
        FAIL(e, TARE_E_INVALID, "%.1500s; the line ends within an object; write each row as one object on one line", why.message);
    }
    if (object) return e->code = status == TARE_E_CORRUPT ? TARE_E_INVALID : status;
    FAIL(
        e, TARE_E_INVALID,
        "%s: not a row: a data file has one JSON object per line, {\"question\": ...}; tools/to_jsonl.py converts CSV, JSON and Parquet",
        where);
}

tare_status dataset_row_parse(const char *json, int64_t n, const char *where, struct arena *arena, struct row *out, struct err *e)
{
    *out = (struct row){.level = NAN};
    OWNED(json_decrefp) json_t *object = NULL;
    TRY(parse_line(json, n, where, &object, e));
    struct reader r = {.row = object, .where = where, .n = n, .arena = arena};
    char *copy = NULL;
    TRY(arena_strdup(arena, json, n, &copy, e));
    r.json = copy;
    out->json = (tare_text){copy, n};
    char *kept = NULL;
    TRY(arena_strdup(arena, where, (int64_t)strlen(where), &kept, e));
    out->where = kept;
    return read_fields(&r, out, e);
}

/* ---------------------------------------------------------------- a file */

/* Refuses duplicate ids. Rows without id that repeat a question get a separate uid. */
static tare_status place_row(struct dataset *d, struct seen *ids, int64_t index, struct err *e)
{
    struct row *row = &d->rows[index];
    for (uint64_t copy = 2;; copy++) {
        int64_t earlier;
        TRY(hash_set_add(ids, row->uid, index, &earlier, e));
        if (earlier < 0) return TARE_OK;
        if (row->has_id)
            FAIL(e, TARE_E_INVALID, "%s: the id \"%s\" is also used by %s; every row needs a different id", row->where, row->id,
                 d->rows[earlier].where);
        row->uid = fs_hash(row->question.data, row->question.size, copy);
    }
}

static void hash_rows(struct dataset *d)
{
    uint64_t h = 0;
    for (int64_t i = 0; i < d->n; i++) {
        const struct row *r = &d->rows[i];
        const tare_text parts[] = {{r->id, (int64_t)strlen(r->id)}, r->question, r->answer, r->completion, r->messages};
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) h = lines_hash_text(h, parts[k]);
        for (int64_t k = 0; k < r->n_choices; k++) h = lines_hash_text(h, r->choices[k]);
        for (int64_t k = 0; k < r->n_parts; k++) h = lines_hash_text(h + r->parts[k].loss, r->parts[k].text);
    }
    d->hash = h;
}

static tare_status count_rows(const char *path, const struct str *text, int64_t *count, struct err *e)
{
    struct lines lines = lines_begin(text);
    const int64_t before = *count;
    tare_text line;
    TRY(lines_refuse_list(path, text, e));
    while (lines_next(&lines, &line)) ++*count;
    if (*count == before) FAIL(e, TARE_E_INVALID, "%s: no rows; every line must be a JSON object", path);
    return TARE_OK;
}

/* State while the files of a data set are read. */
struct loading {
    const struct files *files;
    struct str *text; /* [files->n] */
    struct seen ids;
    int64_t most; /* maximum number of rows */
    struct dataset *d;
};

static tare_status parse_rows(struct loading *l, int64_t file, struct err *e)
{
    struct lines lines = lines_begin(&l->text[file]);
    struct dataset *d = l->d;
    tare_text line;
    while (d->n < l->most && lines_next(&lines, &line)) {
        char where[FS_PATH];
        lines_where(where, l->files->path[file], lines.number);
        TRY(dataset_row_parse(line.data, line.size, where, &d->arena, &d->rows[d->n], e));
        d->rows[d->n].source = l->files->source[file];
        TRY(place_row(d, &l->ids, d->n, e));
        d->n++;
    }
    return TARE_OK;
}

static tare_status load_all(struct loading *l, int64_t limit, struct err *e)
{
    const struct files *f = l->files;
    for (int64_t i = 0; i < f->n; i++) {
        TRY(fs_read_lines(f->path[i], &l->text[i], e));
        TRY(count_rows(f->path[i], &l->text[i], &l->most, e));
    }
    if (limit > 0 && l->most > limit) l->most = limit;
    TRY(arena_new(&l->d->arena, &l->d->rows, l->most, e));
    for (int64_t i = 0; i < f->n; i++) TRY(parse_rows(l, i, e));
    return TARE_OK;
}

/* Loads the rows of the files in order. */
static tare_status load_files(const struct files *f, int64_t limit, struct dataset *d, struct err *e)
{
    struct loading l = {.files = f, .d = d};
    TRY(mem_new(f->n * (int64_t)sizeof *l.text, (void **)&l.text, e));
    const tare_status status = load_all(&l, limit, e);
    for (int64_t i = 0; i < f->n; i++) str_free(&l.text[i]);
    mem_free(l.text);
    hash_set_free(&l.ids);
    d->n_sources = f->n_sources;
    d->weight = f->weight;
    return status;
}

tare_status dataset_load(const char *source, int64_t limit, struct dataset *out, struct err *e)
{
    *out = (struct dataset){0};
    if (!source || !*source) FAIL(e, TARE_E_CONFIG, "missing data set; set data.train to a JSONL file or builtin:arithmetic/train");
    if (limit < 0) FAIL(e, TARE_E_RANGE, "data.limit = %lld: must be 0 (all rows) or more", (long long)limit);
    arena_init(&out->arena, "data set");
    tare_status status;
    if (!strncmp(source, "builtin:", 8)) {
        status = builtin_generate(source + 8, out, e);
        if (limit > 0 && out->n > limit) out->n = limit;
        out->n_sources = 1;
    } else {
        struct files files = {0};
        status = files_of(source, &out->arena, &files, e);
        if (!status) status = load_files(&files, limit, out, e);
    }
    char *name = NULL;
    if (!status) status = arena_strdup(&out->arena, source, (int64_t)strlen(source), &name, e);
    out->name = name;
    if (status)
        dataset_free(out);
    else
        hash_rows(out);
    return status;
}

tare_status dataset_of(const struct config *c, const char *key, struct dataset *out, struct err *e)
{
    const bool train = !strcmp(key, "train");
    const tare_status status = dataset_load(train ? c->data.train : c->data.eval, train ? c->data.limit : c->eval.rows, out, e);
    if (!status && out->weight && !train) {
        dataset_free(out);
        FAIL(e, TARE_E_CONFIG, "%s: data.eval has weights, but evaluation uses every row; remove them",
             config_where(c, "data", key));
    }
    if (status == TARE_E_NOT_FOUND || status == TARE_E_CONFIG) err_prefix(e, "%s: data.%s", config_where(c, "data", key), key);
    return err_as_config(status, e);
}

void dataset_warn_few(const struct config *c, int64_t rows)
{
    if (rows >= c->rollout.prompts) return;
    log_warn(
        "%s: data.train = %s has %lld row%s, fewer than rollout.prompts = %lld: a step samples questions several times; add rows, or lower rollout.prompts",
        config_where(c, "data", "train"), c->data.train, (long long)rows, rows == 1 ? "" : "s", (long long)c->rollout.prompts);
}

void dataset_free(struct dataset *d)
{
    arena_free(&d->arena);
    *d = (struct dataset){0};
}
