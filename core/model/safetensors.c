#include "model/safetensors.h"

#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t HEADER_MAX = 100 * 1000 * 1000; /* limit of the format */

/* Returns the bits of one element; 0 for an unknown type. */
static int64_t dtype_bits(const char *dtype)
{
    static const struct {
        const char *name;
        int bits;
    } known[] = {{"F32", 32}, {"BF16", 16}, {"F16", 16}, {"F64", 64}, {"I64", 64},    {"I32", 32},    {"I16", 16}, {"I8", 8},
                 {"U64", 64}, {"U32", 32},  {"U16", 16}, {"U8", 8},   {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"BOOL", 8}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, dtype)) return known[i].bits;
    return 0;
}

int64_t safetensors_count(const struct st_tensor *t)
{
    int64_t n = 1;
    for (int64_t i = 0; i < t->rank; i++) n *= t->shape[i];
    return n;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct st_tensor *)a)->name, ((const struct st_tensor *)b)->name);
}

static int by_offset(const void *a, const void *b)
{
    const struct st_tensor *x = a, *y = b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static tare_status read_shape(const json_t *entry, const char *path, struct st_tensor *t, struct err *e)
{
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape)) FAIL(e, TARE_E_CORRUPT, "%s: tensor \"%.200s\": no \"shape\" array", path, t->name);
    if (json_array_size(shape) > ST_MAX_RANK)
        FAIL(e, TARE_E_CORRUPT, "%s: tensor \"%.200s\": %zu dimensions; at most %d are read", path, t->name, json_array_size(shape),
             ST_MAX_RANK);
    int64_t count = 1;
    for (size_t i = 0; i < json_array_size(shape); i++) {
        const json_t *v = json_array_get(shape, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            FAIL(e, TARE_E_CORRUPT, "%s: tensor \"%.200s\": dimension %zu is not a whole number of at least 0", path, t->name, i);
        t->shape[t->rank++] = json_integer_value(v);
        if (__builtin_mul_overflow(count, t->shape[i], &count))
            FAIL(e, TARE_E_CORRUPT, "%s: tensor \"%.200s\": the product of its dimensions overflows", path, t->name);
    }
    return TARE_OK;
}

/* Reads one entry of the header. data, size: the bytes after the header. */
static tare_status read_entry(const json_t *entry, const char *path, const unsigned char *data, int64_t size, struct st_tensor *t,
                              struct err *e)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!dtype || strlen(dtype) >= sizeof t->dtype)
        FAIL(e, TARE_E_CORRUPT, "%s: tensor \"%.200s\": no valid \"dtype\"", path, t->name);
    memcpy(t->dtype, dtype, strlen(dtype) + 1);
    TRY(read_shape(entry, path, t, e));
    const json_t *offsets = json_object_get(entry, "data_offsets"), *b = json_array_get(offsets, 0),
                 *n = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(b) || !json_is_integer(n))
        FAIL(e, TARE_E_CORRUPT, "%s: tensor \"%.200s\": \"data_offsets\" must be a pair of whole numbers", path, t->name);
    const int64_t begin = json_integer_value(b), end = json_integer_value(n);
    if (begin < 0 || end < begin)
        FAIL(e, TARE_E_CORRUPT, "%s: tensor \"%.200s\": data_offsets [%lld, %lld] run backwards", path, t->name, (long long)begin,
             (long long)end);
    if (end > size)
        FAIL(e, TARE_E_CORRUPT,
             "%s: tensor \"%.200s\" ends at byte %lld of the data, the file has only %lld; it is truncated, fetch it again", path,
             t->name, (long long)end, (long long)size);
    t->data = data + begin;
    t->bytes = end - begin;
    const int64_t bits = dtype_bits(dtype);
    int64_t want;
    if (bits && (__builtin_mul_overflow(safetensors_count(t), bits / 8, &want) || want != t->bytes))
        FAIL(e, TARE_E_CORRUPT, "%s: tensor \"%.200s\": %lld bytes of data, but its shape and type %s need %lld", path, t->name,
             (long long)t->bytes, dtype, (long long)want);
    return TARE_OK;
}

/* Checks that every tensor, sorted by offset, begins where the previous one ends. */
static tare_status check_coverage(struct st_tensor *t, int64_t n, const char *path, const unsigned char *data, int64_t size,
                                  struct err *e)
{
    qsort(t, (size_t)n, sizeof *t, by_offset);
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t begin = t[i].data - data;
        if (begin < at)
            FAIL(e, TARE_E_CORRUPT, "%s: tensors \"%.200s\" and \"%.200s\" overlap at byte %lld of the data", path, t[i - 1].name,
                 t[i].name, (long long)begin);
        if (begin > at)
            FAIL(e, TARE_E_CORRUPT, "%s: bytes %lld to %lld of the data, before tensor \"%.200s\", belong to no tensor", path,
                 (long long)at, (long long)begin, t[i].name);
        at = begin + t[i].bytes;
    }
    if (at != size) FAIL(e, TARE_E_CORRUPT, "%s: the last %lld bytes belong to no tensor", path, (long long)(size - at));
    return TARE_OK;
}

