#include "checkpoint/state.h"

#include "base/fs.h"
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, FOOTER = 32 };
static const char HEAD[9] = "tareSTA1", TAIL[9] = "tareEND1";

/* ---------------------------------------------------------------- writing */

struct state_writer {
    FILE *file;
    char path[FS_PATH];
    int64_t at;
    json_t *sections;
};

static tare_status put_bytes(struct state_writer *w, const void *data, int64_t n, struct err *e)
{
    TRY(fs_put(w->file, w->path, data, n, e));
    w->at += n;
    return TARE_OK;
}

static tare_status write_padding(struct state_writer *w, struct err *e)
{
    static const char ZERO[ALIGN];
    return put_bytes(w, ZERO, (ALIGN - w->at % ALIGN) % ALIGN, e);
}

tare_status state_create(const char *path, struct state_writer **out, struct err *e)
{
    *out = NULL;
    struct state_writer *w = calloc(1, sizeof *w);
    if (!w) FAIL(e, TARE_E_NOMEM, "%s: out of memory", path);
    tare_status status = fs_join(w->path, "", path, e);
    if (!status) {
        w->sections = json_array();
        w->file = fopen(path, "wb");
        if (!w->file || !w->sections)
            status = err_set(e, TARE_E_IO, __FILE__, __LINE__, "%s: cannot be created: %s", path, strerror(errno));
    }
    if (!status) status = put_bytes(w, HEAD, 8, e);
    if (status) {
        state_discard(w);
        return status;
    }
    *out = w;
    return TARE_OK;
}

static tare_status list_section(struct state_writer *w, const char *name, int64_t offset, int64_t n, uint64_t hash, struct err *e)
{
    char hex[17];
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)hash);
    json_t *s = json_pack("{s:s, s:I, s:I, s:s}", "name", name, "offset", (json_int_t)offset, "size", (json_int_t)n, "xxh3", hex);
    if (!s || json_array_append_new(w->sections, s)) FAIL(e, TARE_E_NOMEM, "%s: out of memory for section '%s'", w->path, name);
    return TARE_OK;
}

tare_status state_write(struct state_writer *w, const char *name, const void *data, int64_t n, struct err *e)
{
    size_t i;
    json_t *s;
    json_array_foreach(w->sections, i, s)
    {
        if (!strcmp(json_text_or(s, "name", ""), name)) FAIL(e, TARE_E_INVALID, "%s: section '%s' exists already", w->path, name);
    }
    TRY(write_padding(w, e));
    TRY(list_section(w, name, w->at, n, fs_hash(data, n, 0), e));
    return put_bytes(w, data, n, e);
}

tare_status state_write_int(struct state_writer *w, const char *name, int64_t value, struct err *e)
{
    return state_write(w, name, &value, sizeof value, e);
}

static tare_status write_end(struct state_writer *w, struct err *e)
{
    OWNED(str_free) struct str list = {0};
    TRY(json_print(w->sections, &list, e));
    TRY(write_padding(w, e));
    uint64_t footer[4] = {(uint64_t)w->at, (uint64_t)list.size, fs_hash(list.data, list.size, 0)};
    memcpy(&footer[3], TAIL, 8);
    TRY(put_bytes(w, list.data, list.size, e));
    return put_bytes(w, footer, FOOTER, e);
}

tare_status state_finish(struct state_writer *w, struct err *e)
{
    tare_status status = write_end(w, e);
    if (!status) {
        status = fs_close_synced(w->file, w->path, e);
        w->file = NULL;
    }
    if (status) {
        state_discard(w);
        return status;
    }
    json_decref(w->sections);
    free(w);
    return TARE_OK;
}

void state_discard(struct state_writer *w)
{
    if (!w) return;
    if (w->file) fclose(w->file);
    remove(w->path);
    json_decref(w->sections);
    free(w);
}

/* ---------------------------------------------------------------- reading */

struct state_reader {
    struct fs_map map;
    char path[FS_PATH];
    json_t *sections;
};

