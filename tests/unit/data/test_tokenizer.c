/* The ids and texts of the reference strings, three vocabularies; what is refused; streams; threads. */
#include "check.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "data/tokenizer.h"

#include <pthread.h>
#include <string.h>

static struct tokenizer *load(const char *name)
{
    char file[200];
    struct err e = {0};
    struct tokenizer *t = NULL;
    snprintf(file, sizeof file, "models/tokenizers/%s/tokenizer.json", name);
    char folder[FS_PATH];
    fs_dirname(folder, shared_or_skip(file));
    const double begin = clock_seconds();
    assert_ok(tokenizer_load(folder, &t, &e), &e);
    printf("%s loaded in %.0f ms\n", name, 1e3 * (clock_seconds() - begin));
    return t;
}

struct goldens {
    const struct tokenizer *t;
    int64_t rows, wrong, wrong_back, wrong_stream;
    bool drops; /* the vocabulary lacks bytes, so decoding back may lose some */
};

/* Decodes piece by piece; each piece has to be valid UTF-8 by itself. */
static void stream_back(const struct tokenizer *t, const struct token_ids *ids, struct str *out)
{
    struct token_stream s;
    struct err e = {0};
    token_stream_init(&s, t, false);
    for (int64_t i = 0; i <= ids->n; i++) {
        const int64_t before = out->size;
        if (i < ids->n)
            assert_ok(token_stream_push(&s, ids->data[i], out, &e), &e);
        else
            assert_ok(token_stream_end(&s, out, &e), &e);
        if (out->size > before) assert_int_equal(str_utf8_error(out->data + before, out->size - before), 0);
    }
}

static bool lacks_byte(const struct goldens *g, const char *text, size_t n)
{
    bool lacks = false;
    for (size_t i = 0; i < n && !lacks; i++) {
        const unsigned char b = (unsigned char)text[i];
        lacks = g->drops && (b == 4 || b == 6 || b == 0x13 || b == 0x14 || b == 0x16 || b == 0x1D || b >= 0xF1);
    }
    return lacks;
}

static tare_status golden(void *ctx, const json_t *row, const char *where, struct err *e)
{
    struct goldens *g = ctx;
    const json_t *text = json_object_get(row, "text"), *want = json_object_get(row, "ids");
    struct token_ids ids = {0};
    TRY(tokenizer_encode(g->t, json_string_value(text), (int64_t)json_string_length(text), &ids, e));
    bool same = (size_t)ids.n == json_array_size(want);
    for (int64_t i = 0; same && i < ids.n; i++) same = ids.data[i] == json_integer_value(json_array_get(want, (size_t)i));
    if (!same && g->wrong++ < 5) printf("%s: other ids (%s)\n", where, json_text_or(row, "cat", ""));
    /* what ids stand for is NFC of the text; encoding that again has to give the same ids */
    struct str back = {0}, streamed = {0};
    TRY(tokenizer_decode(g->t, ids.data, ids.n, false, &back, e));
    stream_back(g->t, &ids, &streamed);
    if (back.size != streamed.size || (back.size && memcmp(back.data, streamed.data, (size_t)back.size))) g->wrong_stream++;
    const bool equal =
        back.size == (int64_t)json_string_length(text) && !memcmp(back.data, json_string_value(text), (size_t)back.size);
    struct token_ids again = {0};
    TRY(tokenizer_encode(g->t, back.data, back.size, &again, e));
    const bool stable = again.n == ids.n && (!ids.n || !memcmp(again.data, ids.data, (size_t)ids.n * sizeof *ids.data));
    if (!equal && !stable && !lacks_byte(g, json_string_value(text), json_string_length(text)) && g->wrong_back++ < 5)
        printf("%s: not decoded back\n", where);
    g->rows++;
    token_ids_free(&ids);
    token_ids_free(&again);
    str_free(&back);
    str_free(&streamed);
    return TARE_OK;
}

static void check_goldens(const char *name, const char *file)
{
    struct err e = {0};
    struct tokenizer *t = load(name);
    struct goldens g = {.t = t, .drops = !strcmp(name, "smollm2")};
    const char *path = shared_or_skip(file);
    const int64_t least = shared_is_whole(path) ? 1000 : 50;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_ok(json_each_line(f, file, golden, &g, &e), &e);
    fclose(f);
    tokenizer_free(t);
    printf("%s: %lld strings\n", name, (long long)g.rows);
    assert_true(g.rows > least);
    assert_int_equal(g.wrong, 0);
    assert_int_equal(g.wrong_back, 0);
    assert_int_equal(g.wrong_stream, 0);
}

static void test_smollm2(void **state)
{
    (void)state;
    check_goldens("smollm2", "data/tokenizer/smollm2.jsonl");
}

