#include "base/json.h"
#include "model/safetensors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 15 }; /* elements converted at a time */

uint16_t safetensors_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static int64_t source_bytes(const struct st_source *t, enum dtype dtype)
{
    return t->shape[0] * (t->rank == 2 ? t->shape[1] : 1) * (dtype == DTYPE_BF16 ? 2 : 4);
}

/* Makes the header, padded with spaces to a multiple of 8 so that the data are aligned. */
static tare_status make_header(const struct st_source *tensors, int64_t n, enum dtype dtype, struct str *out, struct err *e)
{
    int64_t at = 0;
    TRY(str_add(out, "{\"__metadata__\":{\"format\":\"pt\"}", -1, e));
    for (int64_t i = 0; i < n; i++) {
        const struct st_source *t = &tensors[i];
        const int64_t bytes = source_bytes(t, dtype);
        json_t *name = json_string(t->name);
        if (!name) FAIL(e, TARE_E_INVALID, "tensor name %s: not valid UTF-8", t->name);
        tare_status status = str_add(out, ",", 1, e);
        if (!status) status = json_print(name, out, e);
        json_decref(name);
        TRY(status);
        TRY(str_addf(out, e, ":{\"dtype\":\"%s\",\"shape\":[%lld", dtype == DTYPE_BF16 ? "BF16" : "F32", (long long)t->shape[0]));
        if (t->rank == 2) TRY(str_addf(out, e, ",%lld", (long long)t->shape[1]));
        TRY(str_addf(out, e, "],\"data_offsets\":[%lld,%lld]}", (long long)at, (long long)(at + bytes)));
        at += bytes;
    }
    TRY(str_add(out, "}", 1, e));
    while (out->size % 8) TRY(str_add(out, " ", 1, e));
    return TARE_OK;
}

/* The tensors to write, their destination, and the source of those whose floats are not in memory
 * yet. */
struct shard_writer {
    const struct st_source *tensors;
    st_fetch fetch;
    void *ctx;
    enum dtype dtype;
    FILE *file;
    const char *path; /* for messages */
    uint16_t *buffer; /* [CHUNK] */
};

static tare_status write_data(const struct shard_writer *w, const float *x, int64_t n, struct err *e)
{
    if (w->dtype != DTYPE_BF16) return fs_put(w->file, w->path, x, 4 * n, e);
    for (int64_t at = 0; at < n; at += CHUNK) {
        const int64_t m = n - at < CHUNK ? n - at : CHUNK;
        for (int64_t i = 0; i < m; i++) w->buffer[i] = safetensors_to_bf16(x[at + i]);
        TRY(fs_put(w->file, w->path, w->buffer, 2 * m, e));
    }
    return TARE_OK;
}

static tare_status write_tensors(const struct shard_writer *w, const struct str *header, int64_t first, int64_t end, struct err *e)
{
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)header->size >> (8 * i));
    TRY(fs_put(w->file, w->path, length, 8, e));
    TRY(fs_put(w->file, w->path, header->data, header->size, e));
    for (int64_t i = first; i < end; i++) {
        const struct st_source *t = &w->tensors[i];
        const float *data = t->data;
        if (!data) TRY(w->fetch(w->ctx, i, &data, e));
        TRY(write_data(w, data, t->shape[0] * (t->rank == 2 ? t->shape[1] : 1), e));
    }
    return TARE_OK;
}