/* Reads the list of sections and checks that each is inside the file. */
static tare_status read_list(struct state_reader *r, struct err *e)
{
    const int64_t size = r->map.size;
    const unsigned char *head = r->map.data;
    if (size < 8 + FOOTER || memcmp(head, HEAD, 7)) FAIL(e, TARE_E_CORRUPT, "%s: is not a state file", r->path);
    if (head[7] >= '0' && head[7] <= '9' && head[7] != '1')
        FAIL(e, TARE_E_VERSION, "%s: unknown format %c; this program reads format 1", r->path, head[7]);
    if (head[7] != '1') FAIL(e, TARE_E_CORRUPT, "%s: is not a state file", r->path);
    uint64_t footer[4];
    memcpy(footer, r->map.data + size - FOOTER, FOOTER);
    if (memcmp(&footer[3], TAIL, 8))
        FAIL(e, TARE_E_CORRUPT, "%s: ends early (%lld bytes); the file is cut short", r->path, (long long)size);
    const uint64_t limit = (uint64_t)size - FOOTER;
    if (footer[0] > limit || footer[1] != limit - footer[0])
        FAIL(e, TARE_E_CORRUPT, "%s: its list of sections is outside the file", r->path);
    const char *list = (const char *)r->map.data + footer[0];
    if (fs_hash(list, (int64_t)footer[1], 0) != footer[2]) FAIL(e, TARE_E_CORRUPT, "%s: its list of sections is damaged", r->path);
    TRY(json_parse(list, (int64_t)footer[1], r->path, &r->sections, e));
    if (!json_is_array(r->sections)) FAIL(e, TARE_E_CORRUPT, "%s: its list of sections must be an array", r->path);
    size_t i;
    json_t *s;
    json_array_foreach(r->sections, i, s)
    {
        const int64_t offset = json_int_or(s, "offset", -1), n = json_int_or(s, "size", -1);
        if (offset < 8 || n < 0 || offset > (int64_t)footer[0] || n > (int64_t)footer[0] - offset)
            FAIL(e, TARE_E_CORRUPT, "%s: section '%s' is outside the file", r->path, json_text_or(s, "name", "?"));
    }
    return TARE_OK;
}

tare_status state_open(const char *path, struct state_reader **out, struct err *e)
{
    *out = NULL;
    struct state_reader *r = calloc(1, sizeof *r);
    if (!r) FAIL(e, TARE_E_NOMEM, "%s: out of memory", path);
    tare_status status = fs_join(r->path, "", path, e);
    if (!status) status = fs_map(path, &r->map, e);
    if (!status) status = read_list(r, e);
    if (status) {
        state_close(r);
        return status;
    }
    *out = r;
    return TARE_OK;
}

void state_close(struct state_reader *r)
{
    if (!r) return;
    json_decref(r->sections);
    fs_unmap(&r->map);
    free(r);
}

void state_close_at(struct state_reader **p)
{
    state_close(*p);
}

static const json_t *find_section(const struct state_reader *r, const char *name)
{
    size_t i;
    json_t *s;
    json_array_foreach(r->sections, i, s)
    {
        if (!strcmp(json_text_or(s, "name", ""), name)) return s;
    }
    return NULL;
}

int64_t state_count(const struct state_reader *r)
{
    return (int64_t)json_array_size(r->sections);
}

const char *state_name(const struct state_reader *r, int64_t i)
{
    return json_text_or(json_array_get(r->sections, (size_t)i), "name", "");
}

int state_has(const struct state_reader *r, const char *name)
{
    return find_section(r, name) != NULL;
}

int64_t state_size(const struct state_reader *r, const char *name)
{
    const json_t *s = find_section(r, name);
    return s ? json_int_or(s, "size", 0) : -1;
}

tare_status state_view(const struct state_reader *r, const char *name, const void **data, int64_t *n, struct err *e)
{
    const json_t *s = find_section(r, name);
    if (!s) FAIL(e, TARE_E_NOT_FOUND, "%s: section '%s' is missing", r->path, name);
    *data = r->map.data + json_int_or(s, "offset", 0);
    *n = json_int_or(s, "size", 0);
    char hex[17];
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)fs_hash(*data, *n, 0));
    if (strcmp(hex, json_text_or(s, "xxh3", "")))
        FAIL(e, TARE_E_CORRUPT, "%s: section '%s' is damaged (its hash does not match)", r->path, name);
    return TARE_OK;
}

tare_status state_read(const struct state_reader *r, const char *name, void *out, int64_t n, struct err *e)
{
    const void *data;
    int64_t have;
    TRY(state_view(r, name, &data, &have, e));
    if (have != n)
        FAIL(e, TARE_E_SHAPE,
             "%s: section '%s' has %lld bytes, %lld are needed; was it written with another model or configuration?", r->path, name,
             (long long)have, (long long)n);
    if (n) memcpy(out, data, (size_t)n);
    return TARE_OK;
}

tare_status state_read_int(const struct state_reader *r, const char *name, int64_t *out, struct err *e)
{
    return state_read(r, name, out, sizeof *out, e);
}
