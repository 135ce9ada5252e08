#include "base/json.h"

#include "base/arena.h"
#include "base/fs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int end_status = 1;
static void (*stop_first)(void *ctx);
static void *stop_ctx;

/* jansson reads beyond its buffer when the buffer cannot grow, so end the process if out of
 * memory. */
static void *memory_or_end(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (p) return p;
    static const char message[] = "tare: no memory to read or write JSON; a row may be too large for this machine\n";
    const ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
    (void)written;
    if (stop_first) stop_first(stop_ctx);
    _exit(end_status);
}

void json_end_with(int status)
{
    end_status = status;
}

void json_stop_first(void (*stop)(void *ctx), void *ctx)
{
    stop_first = stop;
    stop_ctx = ctx;
}

void json_begin(void)
{
    json_set_alloc_funcs(memory_or_end, free);
}

tare_status json_parse(const char *text, int64_t n, const char *where, json_t **out, struct err *e)
{
    json_error_t bad;
    const char *nul = n ? memchr(text, 0, (size_t)n) : NULL; /* Jansson skips such bytes between tokens */
    *out = NULL;
    if (nul) FAIL(e, TARE_E_CORRUPT, "%s: not valid JSON: byte %lld is NUL", where, (long long)(nul - text) + 1);
    *out = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &bad);
    if (*out) return TARE_OK;
    if (!bad.text[0] || json_error_code(&bad) == json_error_out_of_memory) FAIL(e, TARE_E_NOMEM, "%s: no memory to read it", where);
    FAIL(e, TARE_E_CORRUPT, "%s: not valid JSON: %s (line %d, column %d)", where, bad.text, bad.line, bad.column);
}

static tare_status read_with(tare_status (*parse)(const char *text, int64_t n, const char *where, json_t **out, struct err *e),
                             const char *path, json_t **out, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    *out = NULL;
    TRY(fs_read_all(path, &text, e));
    return parse(text.data, text.size, path, out, e);
}

tare_status json_read_file(const char *path, json_t **out, struct err *e)
{
    return read_with(json_parse, path, out, e);
}

/* Return the end of the string or number that begins at i, or of a single character. digits is the
 * number of digits of a whole number, otherwise 0. */
static int64_t part_end(const char *text, int64_t n, int64_t i, int64_t *digits)
{
    int64_t at = i + 1;
    *digits = 0;
    if (text[i] == '"') {
        while (at < n && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
        return at < n ? at + 1 : n;
    }
    if (text[i] != '-' && (text[i] < '0' || text[i] > '9')) return at;
    while (at < n && strchr("0123456789+-.eE", text[at]) && text[at]) at++;
    const int64_t sign = text[i] == '-';
    while (i + sign + *digits < at && text[i + sign + *digits] >= '0' && text[i + sign + *digits] <= '9') ++*digits;
    if (i + sign + *digits < at) *digits = 0;
    return at;
}

tare_status json_parse_wide(const char *text, int64_t n, const char *where, json_t **out, struct err *e)
{
    OWNED(str_free) struct str wide = {0};
    *out = NULL;
    TRY(str_reserve(&wide, n, e));
    for (int64_t i = 0, end, digits; i < n; i = end) {
        end = part_end(text, n, i, &digits);
        TRY(str_add(&wide, text + i, end - i, e));
        if (digits >= 19) TRY(str_add(&wide, ".0", 2, e));
    }
    return json_parse(wide.data, wide.size, where, out, e);
}

tare_status json_read_wide(const char *path, json_t **out, struct err *e)
{
    return read_with(json_parse_wide, path, out, e);
}

/* Jansson does not check whether a key was written, and would continue; so a failure is
 * permanent. */
struct printed {
    struct str *out;
    int failed;
};

static int dump_part(const char *data, size_t n, void *ctx)
{
    struct printed *p = ctx;
    if (!p->failed && str_add(p->out, data, (int64_t)n, NULL)) p->failed = -1;
    return p->failed;
}

static tare_status print_json(const json_t *j, size_t form, struct str *out, struct err *e)
{
    struct printed p = {out, 0};
    if (json_dump_callback(j, dump_part, &p, form | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17)) || p.failed)
        FAIL(e, TARE_E_NOMEM, "no memory to print JSON");
    return TARE_OK;
}