struct tensor_bytes { /* the bytes after the header */
    const unsigned char *data;
    int64_t size;
};

/* Appends the tensors of a header to s. */
static tare_status add_header(struct safetensors *s, const json_t *header, const char *path, int64_t file, struct tensor_bytes b,
                              struct err *e)
{
    if (!json_is_object(header)) FAIL(e, TARE_E_CORRUPT, "%s: the header is not a JSON object", path);
    struct st_tensor *all;
    const int64_t old = s->n_tensors;
    TRY(arena_new(&s->arena, &all, old + (int64_t)json_object_size(header), e));
    if (old) memcpy(all, s->tensors, sizeof *all * (size_t)old);
    s->tensors = all;
    const char *name;
    const json_t *entry;
    json_object_foreach((json_t *)(uintptr_t)header, name, entry)
    {
        if (!strcmp(name, "__metadata__")) continue;
        struct st_tensor *t = &all[s->n_tensors++];
        char *copy;
        TRY(arena_strdup(&s->arena, name, -1, &copy, e));
        *t = (struct st_tensor){.name = copy, .file = file};
        if (!json_is_object(entry)) FAIL(e, TARE_E_CORRUPT, "%s: tensor \"%.200s\": its entry is not an object", path, name);
        TRY(read_entry(entry, path, b.data, b.size, t, e));
    }
    return check_coverage(all + old, s->n_tensors - old, path, b.data, b.size, e);
}

/* Checks the frame of a file in memory and appends its tensors. */
static tare_status add_bytes(struct safetensors *s, const unsigned char *data, int64_t size, const char *path, int64_t file,
                             struct err *e)
{
    uint64_t n = 0;
    if (size < 8)
        FAIL(e, TARE_E_CORRUPT, "%s: %lld bytes are too few for a safetensors file; it is truncated, fetch it again", path,
             (long long)size);
    for (int i = 7; i >= 0; i--) n = n << 8 | data[i];
    if (n > (uint64_t)HEADER_MAX)
        FAIL(e, TARE_E_CORRUPT, "%s: a header of %llu bytes; at most %lld are allowed, so this is not a safetensors file", path,
             (unsigned long long)n, (long long)HEADER_MAX);
    if ((int64_t)n > size - 8)
        FAIL(e, TARE_E_CORRUPT,
             "%s: the header of %llu bytes is longer than the file of %lld bytes; it is truncated, fetch it again", path,
             (unsigned long long)n, (long long)size);
    OWNED(json_decrefp) json_t *header = NULL;
    TRY(json_parse((const char *)data + 8, (int64_t)n, path, &header, e));
    return add_header(s, header, path, file, (struct tensor_bytes){data + 8 + n, size - 8 - (int64_t)n}, e);
}

static tare_status map_file(struct safetensors *s, const char *path, struct err *e)
{
    struct st_file *files;
    char *copy;
    TRY(arena_new(&s->arena, &files, s->n_files + 1, e));
    TRY(arena_strdup(&s->arena, path, -1, &copy, e));
    if (s->n_files) memcpy(files, s->files, sizeof *files * (size_t)s->n_files);
    s->files = files;
    files[s->n_files].path = copy;
    TRY(fs_map(path, &files[s->n_files].map, e));
    s->n_files++;
    return add_bytes(s, files[s->n_files - 1].map.data, files[s->n_files - 1].map.size, copy, s->n_files - 1, e);
}

static void sort_names(struct safetensors *s)
{
    if (s->n_tensors) qsort(s->tensors, (size_t)s->n_tensors, sizeof *s->tensors, by_name);
}

static tare_status parse_json(const unsigned char *data, int64_t size, const char *name, struct safetensors *out, struct err *e)
{
    char *copy;
    TRY(arena_strdup(&out->arena, name, -1, &copy, e));
    TRY(arena_new(&out->arena, &out->files, 1, e));
    out->files[out->n_files++].path = copy;
    TRY(add_bytes(out, data, size, name, 0, e));
    sort_names(out);
    return TARE_OK;
}

tare_status safetensors_parse(const unsigned char *data, int64_t size, const char *name, struct safetensors *out, struct err *e)
{
    OWNED(safetensors_close) struct safetensors s = {0};
    arena_init(&s.arena, "safetensors header");
    *out = (struct safetensors){0};
    TRY(parse_json(data, size, name, &s, e));
    *out = s;
    s = (struct safetensors){0};
    return TARE_OK;
}

