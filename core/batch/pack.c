#include "batch/pack.h"

#include "base/fs.h"
#include "batch/table.h"

#include <stdbool.h>
#include <string.h>

enum { PAD = 8, WHOLE = 64 };
static const int64_t MOST = (int64_t)1 << 40; /* entries of an axis that no column counts */

struct header {
    uint64_t hash, columns; /* checksums of all bytes after the first 8, and of the column table */
    int64_t bytes, step, n_components, n_clusters, count[BATCH_N_AXES];
};

/* Hashes the part of the table that two builds must share to agree on the meaning of the bytes. */
static uint64_t hash_table(void)
{
    uint64_t hash = BATCH_N_AXES;
    for (int c = 0; c < BATCH_N_COLUMNS; c++) {
        const struct batch_column *t = &BATCH_TABLE[c];
        const uint64_t what[] = {t->axis, t->kind, t->size};
        hash = fs_hash(t->name, (int64_t)strlen(t->name), hash);
        hash = fs_hash(what, sizeof what, hash);
    }
    return hash;
}

static uint64_t hash_bytes(const char *bytes, int64_t n)
{
    const int64_t own = sizeof(uint64_t);
    return fs_hash(bytes + own, n - own, 0);
}

/* ---------------------------------------------------------------- packing */

static tare_status append_bytes(struct str *out, const void *data, int64_t n, struct err *e)
{
    return n ? str_add(out, data, n, e) : TARE_OK;
}

static tare_status append_padding(struct str *out, int64_t start, int64_t to, struct err *e)
{
    static const char zeros[WHOLE];
    return append_bytes(out, zeros, (to - (out->size - start) % to) % to, e);
}

/* Returns entry i of a column of texts; size -1: none. */
static tare_text text_at(const struct batch *b, int c, int64_t i)
{
    if (BATCH_TABLE[c].kind == KIND_TEXT) {
        const tare_text t = ((const tare_text *)batch_array(b, c))[i];
        return t.data ? t : (tare_text){NULL, -1};
    }
    const char *s = ((const char *const *)batch_array(b, c))[i];
    return (tare_text){s, s ? (int64_t)strlen(s) : -1};
}

static tare_status put_texts(const struct batch *b, int c, int64_t n, struct str *out, struct err *e)
{
    for (int64_t i = 0; i < n; i++) {
        const tare_text t = text_at(b, c, i);
        TRY(append_bytes(out, &t.size, sizeof t.size, e));
    }
    for (int64_t i = 0; i < n; i++) {
        const tare_text t = text_at(b, c, i);
        if (t.size < 0) continue;
        TRY(append_bytes(out, t.data, t.size, e));
        TRY(append_bytes(out, "", 1, e));
    }
    return TARE_OK;
}

/* Counts the entries of axes whose BEGIN columns are packed; other axes have none. */
static void count_packed(const struct batch *b, unsigned stages, int64_t *count)
{
    count[AXIS_GROUP] = b->n_groups;
    for (int axis = AXIS_GROUP + 1; axis < BATCH_N_AXES; axis++) {
        const int c = batch_begin_column((enum batch_axis)axis);
        const int64_t *begin = BATCH_TABLE[c].stage & stages ? batch_array(b, c) : NULL;
        count[axis] = begin ? begin[count[BATCH_TABLE[c].axis]] : 0;
    }
}

/* Appends column c; n -1: absent */
static tare_status append_column(const struct batch *b, int c, int64_t n, struct str *out, struct err *e)
{
    const struct batch_column *t = &BATCH_TABLE[c];
    const int64_t there = n >= 0;
    TRY(append_bytes(out, &there, sizeof there, e));
    if (!there) return TARE_OK;
    if (t->kind == KIND_TEXT || t->kind == KIND_STRING) return put_texts(b, c, n, out, e);
    const int64_t entries = batch_is_begin(t->kind) ? n + 1 : n * batch_width(b, c);
    return append_bytes(out, batch_array(b, c), entries * (int64_t)t->size, e);
}

tare_status batch_pack(const struct batch *b, unsigned stages, struct str *out, struct err *e)
{
    const int64_t start = out->size;
    struct header h = {.columns = hash_table(), .step = b->step, .n_components = b->n_components, .n_clusters = b->n_clusters};
    count_packed(b, stages, h.count);
    TRY(append_bytes(out, &h, sizeof h, e));
    for (int c = 0; c < BATCH_N_COLUMNS; c++) {
        const struct batch_column *t = &BATCH_TABLE[c];
        const bool there = (t->stage & stages) && t->kind != KIND_LOCAL && batch_array(b, c);
        TRY(append_column(b, c, there ? h.count[t->axis] : -1, out, e));
        TRY(append_padding(out, start, PAD, e));
    }
    TRY(append_padding(out, start, WHOLE, e));
    h.bytes = out->size - start;
    memcpy(out->data + start, &h, sizeof h);
    h.hash = hash_bytes(out->data + start, h.bytes);
    memcpy(out->data + start, &h.hash, sizeof h.hash);
    return TARE_OK;
}