tare_status json_print(const json_t *j, struct str *out, struct err *e)
{
    return print_json(j, JSON_COMPACT, out, e);
}

tare_status json_print_lines(const json_t *j, struct str *out, struct err *e)
{
    return print_json(j, JSON_INDENT(2), out, e);
}

void json_put(json_t *o, bool *bad, const char *key, json_t *value)
{
    if (!value || json_object_set_new(o, key, value)) *bad = true;
}

void json_add(json_t *list, bool *bad, json_t *value)
{
    if (!value || json_array_append_new(list, value)) *bad = true;
}

json_t *json_unless(bool bad, json_t *j)
{
    if (!bad) return j;
    json_decref(j);
    return NULL;
}

json_t *json_readable(const char *text)
{
    return json_string(str_utf8_error(text, (int64_t)strlen(text)) ? "(not UTF-8)" : text);
}

tare_status json_get_int(const json_t *o, const char *key, const char *where, int64_t *out, struct err *e)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v)) FAIL(e, TARE_E_INVALID, "%s: \"%s\" %s", where, key, v ? "is not a whole number" : "is missing");
    *out = json_integer_value(v);
    return TARE_OK;
}

tare_status json_get_double(const json_t *o, const char *key, const char *where, double *out, struct err *e)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_number(v)) FAIL(e, TARE_E_INVALID, "%s: \"%s\" %s", where, key, v ? "is not a number" : "is missing");
    *out = json_number_value(v);
    return TARE_OK;
}

tare_status json_get_text(const json_t *o, const char *key, const char *where, tare_text *out, struct err *e)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_string(v)) FAIL(e, TARE_E_INVALID, "%s: \"%s\" %s", where, key, v ? "is not a string" : "is missing");
    *out = (tare_text){json_string_value(v), (int64_t)json_string_length(v)};
    return TARE_OK;
}

int64_t json_int_or(const json_t *o, const char *key, int64_t otherwise)
{
    const json_t *v = json_object_get(o, key);
    return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

double json_double_or(const json_t *o, const char *key, double otherwise)
{
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : otherwise;
}

const char *json_text_or(const json_t *o, const char *key, const char *otherwise)
{
    const json_t *v = json_object_get(o, key);
    return json_is_string(v) ? json_string_value(v) : otherwise;
}

int json_bool_or(const json_t *o, const char *key, int otherwise)
{
    const json_t *v = json_object_get(o, key);
    return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

tare_status json_each_line(FILE *f, const char *name, json_line line, void *ctx, struct err *e)
{
    OWNED(mem_free_at) char *text = NULL;
    size_t capacity = 0;
    for (int64_t number = 1;; number++) {
        errno = 0;
        const ssize_t n = getline(&text, &capacity, f);
        if (n < 0) {
            if (feof(f)) return TARE_OK;
            /* reading the line may have run out of memory, which ferror() does not report */
            FAIL(e, errno == ENOMEM ? TARE_E_NOMEM : TARE_E_IO, "%s: cannot be read: %s", name, strerror(errno));
        }
        if (strspn(text, " \t\r\n") == (size_t)n) continue;
        /* byte order mark, written by some editors */
        const bool marked = number == 1 && n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3);
        char where[FS_PATH];
        snprintf(where, sizeof where, "%s:%lld", name, (long long)number);
        OWNED(json_decrefp) json_t *object = NULL;
        TRY(json_parse(text + (marked ? 3 : 0), n - (marked ? 3 : 0), where, &object, e));
        if (!json_is_object(object)) FAIL(e, TARE_E_INVALID, "%s: not a JSON object", where);
        TRY(line(ctx, object, where, e));
    }
}
