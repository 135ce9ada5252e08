/* The ids and texts of the reference strings, for real vocabularies and for small ones of every
 * kind; refusals; streams; threads. */
#include "check.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "data/tokenizer.h"
#include "folder.h"

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
    int64_t rows, wrong, wrong_back, wrong_stream, wrong_text;
    bool drops;   /* the vocabulary lacks bytes, so decoding may lose some */
    bool one_way; /* spaces are added and dropped: the decoded text may have other ids */
};

/* Decodes id by id; each output must be valid UTF-8. */
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
    token_stream_free(&s);
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
    /* the ids decode to the NFC of the text; encoding that again must give the same ids */
    struct str back = {0}, streamed = {0};
    TRY(tokenizer_decode(g->t, ids.data, ids.n, false, &back, e));
    stream_back(g->t, &ids, &streamed);
    if (back.size != streamed.size || (back.size && memcmp(back.data, streamed.data, (size_t)back.size))) g->wrong_stream++;
    const bool equal =
        back.size == (int64_t)json_string_length(text) && !memcmp(back.data, json_string_value(text), (size_t)back.size);
    struct token_ids again = {0};
    TRY(tokenizer_encode(g->t, back.data, back.size, &again, e));
    const bool stable = again.n == ids.n && (!ids.n || !memcmp(again.data, ids.data, (size_t)ids.n * sizeof *ids.data));
    if (!g->one_way && !equal && !stable && !lacks_byte(g, json_string_value(text), json_string_length(text)) &&
        g->wrong_back++ < 5)
        printf("%s: not decoded back\n", where);
    const char *decoded = json_text_or(row, "decoded", NULL); /* if HF's decoded text is known */
    if (decoded && strcmp(decoded, back.data) != 0 && g->wrong_text++ < 5) printf("%s: decoded to \"%s\"\n", where, back.data);
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

/* `tokenizers` normalizes by Unicode 9.0: newer characters neither move, compose nor decompose. */
static void young_characters_stay(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {{"\u0BAE\u0BCD\u0C3C", "\u0BAE\u0BCD\u0C3C"},
                                           {"a\u0315\u0C3C\u0301", "a\u0315\u0C3C\u0301"},
                                           {"\U00011935\U00011930 \U00011938", "\U00011935\U00011930 \U00011938"},
                                           {"e\u0301\u1ABF\u0327", "\u00E9\u1ABF\u0327"},
                                           {"o\u0302\u0323\u1DF6", "\u1ED9\u1DF6"},
                                           {"e\u0301\u0327", "\u0229\u0301"}};
    struct err e = {0};
    struct tokenizer *t = load("qwen2.5");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct token_ids ids = {0};
        struct str back = {0};
        assert_ok(tokenizer_encode(t, CASES[i][0], (int64_t)strlen(CASES[i][0]), &ids, &e), &e);
        assert_ok(tokenizer_decode(t, ids.data, ids.n, false, &back, &e), &e);
        assert_string_equal(back.data, CASES[i][1]);
        token_ids_free(&ids);
        str_free(&back);
    }
    tokenizer_free(t);
}

static void test_llama(void **state)
{
    (void)state;
    check_goldens("llama-3", "data/tokenizer/llama-3.jsonl");
}

/* Converted SentencePiece models, made by bench/tokenizer_differential.py --write. */
static void check_small_kind(const char *name)
{
    struct err e = {0};
    char file[200];
    snprintf(file, sizeof file, "data/tokenizer/%s.jsonl", name);
    struct tokenizer *t = load(name);
    struct goldens g = {.t = t, .one_way = true};
    FILE *f = fopen(shared_or_skip(file), "r");
    assert_non_null(f);
    assert_ok(json_each_line(f, file, golden, &g, &e), &e);
    fclose(f);
    tokenizer_free(t);
    assert_int_equal(g.rows, 40);
    assert_int_equal(g.wrong, 0);
    assert_int_equal(g.wrong_stream, 0);
    assert_int_equal(g.wrong_text, 0);
}

