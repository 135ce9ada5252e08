/* Damaged files are refused with a message that names the file, the tensor and the fault; written
 * files can be read back; conversions. */
#include "check.h"
#include "folder.h"

#include "model/safetensors.h"

#include <math.h>
#include <string.h>

static const char *dir;

static const char *in_dir(const char *file)
{
    static char path[FS_PATH];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    return path;
}

static int set_up(void **state)
{
    (void)state;
    return (dir = make_test_folder("tare-safetensors")) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    struct err e;
    return fs_remove_tree(dir, &e) ? -1 : 0;
}

/* Parses a file of this header and n bytes of data, with the given header length (0: the true one).
 * Returns the status. */
static tare_status parse(const char *header, int64_t n, uint64_t length, struct err *e)
{
    struct safetensors s;
    const size_t h = strlen(header);
    /* The exact size, so that the sanitizer detects a read beyond it. */
    unsigned char *bytes = calloc(1, 8 + h + (size_t)n);
    const uint64_t claimed = length ? length : h;
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(claimed >> (8 * i));
    memcpy(bytes + 8, header, h);
    const tare_status status = safetensors_parse(bytes, (int64_t)h + 8 + n, "x.safetensors", &s, e);
    if (!status) safetensors_close(&s);
    free(bytes);
    return status;
}

static void refused(const char *header, int64_t n, uint64_t length, const char *why)
{
    struct err e = {0};
    assert_int_equal(parse(header, n, length, &e), TARE_E_CORRUPT);
    if (!strstr(e.message, why) || !strstr(e.message, "x.safetensors")) fail_msg("\"%s\" does not say \"%s\"", e.message, why);
}

#define ONE(REST) "{\"a\":{\"dtype\":\"F32\"," REST "}}"

static void damaged_headers(void **state)
{
    (void)state;
    struct err e = {0};
    assert_ok(parse(ONE("\"shape\":[2],\"data_offsets\":[0,8]"), 8, 0, &e), &e);
    assert_ok(parse("{\"__metadata__\":{\"format\":\"pt\"}}   ", 0, 0, &e), &e);
    assert_ok(parse(ONE("\"shape\":[],\"data_offsets\":[0,4]"), 4, 0, &e), &e);
    assert_ok(parse(ONE("\"shape\":[3,0],\"data_offsets\":[0,0]"), 0, 0, &e), &e);
    refused(ONE("\"shape\":[2],\"data_offsets\":[0,8]"), 7, 0, "truncated");
    refused(ONE("\"shape\":[2],\"data_offsets\":[0,8]"), 8, 1000, "longer than the file");
    refused(ONE("\"shape\":[2],\"data_offsets\":[0,8]"), 8, 100000001, "at most 100000000");
    refused(ONE("\"shape\":[2],\"data_offsets\":[0,8]"), 8, UINT64_MAX, "at most 100000000");
    refused(ONE("\"shape\":[2],\"data_offsets\":[0,8]"), 9, 0, "the last 1 bytes belong to no tensor");
    refused(ONE("\"shape\":[2],\"data_offsets\":[4,12]"), 12, 0, "belong to no tensor");
    refused(ONE("\"shape\":[2],\"data_offsets\":[8,0]"), 8, 0, "backwards");
    refused(ONE("\"shape\":[2],\"data_offsets\":[-8,0]"), 8, 0, "backwards");
    refused(ONE("\"shape\":[3],\"data_offsets\":[0,8]"), 8, 0, "need 12");
    refused(ONE("\"shape\":[-2],\"data_offsets\":[0,8]"), 8, 0, "dimension 0");
    refused(ONE("\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]"), 8, 0, "overflow");
    refused(ONE("\"shape\":[4611686018427387904],\"data_offsets\":[0,8]"), 8, 0, "\"a\"");
    refused(ONE("\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]"), 8, 0, "9 dimensions");
    refused(ONE("\"shape\":2,\"data_offsets\":[0,8]"), 8, 0, "no \"shape\"");
    refused(ONE("\"shape\":[2],\"data_offsets\":[0]"), 8, 0, "pair");
    refused(ONE("\"shape\":[2]"), 8, 0, "pair");
    refused("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, 0, "dtype");
    refused("{\"a\":3}", 0, 0, "not an object");
    refused("[]", 0, 0, "not a JSON object");
    refused("{\"a\":", 0, 0, "not valid JSON");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_"
            "offsets\":[8,16]}}",
            16, 0, "uplicate");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_"
            "offsets\":[4,12]}}",
            12, 0, "\"a\" and \"b\" overlap");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_"
            "offsets\":[0,8]}}",
            8, 0, "overlap");
}