tare_status safetensors_open(const char *path, struct safetensors *out, struct err *e)
{
    *out = (struct safetensors){0};
    arena_init(&out->arena, "safetensors header");
    const tare_status status = map_file(out, path, e);
    if (status)
        safetensors_close(out);
    else
        sort_names(out);
    return status;
}

static int64_t file_index(const struct safetensors *s, const char *path)
{
    for (int64_t i = 0; i < s->n_files; i++)
        if (!strcmp(s->files[i].path, path)) return i;
    return -1;
}

/* Keeps, once all shards are mapped, only the copy that the index names of a tensor found in
 * several shards. */
static tare_status keep_indexed(struct safetensors *s, const json_t *map, const char *folder, const char *index, struct err *e)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < s->n_tensors; i++) {
        const char *shard = json_string_value(json_object_get(map, s->tensors[i].name));
        char path[FS_PATH];
        if (!shard) continue;
        TRY(fs_join(path, folder, shard, e));
        if (s->tensors[i].file == file_index(s, path)) s->tensors[kept++] = s->tensors[i];
    }
    s->n_tensors = kept;
    sort_names(s);
    const char *name;
    const json_t *shard;
    json_object_foreach((json_t *)(uintptr_t)map, name, shard)
    {
        if (!safetensors_find(s, name))
            FAIL(e, TARE_E_NOT_FOUND, "%s: tensor \"%.200s\" is not in %.200s, where the index puts it", index, name,
                 json_string_value(shard));
    }
    return TARE_OK;
}

static tare_status open_shards(struct safetensors *s, const char *folder, const char *index, struct err *e)
{
    OWNED(json_decrefp) json_t *j = NULL;
    TRY(json_read_file(index, &j, e));
    const json_t *map = json_object_get(j, "weight_map"), *shard;
    const char *name;
    if (!json_is_object(map)) FAIL(e, TARE_E_CORRUPT, "%s: no \"weight_map\" object", index);
    json_object_foreach((json_t *)(uintptr_t)map, name, shard)
    {
        const char *file = json_string_value(shard);
        char path[FS_PATH];
        if (!file || !*file || strchr(file, '/') || !strcmp(file, "..") || !strcmp(file, "."))
            FAIL(e, TARE_E_CORRUPT, "%s: tensor \"%.200s\": invalid file name; it must name a file in the index's folder", index,
                 name);
        TRY(fs_join(path, folder, file, e));
        if (file_index(s, path) < 0) TRY(map_file(s, path, e));
    }
    return keep_indexed(s, map, folder, index, e);
}

tare_status safetensors_open_folder(const char *folder, struct safetensors *out, struct err *e)
{
    char single[FS_PATH], index[FS_PATH];
    *out = (struct safetensors){0};
    TRY(fs_join(single, folder, "model.safetensors", e));
    TRY(fs_join(index, folder, "model.safetensors.index.json", e));
    if (fs_exists(single)) return safetensors_open(single, out, e);
    if (!fs_exists(index))
        FAIL(e, TARE_E_NOT_FOUND,
             "%s: neither model.safetensors nor model.safetensors.index.json exists; model.path must be a Hugging Face folder",
             folder);
    arena_init(&out->arena, "safetensors header");
    const tare_status status = open_shards(out, folder, index, e);
    if (status) safetensors_close(out);
    return status;
}

void safetensors_close(struct safetensors *s)
{
    for (int64_t i = 0; i < s->n_files; i++) fs_unmap(&s->files[i].map);
    arena_free(&s->arena);
    *s = (struct safetensors){0};
}

const struct st_tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    const struct st_tensor key = {.name = name};
    return s->n_tensors ? bsearch(&key, s->tensors, (size_t)s->n_tensors, sizeof key, by_name) : NULL;
}

float safetensors_from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31u, mantissa = h & 1023u;
    uint32_t bits;
    float x;
    if (!exponent) { /* zero and subnormals: mantissa * 2^-24, exact in float */
        x = (float)mantissa * 0x1p-24f;
        memcpy(&bits, &x, 4);
        bits |= sign;
    } else {
        bits = sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | mantissa << 13;
    }
    memcpy(&x, &bits, 4);
    return x;
}