static void test_sentencepiece_kinds(void **state)
{
    (void)state;
    check_small_kind("phi3");
    check_small_kind("mistral");
    check_small_kind("gemma");
    check_small_kind("t5");
}

static void test_roles(void **state)
{
    (void)state;
    const bool whole = shared_is_whole(shared_or_skip("models/tokenizers/llama-3/tokenizer.json"));
    /* the first of the special tokens */
    const int32_t llama = whole ? 128000 : 600, qwen = whole ? 151643 : 600;
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

static struct tokenizer *parse(const char *json)
{
    struct err e = {0};
    struct tokenizer *t = NULL;
    assert_ok(tokenizer_parse((tare_text){json, (int64_t)strlen(json)}, (tare_text){0}, "small.json", &t, &e), &e);
    return t;
}

static struct tokenizer *small(void)
{
    return parse(small_json);
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

/* Three steps that turn one character into 300: 27 million from a single letter. */
static void test_growth_is_refused(void **state)
{
    (void)state;
    struct err e = {0};
    struct str json = {0};
    struct token_ids ids = {0};
    const char *const plain = strstr(small_json, "{\"type\":\"NFC\"}");
    assert_ok(str_add(&json, small_json, plain - small_json, &e), &e);
    assert_ok(str_addf(&json, &e, "{\"type\":\"Sequence\",\"normalizers\":["), &e);
    for (int i = 0; i < 3; i++)
        assert_ok(
            str_addf(&json, &e, "%s{\"type\":\"Replace\",\"pattern\":{\"String\":\"0\"},\"content\":\"%0300d\"}", i ? "," : "", 0),
            &e);
    assert_ok(str_addf(&json, &e, "]}%s", plain + strlen("{\"type\":\"NFC\"}")), &e);
    struct tokenizer *t = parse(json.data);
    assert_int_equal(tokenizer_encode(t, "0", 1, &ids, &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "its normalizer expands a text to 27000000 bytes from 1 (step 3)"));
    tokenizer_free(t);
    token_ids_free(&ids);
    str_free(&json);
}

static void test_small(void **state)
{
    (void)state;
    struct tokenizer *t = small();
    expect_ids(t, "", 0, NULL);
    expect_ids(t, "abc", 1, (int32_t[]){4});
    expect_ids(t, "abab abc", 4, (int32_t[]){2, 2, 5, 4});
    expect_ids(t, "zaqb", 1, (int32_t[]){2}); /* bytes without a token vanish before merging */
    /* the longest token that begins there */
    expect_ids(t, "a<x>ya<x>", 4, (int32_t[]){0, 271, 0, 270});
    expect_ids(t, "e\xCC\x81", 2, (int32_t[]){7, 8}); /* NFC: U+00E9 is C3 A9 */
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
    /* C3, then a: the C3 is U+FFFD; A9 alone is one too; C3 A9 is whole; ids without a token have
     * no text */
    assert_ok(tokenizer_decode(t, (int32_t[]){7, 0, 8, 7, 8, 9999, -5, 270, 7}, 9, true, &out, &e), &e);
    assert_string_equal(out.data, "\xEF\xBF\xBD"
                                  "a"
                                  "\xEF\xBF\xBD"
                                  "\xC3\xA9"
                                  "\xEF\xBF\xBD");
    str_free(&out);
    tokenizer_free(t);
}

struct refusal { /* a replacement in tokenizer.json, and a part of the message */
    const char *from, *to, *message;
};

static void expect_refusal(const char *json, const struct refusal *r)
{
    struct str text = {0};
    struct err e = {0};
    const char *at = strstr(json, r->from);
    assert_non_null(at);
    assert_ok(str_add(&text, json, at - json, &e), &e);
    assert_ok(str_add(&text, r->to, -1, &e), &e);
    assert_ok(str_add(&text, at + strlen(r->from), -1, &e), &e);
    struct tokenizer *t = NULL;
    assert_int_not_equal(tokenizer_parse((tare_text){text.data, text.size}, (tare_text){0}, "small.json", &t, &e), TARE_OK);
    if (!strstr(e.message, r->message) || strncmp(e.message, "small.json: ", 12)) fail_msg("%s: %s", r->to, e.message);
    assert_null(t);
    str_free(&text);
}

/* Characters with byte fallback, as in Llama 2: bytes 41, E2, 98 and 83 are tokens, the bytes of
 * U+00E9 are not. */
static const char *const bpe_json =
    "{\"added_tokens\":[{\"id\":1,\"content\":\"<s>\",\"special\":true,\"normalized\":false,\"rstrip\":true},"
    "{\"id\":12,\"content\":\"<l>\",\"normalized\":false,\"lstrip\":true}],"
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\u2581\"},"
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\u2581\"}]},\"pre_tokenizer\":null,"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\u2581\"},\"content\":\" \"},"
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},"
    "\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":true,"
    "\"vocab\":{\"<unk>\":0,\"<s>\":1,\"\u2581\":2,\"a\":3,\"b\":4,\"ab\":5,\"\u2581ab\":6,\"<0x41>\":7,\"<0xE2>\":8,\"<0x98>\":9,"
    "\"<0x83>\":10,\"c\":11},\"merges\":[[\"a\",\"b\"],[\"\u2581\",\"ab\"]]}}";

static void expect_text(const struct tokenizer *t, const int32_t *ids, int64_t n, bool skip_special, const char *want)
{
    struct err e = {0};
    struct str out = {0}, streamed = {0};
    struct token_ids list = {(int32_t *)ids, n, n};
    assert_ok(tokenizer_decode(t, ids, n, skip_special, &out, &e), &e);
    assert_string_equal(out.data, want);
    if (!skip_special) {
        stream_back(t, &list, &streamed);
        assert_int_equal(streamed.size, out.size);
        assert_memory_equal(streamed.data ? streamed.data : "", out.data, (size_t)out.size);
    }
    str_free(&out);
    str_free(&streamed);
}

static void test_byte_fallback(void **state)
{
    (void)state;
    struct tokenizer *t = parse(bpe_json);
    expect_ids(t, "ab ab", 2, (int32_t[]){6, 6});
    expect_ids(t, "A\xE2\x98\x83", 5, (int32_t[]){2, 7, 8, 9, 10});
    expect_ids(t,
               "\xC3\xA9\xC3\xA9"
               "c",
               3, (int32_t[]){2, 0, 11}); /* consecutive unknown characters become one token */
    expect_ids(t,
               "\xC3\xA9"
               "A\xC3\xA9"
               "c",
               /* and precede the next known one */
               4, (int32_t[]){2, 7, 0, 11});
    /* rstrip: the spaces belong to the token */
    expect_ids(t, "c<s>  ab", 4, (int32_t[]){2, 11, 1, 6});
    expect_ids(t, "c \n <l> c", 6, (int32_t[]){2, 11, 12, 2, 2, 11}); /* lstrip */
    expect_text(t, (int32_t[]){1, 6, 2, 6}, 4, true, "ab  ab");
    expect_text(t, (int32_t[]){8, 9, 10, 3}, 4, false,
                "\xE2\x98\x83"
                "a");
    expect_text(t, (int32_t[]){8, 9, 3}, 3, false,
                "\xEF\xBF\xBD\xEF\xBF\xBD"
                "a"); /* U+FFFD for each byte of the run */
    expect_text(t, (int32_t[]){7, 8, 9}, 3, false, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    /* one space is removed from the front of the text */
    expect_text(t, (int32_t[]){2, 2, 3}, 3, false, " a");
    expect_text(t, (int32_t[]){3, 2, 2}, 3, false, "a  ");
    tokenizer_free(t);
}

static const char *const unigram_json =
    "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"prepend_scheme\":\"always\"},"
    "\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"add_prefix_space\":true},"
    "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\u2581\",-2],[\"a\",-3],[\"b\",-3],[\"ab\",-5],"
    "[\"\u2581a\",-4],[\"bc\",-4.5],[\"c\",-9]]}}";

static void test_unigram(void **state)
{
    (void)state;
    struct tokenizer *t = parse(unigram_json);
    expect_ids(t, "a", 1, (int32_t[]){5}); /* -4, not -2 - 3 */
    /* -2 - 5; _a, b has the same score: the one that begins first wins */
    expect_ids(t, "ab", 2, (int32_t[]){1, 4});
    expect_ids(t, "abc", 2, (int32_t[]){5, 6});
    expect_ids(t, "ac", 2, (int32_t[]){5, 7});
    /* a run of unknown characters is one token */
    expect_ids(t, "axyc b", 5, (int32_t[]){5, 0, 7, 1, 3});
    /* the marks of the first token are not spaces */
    expect_text(t, (int32_t[]){5, 6, 1, 3}, 4, false, "abc b");
    tokenizer_free(t);
}

static void test_refusals_of_characters(void **state)
{
    (void)state;
    static const struct refusal bpe[] = {
        {"\"Prepend\"", "\"Precompiled\"", "normalizer[0]: type \"Precompiled\""},
        {"\"Strip\"", "\"BPEDecoder\"", "decoder[3]: \"BPEDecoder\""},
        {"{\"type\":\"Fuse\"},", "", "decoder[2]: \"Strip\" is not supported here"},
        {"\"stop\":0", "\"stop\":1", "stop 0"},
        {"\"start\":1", "\"start\":-1", "a start of 0 or more"},
        {"\"<unk>\",", "\"<none>\",", "model.unk_token is not in model.vocab"},
        {"\"rstrip\"", "\"single_word\"", "single_word"},
        {"\"decoder\"", "\"post_processor\"", "missing decoder"},
    };
    static const struct refusal unigram[] = {
        {"\"unk_id\":0", "\"unk_id\":8", "model.unk_id is outside model.vocab"},
        {"[\"a\",-3]", "[\"a\"]", "model.vocab[2] is not"},
        {"[\"a\",-3]", "[\"b\",-3]", "has the ids 2 and 3"},
        {"\"always\"", "\"often\"", "prepend_scheme \"often\""},
        {"\u2581\",\"prepend", "--\",\"prepend", "must be one character"},
        {"\"prepend_scheme\":\"always\"", "\"prepend_scheme\":\"first\",\"add_prefix_space\":false", "add_prefix_space is false"},
        {"\"type\":\"Metaspace\"", "\"type\":\"ByteLevel\",\"add_prefix_space\":false", "is not supported"},
    };
    for (size_t i = 0; i < sizeof bpe / sizeof *bpe; i++) expect_refusal(bpe_json, &bpe[i]);
    for (size_t i = 0; i < sizeof unigram / sizeof *unigram; i++) expect_refusal(unigram_json, &unigram[i]);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"\"BPE\"", "\"WordPiece\"", "model.type \"WordPiece\""},
        {"\"NFC\"", "\"Lowercase\"", "normalizer[0]: type \"Lowercase\""},
        {"\"ByteLevel\",\"add", "\"Punctuation\",\"add", "pre_tokenizer[0]: type \"Punctuation\""},
        {"_space\":false", "_space\":true", "add_prefix_space"},
        {"{\"type\":\"ByteLevel\"}", "null", "the decoder must be a single ByteLevel"},
        {"\"b c\"", "\"b q\"", "model.merges[0]"},
        {"\"b c\"", "7", "model.merges[0]"},
        {"\"a\":0", "\"a\":1", "belongs to"},
        {"\"a\":0", "\"a\":-1", "not in 0.."},
        {"\"a\":0", "\"a\":\"0\"", "not a whole number"},
        {"\"id\":270", "\"id\":0", "belongs to"},
        {"\"special\":true", "\"single_word\":true", "added_tokens[0]: single_word"},
        {"\"special\":true", "\"odd\":true", "\"odd\" is not supported"},
        {"\"type\":\"BPE\"", "\"type\":\"BPE\",\"dropout\":0.1", "model.dropout"},
        {"\"type\":\"BPE\"", "\"type\":\"BPE\",\"byte_fallback\":true", "model.byte_fallback"},
        {"\"type\":\"BPE\"", "\"type\":\"BPE\",\"unk_token\":\"a\"", "model.unk_token"},
        {"{\"added", "{\"extra\":1,\"added", "\"extra\" is not supported"},
        {"{\"added", "[{\"added", "not valid JSON"},
        {"\"model\"", "\"version\"", "missing \"model\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_refusal(small_json, &cases[i]);
}

/* transformers writes "no limit" as an integer that does not fit into 64 bits. */
static void test_no_limit(void **state)
{
    (void)state;
    static const char config[] = "{\"model_max_length\":1000000000000000019884624838656,\"odd\":\"a\\\"12345678901234567890\","
                                 "\"small\":-1.5e3,\"bos_token\":\"<x>\"}";
    struct err e = {0};
    struct tokenizer *t = NULL;
    assert_ok(tokenizer_parse((tare_text){small_json, (int64_t)strlen(small_json)}, (tare_text){config, (int64_t)strlen(config)},
                              "small.json", &t, &e),
              &e);
    assert_int_equal(tokenizer_role_id(t, TOKEN_BOS), 270);
    tokenizer_free(t);
    json_t *root = NULL;
    assert_ok(json_parse_wide(config, (int64_t)strlen(config), "config", &root, &e), &e);
    assert_true(json_double_or(root, "model_max_length", 0) == 1e30);
    assert_string_equal(json_text_or(root, "odd", ""), "a\"12345678901234567890");
    assert_true(json_double_or(root, "small", 0) == -1500);
    json_decref(root);
    assert_int_equal(json_parse_wide("{\"a", 3, "config", &root, &e), TARE_E_CORRUPT);
    assert_int_equal(json_parse_wide("\"\\", 2, "config", &root, &e), TARE_E_CORRUPT);
}

/* The message has the remedy for a folder with a SentencePiece model and no tokenizer.json. */
static void test_folder_without(void **state)
{
    (void)state;
    struct err e = {0};
    struct tokenizer *t = NULL;
    const char *folder = make_test_folder("tokenizer");
    char path[FS_PATH + 32];
    assert_non_null(folder);
    assert_int_not_equal(tokenizer_load(folder, &t, &e), TARE_OK);
    assert_non_null(strstr(e.message, "a tokenizer.json is needed"));
    snprintf(path, sizeof path, "%s/tokenizer.model", folder);
    assert_ok(fs_write_atomic(path, "x", 1, &e), &e);
    assert_int_equal(tokenizer_load(folder, &t, &e), TARE_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "AutoTokenizer.from_pretrained"));
    assert_null(t);
    assert_ok(fs_remove_tree(folder, &e), &e);
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
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_long_piece),
        cmocka_unit_test(test_invalid_text),
        cmocka_unit_test(test_broken_bytes),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_smollm2),
        cmocka_unit_test(test_qwen),
        cmocka_unit_test(young_characters_stay),
        cmocka_unit_test(test_llama),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_byte_fallback),
        cmocka_unit_test(test_growth_is_refused),
        cmocka_unit_test(test_unigram),
        cmocka_unit_test(test_sentencepiece_kinds),
        cmocka_unit_test(test_refusals_of_characters),
        cmocka_unit_test(test_folder_without),
        cmocka_unit_test(test_no_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
