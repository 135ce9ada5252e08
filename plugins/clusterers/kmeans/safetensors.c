#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_LIMIT = 100000000 };

static const struct type {
    const char *name;
    enum tensor_type type;
    int64_t bytes;
} TYPES[] = {
    {"F32", TENSOR_F32, 4},    {"F16", TENSOR_F16, 2},   {"BF16", TENSOR_BF16, 2}, {"U8", TENSOR_U8, 1},
    {"F64", TENSOR_OTHER, 8},  {"I64", TENSOR_OTHER, 8}, {"U64", TENSOR_OTHER, 8}, {"I32", TENSOR_OTHER, 4},
    {"U32", TENSOR_OTHER, 4},  {"I16", TENSOR_OTHER, 2}, {"U16", TENSOR_OTHER, 2}, {"I8", TENSOR_OTHER, 1},
    {"BOOL", TENSOR_OTHER, 1},
};

static tare_status map_file(struct safetensors *s, tare_error *error)
{
    const int fd = open(s->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return tare_fail(error, errno == ENOENT ? TARE_E_NOT_FOUND : TARE_E_IO, "%s: %s", s->path, strerror(errno));
    struct stat st;
    const int bad = fstat(fd, &st) || !S_ISREG(st.st_mode);
    s->size = bad ? 0 : st.st_size;
    s->map = s->size >= 8 ? mmap(NULL, (size_t)s->size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    close(fd);
    if (bad) return tare_fail(error, TARE_E_IO, "%s: not a regular file", s->path);
    if (!s->map)
        return tare_fail(error, TARE_E_CORRUPT, "%s: %lld bytes are too few for a safetensors file", s->path, (long long)s->size);
    if (s->map == MAP_FAILED) {
        s->map = NULL;
        return tare_fail(error, TARE_E_IO, "%s: cannot be mapped: %s", s->path, strerror(errno));
    }
    return TARE_OK;
}

static tare_status read_shape(struct safetensors *s, struct tensor *t, const json_t *shape, int64_t item_bytes, tare_error *error)
{
    if (!json_is_array(shape) || json_array_size(shape) > TENSOR_RANK)
        return tare_fail(error, TARE_E_CORRUPT, "%s: tensor %s has no shape of at most %d numbers", s->path, t->name, TENSOR_RANK);
    t->rank = (int64_t)json_array_size(shape);
    t->items = 1;
    for (int64_t i = 0; i < t->rank; i++) {
        const json_t *v = json_array_get(shape, (size_t)i);
        t->shape[i] = json_integer_value(v);
        if (!json_is_integer(v) || t->shape[i] < 0 || __builtin_mul_overflow(t->items, t->shape[i], &t->items))
            return tare_fail(error, TARE_E_CORRUPT, "%s: tensor %s has an impossible shape", s->path, t->name);
    }
    int64_t bytes = 0;
    if (__builtin_mul_overflow(t->items, item_bytes, &bytes) || bytes != t->end - t->begin)
        return tare_fail(error, TARE_E_CORRUPT, "%s: tensor %s has %lld bytes, its shape and type %s need %lld", s->path, t->name,
                         (long long)(t->end - t->begin), t->type_name, (long long)bytes);
    return TARE_OK;
}

static tare_status read_tensor(struct safetensors *s, struct tensor *t, const char *name, const json_t *entry, int64_t data_size,
                               tare_error *error)
{
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (!type || json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return tare_fail(error, TARE_E_CORRUPT, "%s: tensor %s has no dtype or no data_offsets", s->path, name);
    *t = (struct tensor){.name = name, .type_name = type, .begin = json_integer_value(begin), .end = json_integer_value(end)};
    if (t->begin < 0 || t->end < t->begin || t->end > data_size)
        return tare_fail(error, TARE_E_CORRUPT,
                         "%s: tensor %s is at bytes %lld to %lld, but the file has %lld bytes; it is damaged or cut short", s->path,
                         name, (long long)t->begin, (long long)t->end, (long long)data_size);
    t->data = (const unsigned char *)s->map + (s->size - data_size) + t->begin;
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        if (strcmp(TYPES[i].name, type)) continue;
        t->type = TYPES[i].type;
        return read_shape(s, t, json_object_get(entry, "shape"), TYPES[i].bytes, error);
    }
    return tare_fail(error, TARE_E_UNSUPPORTED, "%s: tensor %s has the unknown type %s", s->path, name, type);
}

static int by_begin(const void *x, const void *y)
{
    const struct tensor *a = x, *b = y;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static tare_status read_tensors(struct safetensors *s, int64_t data_size, tare_error *error)
{
    s->tensors = calloc(json_object_size(s->header) + 1, sizeof *s->tensors);
    if (!s->tensors) return tare_fail(error, TARE_E_NOMEM, "no memory for the header of %s", s->path);
    const char *name;
    json_t *entry;
    json_object_foreach(s->header, name, entry)
    {
        if (!strcmp(name, "__metadata__")) continue;
        const tare_status status = read_tensor(s, &s->tensors[s->n], name, entry, data_size, error);
        if (status) return status;
        s->n++;
    }
    qsort(s->tensors, (size_t)s->n, sizeof *s->tensors, by_begin);
    int64_t at = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const struct tensor *t = &s->tensors[i];
        if (t->begin != at)
            return tare_fail(error, TARE_E_CORRUPT, "%s: tensor %s %s", s->path, t->name,
                             t->begin < at ? "overlaps the one before it" : "leaves a hole before it");
        at = t->end;
    }
    if (at != data_size)
        return tare_fail(error, TARE_E_CORRUPT, "%s: the tensors end at byte %lld and the file at byte %lld", s->path,
                         (long long)at, (long long)data_size);
    return TARE_OK;
}

tare_status safetensors_open(struct safetensors *s, const char *path, tare_error *error)
{
    *s = (struct safetensors){.path = path};
    tare_status status = map_file(s, error);
    if (status) return status;
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | ((const unsigned char *)s->map)[i];
    json_error_t bad;
    if (length > HEADER_LIMIT || (int64_t)length > s->size - 8) {
        status =
            tare_fail(error, TARE_E_CORRUPT, "%s: invalid header size of %llu bytes in a file of %lld; it is damaged or cut short",
                      path, (unsigned long long)length, (long long)s->size);
    } else if (!(s->header = json_loadb((const char *)s->map + 8, (size_t)length, JSON_REJECT_DUPLICATES, &bad)) ||
               !json_is_object(s->header)) {
        status = tare_fail(error, TARE_E_CORRUPT, "%s: its header is not a JSON object: %s", path,
                           s->header ? "another value" : bad.text);
    } else {
        status = read_tensors(s, s->size - 8 - (int64_t)length, error);
    }
    if (status) safetensors_close(s);
    return status;
}

void safetensors_close(struct safetensors *s)
{
    json_decref(s->header);
    free(s->tensors);
    if (s->map) munmap(s->map, (size_t)s->size);
    *s = (struct safetensors){0};
}

const struct tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    for (int64_t i = 0; i < s->n; i++)
        if (!strcmp(s->tensors[i].name, name)) return &s->tensors[i];
    return NULL;
}

const char *safetensors_metadata(const struct safetensors *s, const char *key, int64_t *size)
{
    const json_t *v = json_object_get(json_object_get(s->header, "__metadata__"), key);
    if (size) *size = (int64_t)json_string_length(v);
    return json_string_value(v);
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31) return from_bits(sign | 0x7F800000u | fraction << 13);
    if (exponent) return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
    const float x = (float)fraction * 0x1p-24f;
    return sign ? -x : x;
}

tare_status tensor_floats(const struct safetensors *s, const struct tensor *t, float *out, tare_error *error)
{
    if (t->type == TENSOR_F32) {
        memcpy(out, t->data, (size_t)(t->end - t->begin));
    } else if (t->type == TENSOR_F16 || t->type == TENSOR_BF16) {
        for (int64_t i = 0; i < t->items; i++) {
            const uint16_t bits = (uint16_t)(t->data[2 * i] | t->data[2 * i + 1] << 8);
            out[i] = t->type == TENSOR_F16 ? from_f16(bits) : from_bits((uint32_t)bits << 16);
        }
    } else {
        return tare_fail(error, TARE_E_UNSUPPORTED, "%s: tensor %s has type %s; F32, F16 and BF16 are understood", s->path, t->name,
                         t->type_name);
    }
    return TARE_OK;
}