static void test_qwen(void **state)
{
    (void)state;
    check_goldens("qwen2.5", "data/tokenizer/qwen2.5.jsonl");
}

static void test_llama(void **state)
{
    (void)state;
    check_goldens("llama-3", "data/tokenizer/llama-3.jsonl");
}

static void test_roles(void **state)
{
    (void)state;
    const bool whole = shared_is_whole(shared_or_skip("models/tokenizers/llama-3/tokenizer.json"));
    const int32_t llama = whole ? 128000 : 600, qwen = whole ? 151643 : 600; /* the first of the special tokens */
    struct tokenizer *t = load("llama-3");
    assert_int_equal(tokenizer_role_id(t, TOKEN_BOS), llama);
    assert_int_equal(tokenizer_role_id(t, TOKEN_EOS), llama + 9);
    assert_int_equal(tokenizer_role_id(t, TOKEN_PAD), -1);
    assert_true(tokenizer_add_bos(t));
    assert_true(tokenizer_is_special(t, llama + 9));
    assert_int_equal(tokenizer_size(t), llama + 256);
    tokenizer_free(t);
    t = load("qwen2.5");
    assert_int_equal(tokenizer_role_id(t, TOKEN_BOS), -1);
    assert_false(tokenizer_add_bos(t));
    assert_int_equal(tokenizer_role_id(t, TOKEN_EOS), qwen + 2);
    assert_int_equal(tokenizer_size(t), qwen + 22);
    tokenizer_free(t);
}

/* ---------------------------------------------------------------- without reference data */

static const char *const small_json = "{\"added_tokens\":[{\"id\":270,\"content\":\"<x>\",\"special\":true,\"normalized\":false},"
                                      "{\"id\":271,\"content\":\"<x>y\",\"special\":false,\"normalized\":false}],"
                                      "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_"
                                      "space\":false},\"decoder\":{\"type\":\"ByteLevel\"},"
                                      "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"c\":3,\"abc\":4,"
                                      "\"\\u0120\":5,\"bc\":6,\"\\u00c3\":7,\"\\u00a9\":8},"
                                      "\"merges\":[\"b c\",[\"a\",\"bc\"],\"a b\"]}}";

static struct tokenizer *small(void)
{
    struct err e = {0};
    struct tokenizer *t = NULL;
    assert_ok(tokenizer_parse((tare_text){small_json, (int64_t)strlen(small_json)}, (tare_text){0}, "small.json", &t, &e), &e);
    return t;
}

static void expect_ids(const struct tokenizer *t, const char *text, int64_t n, const int32_t *want)
{
    struct err e = {0};
    struct token_ids ids = {0};
    assert_ok(tokenizer_encode(t, text, (int64_t)strlen(text), &ids, &e), &e);
    assert_int_equal(ids.n, n);
    for (int64_t i = 0; i < n; i++) assert_int_equal(ids.data[i], want[i]);
    token_ids_free(&ids);
}

static void test_small(void **state)
{
    (void)state;
    struct tokenizer *t = small();
    expect_ids(t, "", 0, NULL);
    expect_ids(t, "abc", 1, (int32_t[]){4});
    expect_ids(t, "abab abc", 4, (int32_t[]){2, 2, 5, 4});
    expect_ids(t, "zaqb", 1, (int32_t[]){2});                   /* bytes without a token vanish before merging */
    expect_ids(t, "a<x>ya<x>", 4, (int32_t[]){0, 271, 0, 270}); /* the longest that begins there */
    expect_ids(t, "e\xCC\x81", 2, (int32_t[]){7, 8});           /* NFC: U+00E9 is C3 A9 */
    tokenizer_free(t);
}

static void test_long_piece(void **state)
{
    (void)state;
    struct tokenizer *t = small();
    struct err e = {0};
    enum { N = 30000 };
    char *text = malloc(3 * N);
    for (int i = 0; i < N; i++) memcpy(text + 3 * i, i % 7 ? "abc" : "aab", 3);
    struct token_ids ids = {0};
    assert_ok(tokenizer_encode(t, text, 3 * N, &ids, &e), &e);
    struct str back = {0};
    assert_ok(tokenizer_decode(t, ids.data, ids.n, false, &back, &e), &e);
    assert_int_equal(back.size, 3 * N);
    assert_memory_equal(back.data, text, 3 * N);
    for (int64_t i = 0, k = 0; i < N; i++) { /* abc, or a and ab */
        if (i % 7 == 0) assert_int_equal(ids.data[k++], 0);
        assert_int_equal(ids.data[k++], i % 7 ? 4 : 2);
    }
    token_ids_free(&ids);
    str_free(&back);
    free(text);
    tokenizer_free(t);
}