static void short_files(void **state)
{
    (void)state;
    struct err e = {0};
    struct safetensors s;
    for (int64_t n = 0; n < 8; n++)
        assert_int_equal(safetensors_parse((const unsigned char *)"\1\0\0\0\0\0\0\0", n, "x", &s, &e), TARE_E_CORRUPT);
    assert_int_equal(safetensors_open(in_dir("nothing.safetensors"), &s, &e), TARE_E_NOT_FOUND);
    assert_int_equal(safetensors_open_folder(dir, &s, &e), TARE_E_NOT_FOUND);
    assert_ok(fs_write_atomic(in_dir("empty.safetensors"), "", 0, &e), &e);
    assert_int_equal(safetensors_open(in_dir("empty.safetensors"), &s, &e), TARE_E_CORRUPT);
}

static const float VALUES[12] = {0.0f, -0.0f, 1.5f, -3.25f, 1e-40f, 3.0e38f, 0.1f, -7.0f, 65504.0f, 1e-8f, 2.0f, 1.00390625f};
static const struct st_source SOURCES[] = {
    {"b.weight", 2, {3, 2}, VALUES}, {"a.bias", 1, {4, 0}, VALUES + 6}, {"c \"quoted\" \xc3\xa9", 2, {1, 2}, VALUES + 10}};

static void check_read(const struct safetensors *s, enum dtype dtype)
{
    struct err e = {0};
    for (int i = 0; i < 3; i++) {
        float got[6];
        const struct st_source *t = &SOURCES[i];
        const int64_t n = t->shape[0] * (t->rank == 2 ? t->shape[1] : 1);
        assert_ok(safetensors_read(s, t->name, (struct st_extent){t->rank, t->shape[0], t->shape[1]}, got, &e), &e);
        for (int64_t j = 0; j < n; j++) {
            float want = t->data[j];
            const uint32_t bits = (uint32_t)safetensors_to_bf16(want) << 16;
            if (dtype == DTYPE_BF16) memcpy(&want, &bits, 4);
            assert_memory_equal(&want, &got[j], 4);
        }
    }
}

static void written_reads_back(void **state)
{
    (void)state;
    struct err e = {0};
    struct safetensors s;
    for (enum dtype d = DTYPE_F32; d <= DTYPE_BF16; d++) {
        assert_ok(safetensors_write(in_dir("w.safetensors"), SOURCES, 3, d, &e), &e);
        assert_ok(safetensors_open(in_dir("w.safetensors"), &s, &e), &e);
        assert_int_equal(s.n_tensors, 3);
        check_read(&s, d);
        safetensors_close(&s);
    }
    assert_int_equal(safetensors_write(in_dir("w.safetensors"), SOURCES, 3, DTYPE_F16, &e), TARE_E_UNSUPPORTED);
    assert_int_equal(safetensors_write(in_dir("no/such/w.safetensors"), SOURCES, 3, DTYPE_F32, &e), TARE_E_IO);
    /* A full disk. Files are written to a temporary name and renamed, so the test uses a link. */
    if (!access("/dev/full", W_OK)) {
        assert_int_equal(symlink("/dev/full", in_dir("full.tmp")), 0);
        assert_int_equal(safetensors_write(in_dir("full"), SOURCES, 3, DTYPE_F32, &e), TARE_E_IO);
        assert_false(fs_exists(in_dir("full")));
    }
}