tare_status safetensors_read_f32(const struct safetensors *s, const struct st_tensor *t, float *out, struct err *e)
{
    const int64_t n = safetensors_count(t);
    if (!strcmp(t->dtype, "F32")) {
        memcpy(out, t->data, (size_t)n * 4);
    } else if (!strcmp(t->dtype, "BF16")) {
        for (int64_t i = 0; i < n; i++) {
            const uint32_t bits = (uint32_t)(t->data[2 * i] | t->data[2 * i + 1] << 8) << 16;
            memcpy(out + i, &bits, 4);
        }
    } else if (!strcmp(t->dtype, "F16")) {
        for (int64_t i = 0; i < n; i++) out[i] = safetensors_from_f16((uint16_t)(t->data[2 * i] | t->data[2 * i + 1] << 8));
    } else {
        FAIL(e, TARE_E_UNSUPPORTED,
             "%s: tensor \"%.200s\" has type %s; weights are read from F32, F16 and BF16 (quantized checkpoints: use the original)",
             s->files[t->file].path, t->name, t->dtype);
    }
    return TARE_OK;
}

static void print_shape(char *out, size_t size, const int64_t *shape, int64_t rank)
{
    size_t used = (size_t)snprintf(out, size, "[");
    for (int64_t i = 0; i < rank && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, i ? ", %lld" : "%lld", (long long)shape[i]);
    if (used < size) snprintf(out + used, size - used, "]");
}

/* Refuses weights packed by GPTQ, AWQ or compressed-tensors, which have other tensors instead of
 * NAME.weight. */
static tare_status refuse_quantized(const struct safetensors *s, const char *name, struct err *e)
{
    static const char *const PACKED[] = {"qweight", "weight_packed"};
    const char *dot = strrchr(name, '.');
    char other[200];
    for (size_t i = 0; dot && i < sizeof PACKED / sizeof *PACKED; i++) {
        snprintf(other, sizeof other, "%.*s.%s", (int)(dot - name), name, PACKED[i]);
        const struct st_tensor *t = safetensors_find(s, other);
        if (t)
            FAIL(
                e, TARE_E_UNSUPPORTED,
                "%s: tensor \"%s\" is quantized (GPTQ, AWQ or the like: \"%s\"); weights are read from F32, F16 and BF16, so use the original checkpoint",
                s->files[t->file].path, name, other);
    }
    return TARE_OK;
}

/* Compares as integers: magnitudes of floats are ordered, and those above the largest finite one
 * are infinite or NaN. */
static bool all_finite(const float *x, int64_t n)
{
    uint32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    return largest < 0x7f800000u;
}

static tare_status check_finite(const struct safetensors *s, const struct st_tensor *t, const float *x, struct err *e)
{
    const int64_t n = safetensors_count(t), cols = t->rank == 2 ? t->shape[1] : n;
    int64_t i = 0;
    if (all_finite(x, n)) return TARE_OK;
    while (isfinite(x[i])) i++;
    FAIL(
        e, TARE_E_NOT_FINITE,
        "%s: tensor \"%s\": row %lld, column %lld is %s; every weight must be finite. The file is damaged, or its training had diverged: fetch it again, or take an earlier checkpoint",
        s->files[t->file].path, t->name, (long long)(i / cols), (long long)(i % cols), isnan(x[i]) ? "NaN" : "infinite");
}

tare_status safetensors_equal(const struct safetensors *s, const struct st_tensor *a, const struct st_tensor *b, bool *out,
                              struct err *e)
{
    const int64_t n = safetensors_count(a);
    OWNED(mem_free_at) float *x = NULL, *y = NULL;
    *out = a->rank == b->rank && !memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape);
    if (!*out || (!strcmp(a->dtype, b->dtype) && !memcmp(a->data, b->data, (size_t)a->bytes))) return TARE_OK;
    TRY(mem_new(n * (int64_t)sizeof *x, (void **)&x, e));
    TRY(mem_new(n * (int64_t)sizeof *y, (void **)&y, e));
    TRY(safetensors_read_f32(s, a, x, e));
    TRY(safetensors_read_f32(s, b, y, e));
    for (int64_t i = 0; i < n && *out; i++) *out = x[i] == y[i];
    return TARE_OK;
}

tare_status safetensors_read(const struct safetensors *s, const char *name, struct st_extent x, float *out, struct err *e)
{
    const struct st_tensor *t = safetensors_find(s, name);
    const int64_t want[2] = {x.rows, x.cols};
    if (!t) {
        TRY(refuse_quantized(s, name, e));
        FAIL(e, TARE_E_NOT_FOUND, "%s: tensor \"%s\" is missing", s->n_files ? s->files[0].path : "(no file)", name);
    }
    if (t->rank != x.rank || t->shape[0] != x.rows || (x.rank == 2 && t->shape[1] != x.cols)) {
        char got[200], wanted[64];
        print_shape(got, sizeof got, t->shape, t->rank);
        print_shape(wanted, sizeof wanted, want, x.rank);
        FAIL(e, TARE_E_SHAPE, "%s: tensor \"%s\" has the shape %s, config.json asks for %s", s->files[t->file].path, name, got,
             wanted);
    }
    TRY(safetensors_read_f32(s, t, out, e));
    return check_finite(s, t, out, e);
}