/* Writes tensors first .. end-1. */
static tare_status write_shard(const char *path, const struct shard_writer *w, int64_t first, int64_t end, struct err *e)
{
    struct shard_writer to = *w;
    char temporary[FS_PATH], dir[FS_PATH];
    OWNED(str_free) struct str header = {0};
    OWNED(mem_free_at) uint16_t *buffer = NULL;
    if (w->dtype == DTYPE_F16) FAIL(e, TARE_E_UNSUPPORTED, "%s: weights are written as f32 or bf16, not f16", path);
    if (snprintf(temporary, sizeof temporary, "%s.tmp", path) >= (int)sizeof temporary)
        FAIL(e, TARE_E_INVALID, "%s: path too long", path);
    TRY(mem_new(CHUNK * 2, (void **)&buffer, e));
    TRY(make_header(w->tensors + first, end - first, w->dtype, &header, e));
    to.buffer = buffer;
    to.path = path;
    to.file = fopen(temporary, "wb");
    if (!to.file) FAIL(e, TARE_E_IO, "%s: %s", temporary, strerror(errno));
    tare_status written = write_tensors(&to, &header, first, end, e);
    if (written)
        fclose(to.file);
    else
        written = fs_close_synced(to.file, path, e);
    if (!written && rename(temporary, path)) written = err_set(e, TARE_E_IO, __FILE__, __LINE__, "%s: %s", path, strerror(errno));
    if (written) {
        unlink(temporary);
        return written;
    }
    fs_dirname(dir, path);
    return fs_sync_dir(dir, e);
}

tare_status safetensors_write(const char *path, const struct st_source *tensors, int64_t n, enum dtype dtype, struct err *e)
{
    return write_shard(path, &(struct shard_writer){.tensors = tensors, .dtype = dtype}, 0, n, e);
}

/* first[i] = index of shard i's first tensor; first has capacity n + 1. Returns the number of
 * shards. */
static int64_t cut_shards(const struct st_source *tensors, int64_t n, enum dtype dtype, int64_t shard_bytes, int64_t *first)
{
    int64_t shards = 0, used = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t bytes = source_bytes(&tensors[i], dtype);
        if (!i || used + bytes > shard_bytes) {
            first[shards++] = i;
            used = 0;
        }
        used += bytes;
    }
    first[shards] = n;
    return shards;
}

static tare_status write_shards(const char *folder, const struct shard_writer *w, const int64_t *first, int64_t shards,
                                json_t *index, struct err *e)
{
    json_t *map = json_object_get(index, "weight_map");
    json_int_t total = 0;
    for (int64_t s = 0; s < shards; s++) {
        char name[64], path[FS_PATH];
        snprintf(name, sizeof name, "model-%05lld-of-%05lld.safetensors", (long long)(s + 1), (long long)shards);
        TRY(fs_join(path, folder, name, e));
        TRY(write_shard(path, w, first[s], first[s + 1], e));
        for (int64_t i = first[s]; i < first[s + 1]; i++) {
            total += source_bytes(&w->tensors[i], w->dtype);
            if (json_object_set_new(map, w->tensors[i].name, json_string(name)))
                FAIL(e, TARE_E_NOMEM, "no memory for the index of %s", folder);
        }
    }
    if (json_object_set_new(json_object_get(index, "metadata"), "total_size", json_integer(total)))
        FAIL(e, TARE_E_NOMEM, "no memory for the index of %s", folder);
    return TARE_OK;
}

tare_status safetensors_write_folder(const char *folder, const struct st_source *tensors, int64_t n, const struct st_writer *how,
                                     struct err *e)
{
    const struct shard_writer w = {.tensors = tensors, .fetch = how->fetch, .ctx = how->ctx, .dtype = how->dtype};
    char path[FS_PATH];
    OWNED(mem_free_at) int64_t *first = NULL;
    OWNED(json_decrefp) json_t *index = NULL;
    OWNED(str_free) struct str text = {0};
    TRY(mem_new((n + 1) * 8, (void **)&first, e));
    const int64_t shards = cut_shards(tensors, n, how->dtype, how->shard_bytes, first);
    if (shards <= 1) {
        TRY(fs_join(path, folder, "model.safetensors", e));
        return write_shard(path, &w, 0, n, e);
    }
    index = json_pack("{s:{}, s:{}}", "metadata", "weight_map");
    if (!index) FAIL(e, TARE_E_NOMEM, "no memory for the index of %s", folder);
    TRY(write_shards(folder, &w, first, shards, index, e));
    TRY(json_print(index, &text, e));
    TRY(fs_join(path, folder, "model.safetensors.index.json", e));
    return fs_write_atomic(path, text.data, text.size, e);
}