static void shards(void **state)
{
    (void)state;
    struct err e = {0};
    struct safetensors s;
    char folder[FS_PATH], path[FS_PATH];
    snprintf(folder, sizeof folder, "%s", in_dir("sharded"));
    assert_ok(fs_mkdirs(folder, &e), &e);
    assert_ok(safetensors_write_folder(folder, SOURCES, 3, &(struct st_writer){NULL, NULL, DTYPE_F32, 24}, &e), &e);
    assert_false(fs_exists(in_dir("sharded/model.safetensors")));
    assert_true(fs_exists(in_dir("sharded/model-00002-of-00002.safetensors")));
    assert_ok(safetensors_open_folder(folder, &s, &e), &e);
    assert_int_equal(s.n_files, 2);
    assert_int_equal(s.n_tensors, 3);
    check_read(&s, DTYPE_F32);
    safetensors_close(&s);

    assert_ok(safetensors_write(in_dir("sharded/model-00002-of-00002.safetensors"), SOURCES + 1, 1, DTYPE_F32, &e), &e);
    assert_int_equal(safetensors_open_folder(folder, &s, &e), TARE_E_NOT_FOUND);
    assert_non_null(strstr(e.message, "quoted"));
    snprintf(path, sizeof path, "%s", in_dir("sharded/model-00002-of-00002.safetensors"));
    unlink(path);
    assert_int_equal(safetensors_open_folder(folder, &s, &e), TARE_E_NOT_FOUND);
    assert_non_null(strstr(e.message, "00002"));

    static const char outside[] = "{\"weight_map\":{\"a\":\"../w.safetensors\"}}", number[] = "{\"weight_map\":{\"a\":1}}",
                      none[] = "{}";
    const char *bad[] = {outside, number, none};
    for (int i = 0; i < 3; i++) {
        assert_ok(fs_write_atomic(in_dir("sharded/model.safetensors.index.json"), bad[i], (int64_t)strlen(bad[i]), &e), &e);
        assert_int_equal(safetensors_open_folder(folder, &s, &e), TARE_E_CORRUPT);
    }
}

static void wrong_tensors(void **state)
{
    (void)state;
    struct err e = {0};
    struct safetensors s;
    float x[8];
    static const char header[] = "{\"i\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]},\"q\":{\"dtype\":\"F4\","
                                 "\"shape\":[7],\"data_offsets\":[8,12]}}";
    unsigned char bytes[8 + sizeof header - 1 + 12] = {sizeof header - 1};
    memcpy(bytes + 8, header, sizeof header - 1);
    /* Unused types are accepted. */
    assert_ok(safetensors_parse(bytes, sizeof bytes, "f", &s, &e), &e);
    assert_int_equal(safetensors_read(&s, "i", (struct st_extent){1, 2, 0}, x, &e), TARE_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "I32"));
    assert_int_equal(safetensors_read(&s, "q", (struct st_extent){1, 7, 0}, x, &e), TARE_E_UNSUPPORTED);
    assert_int_equal(safetensors_read(&s, "z", (struct st_extent){1, 2, 0}, x, &e), TARE_E_NOT_FOUND);
    assert_non_null(strstr(e.message, "\"z\" is missing"));
    assert_int_equal(safetensors_read(&s, "i", (struct st_extent){2, 2, 3}, x, &e), TARE_E_SHAPE);
    assert_non_null(strstr(e.message, "[2]"));
    assert_non_null(strstr(e.message, "[2, 3]"));
    safetensors_close(&s);
}

static void conversions(void **state)
{
    (void)state;
    static const struct {
        uint32_t bits;
        uint16_t bf16;
    } round[] = {{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81}, {0x7f7fffff, 0x7f80},
                 {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x80000000, 0x8000}, {0x00008001, 0x0001}};
    static const struct {
        uint16_t half;
        float value;
    } half[] = {{0x0000, 0},        {0x3c00, 1},        {0xc000, -2},
                {0x7bff, 65504},    {0x0001, 0x1p-24f}, {0x03ff, 0x1.ff8p-15f},
                {0x0400, 0x1p-14f}, {0x7c00, INFINITY}, {0x3555, 0x1.554p-2f}};
    for (size_t i = 0; i < sizeof round / sizeof *round; i++) {
        float x;
        memcpy(&x, &round[i].bits, 4);
        assert_int_equal(safetensors_to_bf16(x), round[i].bf16);
    }
    assert_int_equal(safetensors_to_bf16(NAN) & 0x7f80, 0x7f80);
    assert_true((safetensors_to_bf16(NAN) & 0x7f) != 0);
    for (size_t i = 0; i < sizeof half / sizeof *half; i++) assert_true(safetensors_from_f16(half[i].half) == half[i].value);
    assert_true(isnan(safetensors_from_f16(0x7e00)));
    assert_true(signbit(safetensors_from_f16(0x8000)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_headers),    cmocka_unit_test(short_files),
                                       cmocka_unit_test(written_reads_back), cmocka_unit_test(shards),
                                       cmocka_unit_test(wrong_tensors),      cmocka_unit_test(conversions)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