static void test_invalid_text(void **state)
{
    (void)state;
    struct tokenizer *t = small();
    struct err e = {0};
    struct token_ids ids = {0};
    assert_int_equal(tokenizer_encode(t, "ab\xFF", 3, &ids, &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "byte 3"));
    token_ids_free(&ids);
    tokenizer_free(t);
}

static void test_broken_bytes(void **state)
{
    (void)state;
    struct tokenizer *t = small();
    struct err e = {0};
    struct str out = {0};
    /* C3, then a: the C3 is U+FFFD; A9 alone is one too; C3 A9 is whole; ids without a token have no text */
    assert_ok(tokenizer_decode(t, (int32_t[]){7, 0, 8, 7, 8, 9999, -5, 270, 7}, 9, true, &out, &e), &e);
    assert_string_equal(out.data, "\xEF\xBF\xBD"
                                  "a"
                                  "\xEF\xBF\xBD"
                                  "\xC3\xA9"
                                  "\xEF\xBF\xBD");
    str_free(&out);
    tokenizer_free(t);
}

/* Each entry: what replaces what in small_json, and a part of the message. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"\"BPE\"", "\"WordPiece\"", "model.type \"WordPiece\""},
        {"\"NFC\"", "\"Lowercase\"", "normalizer of type \"Lowercase\""},
        {"\"ByteLevel\",\"add", "\"Metaspace\",\"add", "pre_tokenizer[0]: type \"Metaspace\""},
        {"_space\":false", "_space\":true", "add_prefix_space"},
        {"{\"type\":\"ByteLevel\"}", "null", "the decoder has to be one ByteLevel"},
        {"\"b c\"", "\"b q\"", "model.merges[0]"},
        {"\"b c\"", "7", "model.merges[0]"},
        {"\"a\":0", "\"a\":1", "belongs to"},
        {"\"a\":0", "\"a\":-1", "not in 0.."},
        {"\"a\":0", "\"a\":\"0\"", "not a whole number"},
        {"\"id\":270", "\"id\":0", "belongs to"},
        {"\"special\":true", "\"lstrip\":true", "added_tokens[0]: lstrip"},
        {"\"special\":true", "\"odd\":true", "\"odd\" is not supported"},
        {"\"type\":\"BPE\"", "\"type\":\"BPE\",\"dropout\":0.1", "model.dropout"},
        {"\"type\":\"BPE\"", "\"type\":\"BPE\",\"byte_fallback\":true", "model.byte_fallback"},
        {"\"type\":\"BPE\"", "\"type\":\"BPE\",\"unk_token\":\"a\"", "model.unk_token"},
        {"{\"added", "{\"extra\":1,\"added", "\"extra\" is not supported"},
        {"{\"added", "[{\"added", "not valid JSON"},
        {"\"model\"", "\"version\"", "\"model\" is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str text = {0};
        struct err e = {0};
        const char *at = strstr(small_json, cases[i].from);
        assert_non_null(at);
        assert_ok(str_add(&text, small_json, at - small_json, &e), &e);
        assert_ok(str_add(&text, cases[i].to, -1, &e), &e);
        assert_ok(str_add(&text, at + strlen(cases[i].from), -1, &e), &e);
        struct tokenizer *t = NULL;
        assert_int_not_equal(tokenizer_parse((tare_text){text.data, text.size}, (tare_text){0}, "small.json", &t, &e), TARE_OK);
        if (!strstr(e.message, cases[i].message) || strncmp(e.message, "small.json: ", 12)) fail_msg("case %zu: %s", i, e.message);
        assert_null(t);
        str_free(&text);
    }
}

static void *encode_thread(void *arg)
{
    const struct tokenizer *t = arg;
    struct err e = {0};
    uintptr_t sum = 0;
    for (int i = 0; i < 200; i++) {
        struct token_ids ids = {0};
        char text[64];
        snprintf(text, sizeof text, "abc %d abab bc", i % 13);
        if (tokenizer_encode(t, text, (int64_t)strlen(text), &ids, &e)) return NULL;
        for (int64_t k = 0; k < ids.n; k++) sum = sum * 31 + (uintptr_t)ids.data[k] + 1;
        token_ids_free(&ids);
    }
    return (void *)sum;
}

static void test_threads(void **state)
{
    (void)state;
    struct tokenizer *t = small();
    pthread_t threads[4];
    void *got[4], *want = encode_thread(t);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, encode_thread, t), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], &got[i]);
    for (int i = 0; i < 4; i++) assert_ptr_equal(got[i], want);
    tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),        cmocka_unit_test(test_long_piece), cmocka_unit_test(test_invalid_text),
        cmocka_unit_test(test_broken_bytes), cmocka_unit_test(test_refusals),   cmocka_unit_test(test_threads),
        cmocka_unit_test(test_smollm2),      cmocka_unit_test(test_qwen),       cmocka_unit_test(test_llama),
        cmocka_unit_test(test_roles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
