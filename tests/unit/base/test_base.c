#include "check.h"
#include "folder.h"

#include "base/arena.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

static const char *folder;

static int setup(void **state)
{
    (void)state;
    return (folder = make_test_folder("tare-base")) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    return (int)fs_remove_tree(folder, NULL);
}

static const char *in_folder(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ---------------------------------------------------------------- err */

static tare_status inner(struct err *e)
{
    FAIL(e, TARE_E_RANGE, "x = %d", 5);
}

static void errors_keep_code_message_and_frames(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(inner(&e), TARE_E_RANGE);
    assert_string_equal(e.message, "x = 5");
    assert_non_null(strstr(e.frames, "test_base.c:"));
    assert_int_equal(err_prefix(&e, "row %d", 3), TARE_E_RANGE);
    assert_string_equal(e.message, "row 3: x = 5");
    err_frame(&e, e.code, "dir/other.c", 7);
    assert_non_null(strstr(e.frames, " < other.c:7"));
    char big[3000];
    memset(big, 'a', sizeof big);
    big[2999] = 0;
    err_set(&e, TARE_E_IO, "f", 1, "%s", big);
    err_prefix(&e, "%s", big);
    assert_int_equal(strlen(e.message), sizeof e.message - 1);
    err_set(&e, TARE_E_IO, "f", 1, "%s: the reason", big);
    assert_int_equal(strlen(e.message), sizeof e.message - 1);
    /* a long path must not displace the reason */
    assert_string_equal(strrchr(e.message, ':'), ": the reason");
    for (int i = 0; i < 500; i++) err_frame(&e, e.code, "file.c", i);
    assert_int_equal(inner(NULL), TARE_E_RANGE);
    assert_int_equal(err_exit_code(TARE_OK), 0);
    assert_int_equal(err_exit_code(TARE_E_CONFIG), 3);
    assert_int_equal(err_exit_code(TARE_E_CANCELLED), 130);
    assert_int_equal(err_exit_code(TARE_E_IO), 1);
}

/* ---------------------------------------------------------------- str */

static void numbers_from_text(void **state)
{
    (void)state;
    int64_t i;
    double x;
    assert_int_equal(str_to_int("-9223372036854775808", &i, NULL), TARE_OK);
    assert_true(i == INT64_MIN);
    assert_int_equal(str_to_int("9223372036854775807", &i, NULL), TARE_OK);
    assert_int_equal(str_to_int("9223372036854775808", &i, NULL), TARE_E_RANGE);
    assert_int_equal(str_to_double("-0x1.8p1", &x, NULL), TARE_OK);
    assert_true(x == -3);
    assert_int_equal(str_to_double("1e-320", &x, NULL), TARE_OK);
    assert_true(x > 0); /* denormals are numbers */
    assert_int_equal(str_to_double("1e999", &x, NULL), TARE_E_RANGE);
    static const char *const BAD[] = {"", " ", " 1", "1 ", "\t1", "\n1", "1x", "--1", "1,5", "one"};
    for (int k = 0; k < 10; k++) {
        if (!str_to_int(BAD[k], &i, NULL)) fail_msg("'%s' accepted as a whole number", BAD[k]);
        if (!str_to_double(BAD[k], &x, NULL)) fail_msg("'%s' accepted as a number", BAD[k]);
    }
    assert_int_not_equal(str_to_int("1.0", &i, NULL), TARE_OK);
    assert_int_equal(str_to_double("nan", &x, NULL), TARE_E_RANGE);
    assert_int_equal(str_to_double("-inf", &x, NULL), TARE_E_RANGE);
}

static void doubles_to_text_and_back(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(str_from_double(text, 0.1), "0.1");
    assert_string_equal(str_from_double(text, 1e-8), "1e-08");
    assert_string_equal(str_from_double(text, 3), "3");
    const struct rng_key key = rng_key(7, RNG_PLUGIN);
    for (uint64_t i = 0; i < 2000; i++) {
        uint32_t w[4];
        double x, back;
        rng_block(key, i, 0, w);
        memcpy(&x, w, sizeof x);
        if (!isfinite(x)) continue;
        assert_int_equal(str_to_double(str_from_double(text, x), &back, NULL), TARE_OK);
        assert_memory_equal(&x, &back, sizeof x);
    }
}

static void strings_grow(void **state)
{
    (void)state;
    struct err e = {0};
    struct str s = {0};
    for (int i = 0; i < 1000; i++) assert_ok(str_addf(&s, &e, "%d,", i), &e);
    assert_ok(str_add(&s, "a\0b", 3, &e), &e);
    assert_int_equal(s.size, 10 * 2 + 90 * 3 + 900 * 4 + 3);
    assert_memory_equal(s.data, "0,1,2,3,", 8);
    assert_memory_equal(s.data + s.size - 3, "a\0b", 4);
    str_clear(&s);
    assert_string_equal(s.data, "");
    assert_ok(str_add(&s, "", 0, &e), &e);
    assert_ok(str_addf(&s, &e, "%s", ""), &e);
    assert_int_equal(s.size, 0);
    str_free(&s);
}

/* Test against the definition: every sequence of up to three of the interesting bytes, decoded
 * literally by the standard. */
static int64_t utf8_by_the_book(const unsigned char *p, int64_t n)
{
    for (int64_t i = 0; i < n;) {
        const unsigned c = p[i];
        const int length = c < 0x80 ? 1 : (c & 0xE0) == 0xC0 ? 2 : (c & 0xF0) == 0xE0 ? 3 : (c & 0xF8) == 0xF0 ? 4 : 0;
        if (!length || i + length > n) return i + 1;
        uint32_t x = length == 1 ? c : c & (0x7Fu >> length);
        for (int k = 1; k < length; k++) {
            if ((p[i + k] & 0xC0) != 0x80) return i + 1;
            x = x << 6 | (p[i + k] & 0x3F);
        }
        static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
        if (x < LEAST[length] || x > 0x10FFFF || (x >= 0xD800 && x < 0xE000)) return i + 1;
        i += length;
    }
    return 0;
}

static void utf8_is_recognised(void **state)
{
    (void)state;
    static const unsigned char BYTES[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2,
                                          0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF};
    enum { B = sizeof BYTES };
    for (int a = 0; a < B; a++)
        for (int b = 0; b < B; b++)
            for (int c = 0; c < B; c++)
                for (int d = 0; d < B; d++) {
                    const unsigned char text[5] = {BYTES[a], BYTES[b], BYTES[c], BYTES[d], 'x'};
                    for (int64_t n = 1; n <= 5; n++) {
                        const int64_t got = str_utf8_error((const char *)text, n), wanted = utf8_by_the_book(text, n);
                        if (got != wanted)
                            fail_msg("%02x %02x %02x %02x, %d bytes: %d, not %d", text[0], text[1], text[2], text[3], (int)n,
                                     (int)got, (int)wanted);
                    }
                }
    assert_int_equal(str_utf8_error("h\xC3\xA9llo \xF0\x9F\x98\x80", 11), 0);
    assert_int_equal(str_utf8_error("", 0), 0);
}

static void edits_are_counted(void **state)
{
    (void)state;
    assert_int_equal(str_distance("kitten", "sitting"), 3);
    assert_int_equal(str_distance("", "abc"), 3);
    assert_int_equal(str_distance("abc", ""), 3);
    assert_int_equal(str_distance("abc", "abc"), 0);
    assert_int_equal(str_distance("gpro", "grpo"), 1); /* a swap of adjacent characters */
    assert_int_equal(str_distance("gsop", "gspo"), 1);
    assert_int_equal(str_distance("ab", "ba"), 1);
    assert_int_equal(str_distance("abc", "cba"), 2);
    char big[300];
    memset(big, 'a', sizeof big);
    big[299] = 0;
    assert_true(str_distance(big, "a") > 100);
}

/* ---------------------------------------------------------------- rng */

/* Random123's known answers for philox4x32-10 (Salmon et al., kat_vectors). */
static void philox_gives_its_known_answers(void **state)
{
    (void)state;
    uint32_t w[4];
    rng_block((struct rng_key){{0, 0}}, 0, 0, w);
    const uint32_t zeros[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    assert_memory_equal(w, zeros, 16);
    rng_block((struct rng_key){{~0u, ~0u}}, ~(uint64_t)0, ~(uint64_t)0, w);
    const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    assert_memory_equal(w, ones, 16);
    rng_block((struct rng_key){{0xa4093822, 0x299f31d0}}, 0x85a308d3243f6a88u, 0x0370734413198a2eu, w);
    const uint32_t pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    assert_memory_equal(w, pi, 16);
}

static void draws_have_their_moments(void **state)
{
    (void)state;
    enum { N = 200000 };
    const struct rng_key key = rng_key(1, RNG_TRAIN);
    double sum = 0, squares = 0, normal = 0, normal2 = 0;
    int64_t below[7] = {0};
    for (uint64_t i = 0; i < N; i++) {
        const double u = rng_uniform(key, i, 3), z = rng_normal(key, i);
        assert_true(u >= 0 && u < 1);
        sum += u, squares += u * u, normal += z, normal2 += z * z;
        const uint64_t k = rng_below(key, i, 7);
        assert_true(k < 7);
        below[k]++;
    }
    /* five standard deviations */
    assert_true(fabs(sum / N - 0.5) < 5 * sqrt(1.0 / 12 / N));
    assert_true(fabs(squares / N - 1.0 / 3) < 5 * sqrt(4.0 / 45 / N));
    assert_true(fabs(normal / N) < 5 / sqrt(N));
    assert_true(fabs(normal2 / N - 1) < 5 * sqrt(2.0 / N));
    for (int k = 0; k < 7; k++) assert_true(fabs((double)below[k] - N / 7.0) < 5 * sqrt(N / 7.0));
}

static void keys_differ(void **state)
{
    (void)state;
    struct rng_key keys[64];
    int n = 0;
    for (uint64_t seed = 0; seed < 4; seed++)
        for (int purpose = RNG_TRAIN; purpose <= RNG_DATA; purpose++) keys[n++] = rng_key(seed, (enum rng_purpose)purpose);
    for (uint64_t word = 0; word < 8; word++) keys[n++] = rng_derive(keys[0], word);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) assert_memory_not_equal(&keys[i], &keys[j], sizeof keys[i]);
}

static void a_shuffle_is_a_permutation(void **state)
{
    (void)state;
    int64_t order[100], again[100], first[6] = {0};
    for (uint64_t seed = 0; seed < 600; seed++) {
        int seen[100] = {0}, same = 1;
        for (int i = 0; i < 100; i++) order[i] = again[i] = i;
        rng_shuffle(rng_key(seed, RNG_SHUFFLE), order, 100);
        rng_shuffle(rng_key(seed, RNG_SHUFFLE), again, 100);
        for (int i = 0; i < 100; i++) seen[order[i]]++, same &= order[i] == i;
        for (int i = 0; i < 100; i++) assert_int_equal(seen[i], 1);
        assert_false(same);
        assert_memory_equal(order, again, sizeof order);
        int64_t three[3] = {0, 1, 2};
        rng_shuffle(rng_key(seed, RNG_DATA), three, 3);
        first[three[0] * 2 + (three[1] > three[2])]++;
    }
    /* 100 each, five deviations */
    for (int k = 0; k < 6; k++) assert_true(first[k] > 55 && first[k] < 155);
}

/* ---------------------------------------------------------------- arena */

static int64_t far_bytes, far_zeroed, far_given;

static void *far_take(const void *ctx, int64_t bytes)
{
    far_bytes += bytes;
    assert_ptr_equal(ctx, &far_bytes);
    /* a fake address that must not be accessed */
    return far_bytes > 16 << 20 ? NULL : (void *)(uintptr_t)(0x10000000 + far_bytes - bytes);
}

static void far_give(const void *ctx, void *p)
{
    (void)ctx;
    assert_true((uintptr_t)p >= 0x10000000);
    far_given++;
}

static tare_status far_none(const void *ctx, const char *name, int64_t bytes, struct err *e)
{
    (void)ctx;
    FAIL(e, TARE_E_NOMEM, "%s: %lld far bytes", name, (long long)bytes);
}

static void far_zero(const void *ctx, void *p, int64_t bytes)
{
    (void)ctx, (void)p;
    far_zeroed += bytes;
}

/* Tensors of an arena with a source come from the source, and their bytes are not accessed; all
 * other memory is on the host. */
static void arenas_of_two_memories(void **state)
{
    (void)state;
    const struct arena_source source = {.take = far_take, .give = far_give, .zero = far_zero, .none = far_none, .ctx = &far_bytes};
    struct err e = {0};
    struct arena a;
    char *near, *first, *second, *again;
    arena_init_from(&a, "two", &source);
    assert_ok(arena_push(&a, 100, (void **)&near, &e), &e);
    assert_ok(tensor_new(&a, &first, 100, &e), &e);
    assert_ok(tensor_new_raw(&a, &second, 5 << 20, &e), &e);
    near[99] = 1;
    assert_true(far_zeroed == 100 && far_bytes == 6 << 20 && a.grown == 3);
    assert_true((uintptr_t)first >= 0x10000000 && (uintptr_t)second >= 0x10000000 && (uintptr_t)second % 64 == 0);
    arena_reset(&a);
    /* one block for both tensors */
    assert_true(far_given == 2 && far_bytes == (6 << 20) + (5 << 20) + 128 && a.grown == 4);
    assert_ok(tensor_new(&a, &first, 100, &e), &e);
    assert_ok(tensor_new_raw(&a, &second, 5 << 20, &e), &e);
    assert_ptr_equal(second, first + 128);
    arena_reset(&a);
    assert_ok(tensor_new(&a, &again, 70, &e), &e);
    assert_ptr_equal(again, first);
    assert_true(far_given == 2 && a.grown == 4);
    assert_int_equal(tensor_new(&a, &again, 20 << 20, &e), TARE_E_NOMEM);
    assert_string_equal(e.message, "two: 20971520 far bytes");
    arena_free(&a);
    assert_int_equal(far_given, 3);
    arena_init_from(&a, "one", NULL);
    assert_ok(tensor_new(&a, &again, 8, &e), &e);
    assert_int_equal(again[7], 0);
    arena_free(&a);
}

static void arenas_allocate_and_reset(void **state)
{
    (void)state;
    struct err e = {0};
    struct arena a;
    char *blocks[200];
    arena_init(&a, "test");
    for (int round = 0; round < 4; round++) {
        const int64_t grown = a.grown;
        for (int i = 0; i < 200; i++) {
            const int64_t n = i * 331 % 70001;
            assert_ok(arena_push(&a, n, (void **)&blocks[i], &e), &e);
            assert_int_equal((uintptr_t)blocks[i] % 64, 0);
            for (int64_t k = 0; k < n; k++) assert_int_equal(blocks[i][k], 0);
            memset(blocks[i], i + 1, (size_t)n);
        }
        for (int i = 0; i < 200; i++)
            for (int64_t k = 0; k < i * 331 % 70001; k++) assert_int_equal(blocks[i][k], (char)(i + 1));
        if (round) assert_int_equal(a.grown, grown); /* no new blocks once the shapes repeat */
        assert_true(a.used <= a.high_water);
        arena_reset(&a);
        assert_int_equal(a.used, 0);
    }
    void *p;
    assert_int_equal(arena_push(&a, -1, &p, &e), TARE_E_NOMEM);
    assert_int_equal(arena_push(&a, INT64_MAX, &p, &e), TARE_E_NOMEM);
#ifndef __SANITIZE_ADDRESS__ /* the address sanitizer ends the program instead */
    assert_int_equal(arena_push(&a, (int64_t)1 << 60, &p, &e), TARE_E_NOMEM);
#endif
    assert_null(p);
    assert_ok(arena_push(&a, 9 << 20, &p, &e), &e);
    char *text;
    assert_ok(arena_strdup(&a, "hello", 4, &text, &e), &e);
    assert_string_equal(text, "hell");
    arena_free(&a);
}

static void memory_grows(void **state)
{
    (void)state;
    struct err e = {0};
    int32_t *p = NULL;
    int64_t capacity = 0;
    for (int64_t n = 1; n < 5000; n += 7) {
        assert_ok(mem_grow((void **)&p, &capacity, n, sizeof *p, &e), &e);
        assert_true(capacity >= n);
        assert_int_equal(p[n - 1], 0);
        p[n - 1] = (int32_t)n;
        if (n > 7) assert_int_equal(p[n - 8], n - 7);
    }
    mem_free(p);
    void *q;
    assert_int_equal(mem_new(-1, &q, &e), TARE_E_NOMEM);
}

/* ---------------------------------------------------------------- json */

static void json_errors_say_where(void **state)
{
    (void)state;
    struct err e = {0};
    json_t *o = NULL;
    static const char *const BAD[] = {"", "{", "{\"a\":1,}", "{\"a\":1,\"a\":2}", "{} x", "\"\xff\"", "nul", "{\"a\":01}"};
    for (int i = 0; i < 8; i++) {
        if (!json_parse(BAD[i], (int64_t)strlen(BAD[i]), "f.jsonl:12", &o, &e)) fail_msg("accepted: %s", BAD[i]);
        assert_non_null(strstr(e.message, "f.jsonl:12: not valid JSON"));
        assert_null(o);
    }
    const char *text = "{\"n\":3,\"x\":0.1,\"t\":\"a\\u0000b\",\"no\":null,\"b\":true}";
    assert_ok(json_parse(text, (int64_t)strlen(text), "w", &o, &e), &e);
    int64_t n;
    double x;
    tare_text t;
    assert_ok(json_get_int(o, "n", "w", &n, &e), &e);
    assert_ok(json_get_double(o, "n", "w", &x, &e), &e);
    assert_ok(json_get_double(o, "x", "w", &x, &e), &e);
    assert_ok(json_get_text(o, "t", "w", &t, &e), &e);
    assert_true(n == 3 && x == 0.1 && t.size == 3);
    assert_int_equal(json_get_int(o, "x", "w", &n, &e), TARE_E_INVALID);
    assert_string_equal(e.message, "w: \"x\" is not a whole number");
    assert_int_equal(json_get_text(o, "none", "w", &t, &e), TARE_E_INVALID);
    assert_string_equal(e.message, "w: \"none\" is missing");
    assert_int_equal(json_get_double(o, "no", "w", &x, &e), TARE_E_INVALID);
    assert_true(json_bool_or(o, "b", 0) && !json_bool_or(o, "n", 0) && json_int_or(o, "x", 9) == 9);
    struct str s = {0};
    assert_ok(json_print(o, &s, &e), &e);
    assert_string_equal(s.data, "{\"n\":3,\"x\":0.10000000000000001,\"t\":\"a\\u0000b\",\"no\":null,\"b\":true}");
    str_free(&s);
    json_decref(o);
}

/* The linker substitutes this for realloc (tests.cmake): the call at which the countdown `grows`
 * reaches zero fails. */
void *__real_realloc(void *p, size_t n); /* NOLINT */
void *__wrap_realloc(void *p, size_t n); /* NOLINT */
static int grows;
void *__wrap_realloc(void *p, size_t n) /* NOLINT */
{
    return grows > 0 && !--grows ? NULL : __real_realloc(p, n);
}

/* Jansson itself continues when a key could not be written. */
static void json_without_memory_is_an_error(void **state)
{
    (void)state;
    char key[400] = "";
    struct err e = {0};
    OWNED(json_decrefp) json_t *o = json_object();
    for (int i = 0; i < 8; i++) {
        memset(key, 'a' + i, (size_t)(i + 1) * 40);
        json_object_set_new(o, key, json_integer(i));
    }
    int failed = 0;
    for (int left = 0; !left; failed++) {
        struct str s = {0};
        grows = failed + 1;
        const tare_status status = json_print(o, &s, &e);
        left = grows;
        grows = 0;
        assert_int_equal(status, left ? TARE_OK : TARE_E_NOMEM);
        str_free(&s);
    }
    assert_true(failed > 4); /* 64 bytes and twice that, up to 2 KiB */
}

static tare_status third_is_wrong(void *ctx, const json_t *o, const char *where, struct err *e)
{
    int *count = ctx;
    if (json_int_or(o, "i", -1) == 3) FAIL(e, TARE_E_RANGE, "%s: three", where);
    ++*count;
    return TARE_OK;
}

static void lines_are_counted(void **state)
{
    (void)state;
    struct err e = {0};
    static const struct {
        const char *text;
        int count;
        tare_status status;
        const char *message;
    } cases[] = {
        {"{\"i\":1}\n\n  \r\n{\"i\":2}", 2, TARE_OK, ""},
        {"{\"i\":1}\n\n{\"i\":3}\n", 1, TARE_E_RANGE, "in:3: three"},
        {"{\"i\":1}\n[1]\n", 1, TARE_E_INVALID, "in:2: not a JSON object"},
        {"{\"i\":1}\n{\"i\":", 1, TARE_E_CORRUPT, "in:2: not valid JSON"},
        {"", 0, TARE_OK, ""},
    };
    for (int i = 0; i < 5; i++) {
        assert_ok(fs_write_atomic(in_folder("l"), cases[i].text, (int64_t)strlen(cases[i].text), &e), &e);
        FILE *f = fopen(in_folder("l"), "r");
        int count = 0;
        e = (struct err){0};
        assert_int_equal(json_each_line(f, "in", third_is_wrong, &count, &e), cases[i].status);
        assert_int_equal(count, cases[i].count);
        assert_non_null(strstr(e.message, cases[i].message));
        fclose(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_keep_code_message_and_frames),
        cmocka_unit_test(numbers_from_text),
        cmocka_unit_test(doubles_to_text_and_back),
        cmocka_unit_test(strings_grow),
        cmocka_unit_test(utf8_is_recognised),
        cmocka_unit_test(edits_are_counted),
        cmocka_unit_test(philox_gives_its_known_answers),
        cmocka_unit_test(draws_have_their_moments),
        cmocka_unit_test(keys_differ),
        cmocka_unit_test(a_shuffle_is_a_permutation),
        cmocka_unit_test(arenas_allocate_and_reset),
        cmocka_unit_test(arenas_of_two_memories),
        cmocka_unit_test(memory_grows),
        cmocka_unit_test(json_errors_say_where),
        cmocka_unit_test(json_without_memory_is_an_error),
        cmocka_unit_test(lines_are_counted),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
