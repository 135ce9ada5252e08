/* libFuzzer target: any bytes as a safetensors file. An accepted file is read. Build with clang
 * -fsanitize=fuzzer,address,undefined together with core/model/safetensors.c and core/base;
 * corpus: tests/fuzz/corpus/safetensors. */
#include "model/safetensors.h"
#include "mutate.h"

static const char *const HEADER_PARTS[] = {
    "{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}",
    "{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,6]}",
    "{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[0,2]}",
    "{\"dtype\":\"I64\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,8]}",
    "{\"dtype\":\"BOOL\",\"shape\":[0],\"data_offsets\":[0,0]}",
    "{\"format\":\"pt\"}",
    "{\"__metadata__\":{\"format\":\"pt\"}}",
    "{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
    "\"F8_E4M3\"",
    "\"F64\"",
    "\"U8\"",
    "\"BF16\"",
    "\"a type of a long name\"",
    "\"\"",
    "[0,8]",
    "[8,0]",
    "[0,9223372036854775807]",
    "[4294967296,4294967296]",
    "[2147483648,2147483648,4]",
    "[1,2,3,4,5,6,7,8]",
    "[-1,2]",
    "[]",
    "0",
    "1",
    "8",
    "1.5",
    "9223372036854775807",
    "null",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors s;
    struct err e = {0};
    if (safetensors_parse(data, (int64_t)size, "fuzz", &s, &e)) return 0;
    for (int64_t i = 0; i < s.n_tensors; i++) {
        const struct st_tensor *t = &s.tensors[i];
        if (t->data < data || t->bytes < 0 || (size_t)(t->data - data) + (size_t)t->bytes > size) abort();
        if (safetensors_find(&s, t->name) != t) abort();
        /* At least two bytes per element wherever it is read. */
        float *x = malloc((size_t)t->bytes * 2 + 4);
        if (x && t->bytes < 1 << 20) (void)safetensors_read_f32(&s, t, x, &e);
        free(x);
    }
    safetensors_close(&s);
    return 0;
}

/* ---- changes made by libFuzzer: the header as a tree with its length corrected, and sometimes
 * offsets that fit types and shapes. */

static int64_t bytes_of(const char *dtype)
{
    static const char *const names[] = {"F64", "F32", "BF16", "F16", "I64", "I32", "I16", "U64", "U32", "U16"};
    static const int64_t bytes[] = {8, 4, 2, 2, 8, 4, 2, 8, 4, 2};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(dtype, names[i])) return bytes[i];
    return 1;
}

/* Places each tensor's bytes after those of the previous one. Returns the number of all bytes. */
static int64_t lay_out(json_t *header)
{
    const char *name;
    json_t *entry, *extent;
    int64_t end = 0;
    json_object_foreach(header, name, entry)
    {
        size_t i;
        if (!strcmp(name, "__metadata__") || !json_is_object(entry)) continue;
        int64_t n = bytes_of(json_text_or(entry, "dtype", ""));
        json_array_foreach(json_object_get(entry, "shape"), i, extent)
        {
            const int64_t x = json_integer_value(extent);
            n = x >= 0 && x < 64 && n < 4096 ? n * x : n;
        }
        json_object_set_new(entry, "data_offsets", json_pack("[II]", (json_int_t)end, (json_int_t)(end + n)));
        end += n;
    }
    return end;
}

static size_t change_header(uint8_t *part, size_t n, size_t room, struct chance *c)
{
    const struct parts parts = PARTS(HEADER_PARTS);
    return mutate_json(part, n, room, &parts, c);
}

/* After a change of the header: sets offsets, and as many bytes as they need. */
static size_t fit(uint8_t *data, uint64_t n, size_t max_size)
{
    json_t *header = NULL;
    struct str text = {0};
    struct err e = {0};
    if (json_parse((const char *)data + 8, (int64_t)n, "fuzz", &header, &e)) return 8 + n;
    const size_t body = (size_t)lay_out(header);
    if (json_print(header, &text, &e)) abort();
    json_decref(header);
    if (8 + (size_t)text.size + body <= max_size) {
        n = (uint64_t)text.size;
        memcpy(data + 8, text.data, n);
        for (size_t i = 0; i < body; i++) data[8 + n + i] = (uint8_t)(i * 37);
    } else if (8 + n + body > max_size) {
        str_free(&text);
        return 8 + n;
    }
    str_free(&text);
    memcpy(data, &n, sizeof n);
    return 8 + n + body;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct chance c;
    uint64_t n = 0;
    chance_begin(&c, seed);
    if (size >= sizeof n) memcpy(&n, data, sizeof n);
    if (size < sizeof n || n > size - sizeof n || chance_below(&c, 6) == 0) return LLVMFuzzerMutate(data, size, max_size);
    const size_t body = size - sizeof n - n;
    size = mutate_span(&(struct span){data, size, max_size, sizeof n, n}, change_header, &c);
    n = size - sizeof n - body;
    memcpy(data, &n, sizeof n);
    return chance_below(&c, 2) ? fit(data, n, max_size) : size;
}
