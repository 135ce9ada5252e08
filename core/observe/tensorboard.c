#include "base/fs.h"
#include "observe/sinks.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- CRC32C (Castagnoli)
 * Reflected polynomial 0x82F63B78. */

static uint32_t table[256];

static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0x82F63B78u : c >> 1;
        table[i] = c;
    }
}

uint32_t events_crc32c(const void *data, int64_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_table);
    const unsigned char *p = data;
    uint32_t c = 0xFFFFFFFFu;
    for (int64_t i = 0; i < n; i++) c = table[(c ^ p[i]) & 0xFF] ^ c >> 8;
    return ~c;
}

/* TFRecord stores CRCs rotated and shifted, since a CRC of data that holds its own CRC is weak. */
static uint32_t mask_crc(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* ---------------------------------------------------------------- protobuf, encoded by hand
 * Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
 * Summary { repeated Value value = 1; }     Value { string tag = 1; float simple_value = 2; }
 * A field is a varint of number << 3 | type (0 varint, 1 eight bytes, 2 length and bytes,
 * 5 four bytes), and its content. */

static tare_status put_varint(struct str *s, uint64_t x, struct err *e)
{
    char bytes[10];
    int n = 0;
    do {
        bytes[n++] = (char)((x & 0x7F) | (x > 0x7F ? 0x80 : 0));
        x >>= 7;
    } while (x);
    return str_add(s, bytes, n, e);
}

static tare_status put_bytes(struct str *s, int field, const char *data, int64_t n, struct err *e)
{
    TRY(put_varint(s, (uint64_t)field << 3 | 2, e));
    TRY(put_varint(s, (uint64_t)n, e));
    return str_add(s, data, n, e);
}

static tare_status put_double(struct str *s, int field, double x, struct err *e)
{
    TRY(put_varint(s, (uint64_t)field << 3 | 1, e));
    return str_add(s, (const char *)&x, sizeof x, e);
}

static tare_status put_float(struct str *s, int field, float x, struct err *e)
{
    TRY(put_varint(s, (uint64_t)field << 3 | 5, e));
    return str_add(s, (const char *)&x, sizeof x, e);
}

static tare_status put_frame(struct str *out, const struct str *event, struct err *e)
{
    const uint64_t n = (uint64_t)event->size;
    const uint32_t head = mask_crc(events_crc32c(&n, sizeof n)), body = mask_crc(events_crc32c(event->data, event->size));
    TRY(str_add(out, (const char *)&n, sizeof n, e));
    TRY(str_add(out, (const char *)&head, sizeof head, e));
    TRY(str_add(out, event->data, event->size, e));
    return str_add(out, (const char *)&body, sizeof body, e);
}

tare_status events_header(struct str *out, double unix_time, struct err *e)
{
    OWNED(str_free) struct str event = {0};
    TRY(put_double(&event, 1, unix_time, e));
    TRY(put_bytes(&event, 3, "brain.Event:2", 13, e));
    return put_frame(out, &event, e);
}

tare_status events_read_header(const struct str *file, const char *path, int64_t *size, struct err *e)
{
    uint64_t n;
    uint32_t head, body;
    bool right = file->size >= (int64_t)(sizeof n + sizeof head);
    if (right) {
        memcpy(&n, file->data, sizeof n);
        memcpy(&head, file->data + sizeof n, sizeof head);
        right = head == mask_crc(events_crc32c(&n, sizeof n)) && n <= (uint64_t)file->size && (int64_t)n <= file->size - 16;
    }
    if (right) {
        memcpy(&body, file->data + 12 + n, sizeof body);
        right = body == mask_crc(events_crc32c(file->data + 12, (int64_t)n));
        *size = 16 + (int64_t)n;
    }
    if (!right) FAIL(e, TARE_E_CORRUPT, "%s: its first record is damaged", path);
    return TARE_OK;
}

static tare_status put_summary(struct str *summary, struct str *value, const struct metric_row *row, struct err *e)
{
    for (int64_t i = 0; i < row->n; i++) {
        if (!isfinite(row->values[i])) continue;
        str_clear(value);
        TRY(put_bytes(value, 1, row->names[i], (int64_t)strlen(row->names[i]), e));
        TRY(put_float(value, 2, (float)row->values[i], e));
        TRY(put_bytes(summary, 1, value->data, value->size, e));
    }
    return TARE_OK;
}

tare_status events_row(struct str *out, const struct metric_row *row, struct err *e)
{
    OWNED(str_free) struct str event = {0}, summary = {0}, value = {0};
    TRY(put_double(&event, 1, row->unix_time, e));
    TRY(put_varint(&event, 2 << 3, e));
    TRY(put_varint(&event, (uint64_t)row->step, e));
    TRY(put_summary(&summary, &value, row, e));
    TRY(put_bytes(&event, 5, summary.size ? summary.data : "", summary.size, e));
    return put_frame(out, &event, e);
}

/* ---------------------------------------------------------------- the file */

/* The name is constant, so a resumed run replaces the file. Readers sort by name and require this
 * prefix. */
const char EVENTS_FILE[] = "tensorboard/events.out.tfevents.0000000001.tare";

struct events {
    int fd;
    struct str record;
    char path[FS_PATH];
};

tare_status events_append_all(int fd, const char *path, const void *data, int64_t n, struct err *e)
{
    for (int64_t done = 0; done < n;) {
        const ssize_t k = write(fd, (const char *)data + done, (size_t)(n - done));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) FAIL(e, TARE_E_IO, "%s: cannot be written: %s; free some space", path, strerror(k < 0 ? errno : ENOSPC));
        done += k;
    }
    return TARE_OK;
}

tare_status events_open(const char *run_dir, const struct str *records, struct events **out, struct err *e)
{
    *out = NULL;
    struct events *t = calloc(1, sizeof *t);
    if (!t) FAIL(e, TARE_E_NOMEM, "%s: out of memory for TensorBoard events", run_dir);
    t->fd = -1;
    char folder[FS_PATH];
    tare_status status = fs_join(folder, run_dir, "tensorboard", e);
    if (!status) status = fs_mkdirs(folder, e);
    if (!status) status = fs_join(t->path, run_dir, EVENTS_FILE, e);
    if (!status) status = fs_write_atomic(t->path, records->data, records->size, e);
    if (!status) {
        t->fd = open(t->path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (t->fd < 0) status = err_set(e, TARE_E_IO, __FILE__, __LINE__, "%s: %s", t->path, strerror(errno));
    }
    if (status) {
        events_close(t);
        return status;
    }
    *out = t;
    return TARE_OK;
}

tare_status events_add(struct events *t, const struct metric_row *row, struct err *e)
{
    str_clear(&t->record);
    TRY(events_row(&t->record, row, e));
    return events_append_all(t->fd, t->path, t->record.data, t->record.size, e);
}

tare_status events_sync(struct events *t, struct err *e)
{
    if (fsync(t->fd)) FAIL(e, TARE_E_IO, "%s: cannot be synced: %s", t->path, strerror(errno));
    return TARE_OK;
}

void events_close(struct events *t)
{
    if (!t) return;
    if (t->fd >= 0) close(t->fd);
    str_free(&t->record);
    free(t);
}