/* ---------------------------------------------------------------- unpacking */

struct cursor {
    char *at, *end;
    const struct header *header;
    struct arena *arena;
};

/* Takes count times size bytes and their padding. */
static tare_status take_bytes(struct cursor *c, int64_t count, int64_t size, void *out, struct err *e)
{
    int64_t n;
    if (count < 0 || __builtin_mul_overflow(count, size, &n) || n > c->end - c->at)
        FAIL(e, TARE_E_CORRUPT, "packed batch: truncated");
    memcpy(out, &c->at, sizeof c->at);
    c->at += n;
    return TARE_OK;
}

static tare_status check_begin(const int64_t *begin, int64_t n, int64_t children, struct err *e)
{
    bool good = begin[0] == 0 && begin[n] == children;
    for (int64_t i = 0; good && i < n; i++) good = begin[i] <= begin[i + 1];
    if (!good) FAIL(e, TARE_E_CORRUPT, "packed batch: wrong numbers of entries");
    return TARE_OK;
}

static tare_status take_text(struct cursor *c, int64_t size, tare_text *out, struct err *e)
{
    char *bytes = NULL;
    *out = (tare_text){0};
    if (size == -1) return TARE_OK;
    if (size < 0 || size == INT64_MAX) FAIL(e, TARE_E_CORRUPT, "packed batch: invalid text of %lld bytes", (long long)size);
    TRY(take_bytes(c, size + 1, 1, &bytes, e));
    if (bytes[size]) FAIL(e, TARE_E_CORRUPT, "packed batch: unterminated text");
    *out = (tare_text){bytes, size};
    return TARE_OK;
}

static tare_status take_texts(struct cursor *c, struct batch *b, int column, int64_t n, struct err *e)
{
    const int64_t *sizes = NULL;
    TRY(take_bytes(c, n, sizeof *sizes, &sizes, e));
    TRY(batch_new_array(b, column, n, c->arena, e));
    for (int64_t i = 0; i < n; i++) {
        tare_text text;
        TRY(take_text(c, sizes[i], &text, e));
        if (BATCH_TABLE[column].kind == KIND_TEXT)
            ((tare_text *)batch_array(b, column))[i] = text;
        else
            ((const char **)batch_array(b, column))[i] = text.data;
    }
    return TARE_OK;
}

static tare_status take_column(struct cursor *c, struct batch *b, int column, const char *start, struct err *e)
{
    const struct batch_column *t = &BATCH_TABLE[column];
    const int64_t n = c->header->count[t->axis];
    const int64_t *there = NULL;
    void *array = NULL;
    TRY(take_bytes(c, 1, sizeof *there, &there, e));
    if (*there && t->kind != KIND_LOCAL) {
        if (t->kind == KIND_TEXT || t->kind == KIND_STRING) {
            TRY(take_texts(c, b, column, n, e));
        } else {
            const int64_t width = batch_width(b, column);
            int64_t entries;
            if (width < 0 || __builtin_mul_overflow(n, width, &entries) || entries == INT64_MAX) entries = -1;
            TRY(take_bytes(c, entries < 0 ? -1 : entries + (batch_is_begin(t->kind)), (int64_t)t->size, &array, e));
            if (batch_is_begin(t->kind)) TRY(check_begin(array, n, c->header->count[batch_child(column)], e));
            batch_set_array(b, column, array);
        }
    } else if (batch_is_begin(t->kind) && c->header->count[batch_child(column)]) {
        FAIL(e, TARE_E_CORRUPT, "packed batch: missing column that assigns its entries");
    }
    return take_bytes(c, (PAD - (c->at - start) % PAD) % PAD, 1, &array, e);
}

tare_status batch_unpack(void *bytes, int64_t n, struct arena *a, struct batch *out, struct err *e)
{
    const struct header *h = bytes;
    if (n < (int64_t)sizeof *h || n % WHOLE || h->bytes != n) FAIL(e, TARE_E_CORRUPT, "packed batch: truncated");
    if (h->columns != hash_table()) FAIL(e, TARE_E_CORRUPT, "packed batch: other columns; it is from another build of tare");
    if (h->hash != hash_bytes(bytes, n)) FAIL(e, TARE_E_CORRUPT, "packed batch: changed in transit (its hash does not match)");
    struct cursor c = {(char *)bytes + sizeof *h, (char *)bytes + n, h, a};
    *out = (struct batch){.step = h->step, .n_components = h->n_components, .n_clusters = h->n_clusters};
    for (int axis = 0; axis < BATCH_N_AXES; axis++) {
        if (h->count[axis] < 0 || h->count[axis] > MOST) FAIL(e, TARE_E_CORRUPT, "packed batch: wrong numbers of entries");
        batch_set_count(out, (enum batch_axis)axis, h->count[axis]);
    }
    for (int column = 0; column < BATCH_N_COLUMNS; column++) TRY(take_column(&c, out, column, bytes, e));
    if (c.end - c.at >= WHOLE) FAIL(e, TARE_E_CORRUPT, "packed batch: bytes after its end");
    return TARE_OK;
}
