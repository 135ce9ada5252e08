/* Tests the sentence encoder: token ids and embeddings against PyTorch's, and WordPiece rules on a
 * small vocabulary. */
/* The tokenizer is inside the plugin and cannot be called through the ABI, so the test compiles it
 * (before cmocka, which has a macro named fail). */
#include "../../../plugins/clusterers/minilm/wordpiece.c"
#include "../../../plugins/clusterers/minilm/wordpiece_load.c"

#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "base/json.h"
#include "cluster/encode.h"
#include "exact.h"

#include <math.h>
#include <string.h>

static void pieces_of_a_small_vocabulary(void **state)
{
    (void)state;
    static const char VOCABULARY[] =
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\n,\nhello\n\xe4\xb8\xad\n##s\ni\n##i\naffs\n";
    static const struct {
        const char *text;
        int32_t ids[12];
        int64_t n;
    } cases[] = {
        {"unaffable", {2, 5, 6, 7, 3}, 5},
        {"UNAFFABLE,  Hello", {2, 5, 6, 7, 8, 9, 3}, 7},
        {"h\xc3\xa9llo h\xc3\x89LLO", {2, 9, 9, 3}, 4}, /* accents are removed */
        {"hello\xe4\xb8\xad\xe4\xb8\xad"
         "hellos",
         {2, 9, 10, 10, 9, 11, 3},
         7}, /* CJK characters are separate words */
        /* an unknown part makes the whole word unknown */
        {"unhello", {2, 1, 3}, 3},
        /* added tokens are found inside the text */
        {"hello[MASK]hello [SEP]", {2, 9, 4, 9, 3, 3}, 6},
        {"", {2, 3}, 2},
        /* format and control characters, invalid bytes */
        {"he\xe2\x80\x8bllo\x01 \xc2\xa0\thello\xff", {2, 9, 9, 3}, 4},
        /* cut to 8 */
        {"hello hello hello hello hello hello hello hello", {2, 9, 9, 9, 9, 9, 9, 3}, 8},
        {"\xc4\xb0i", {2, 12, 13, 3}, 4},
    };
    struct err e = {0};
    tare_error te = {.struct_size = sizeof te};
    struct wordpiece w;
    const char *folder = make_test_folder("tare-vocab");
    char path[FS_PATH];
    assert_non_null(folder);
    snprintf(path, sizeof path, "%s/vocab.txt", folder);
    assert_int_equal(wordpiece_open(&w, folder, &te), TARE_E_NOT_FOUND);
    assert_ok(fs_write_atomic(path, VOCABULARY, sizeof VOCABULARY - 1, &e), &e);
    assert_int_equal(wordpiece_open(&w, folder, &te), TARE_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t ids[8];
        int64_t n;
        const tare_text text = {cases[i].text, (int64_t)strlen(cases[i].text)};
        assert_int_equal(wordpiece_encode(&w, text, 8, ids, &n, &te), TARE_OK);
        if (n != cases[i].n || memcmp(ids, cases[i].ids, (size_t)n * sizeof *ids))
            fail_msg("case %zu: different ids for %s", i, cases[i].text);
    }
    char long_word[202];
    memset(long_word, 'i', 201);
    int32_t ids[300];
    int64_t n;
    assert_int_equal(wordpiece_encode(&w, (tare_text){long_word, 100}, 300, ids, &n, &te), TARE_OK);
    assert_int_equal(n, 102);
    assert_int_equal(wordpiece_encode(&w, (tare_text){long_word, 101}, 300, ids, &n, &te), TARE_OK);
    assert_true(n == 3 && ids[1] == 1);
    wordpiece_close(&w);
    assert_ok(fs_remove_tree(folder, &e), &e);
}

enum { TEXTS = 256, WIDEST = 384 };

struct goldens {
    struct wordpiece w;
    struct plugin_instance *encoder;
    tare_text texts[TEXTS];
    float *expected; /* [n, width] */
    int64_t width;
    json_t *lines[TEXTS];
    int64_t n;
};

static tare_status take_line(void *ctx, const json_t *o, const char *where, struct err *e)
{
    struct goldens *g = ctx;
    int32_t ids[256];
    int64_t n;
    tare_error te = {.struct_size = sizeof te};
    g->lines[g->n] = json_incref((json_t *)(uintptr_t)o);
    TRY(json_get_text(o, "text", where, &g->texts[g->n], e));
    const json_t *wanted = json_object_get(o, "ids"), *embedding = json_object_get(o, "embedding");
    assert_int_equal(wordpiece_encode(&g->w, g->texts[g->n], 256, ids, &n, &te), TARE_OK);
    if (n != (int64_t)json_array_size(wanted)) fail_msg("%s: %lld ids", where, (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (ids[i] != json_integer_value(json_array_get(wanted, (size_t)i))) fail_msg("%s: id %lld differs", where, (long long)i);
    if (!g->n) g->width = (int64_t)json_array_size(embedding);
    assert_true(g->n < TEXTS && g->width <= WIDEST);
    for (int64_t i = 0; i < g->width; i++)
        g->expected[g->n * g->width + i] = (float)json_number_value(json_array_get(embedding, (size_t)i));
    g->n++;
    return TARE_OK;
}

static void ids_and_embeddings_of_minilm(void **state)
{
    (void)state;
    struct err e = {0};
    tare_error te = {.struct_size = sizeof te};
    static struct goldens g;
    char folder[4096], assignment[4200];
    const struct plugin *p;
    snprintf(folder, sizeof folder, "%s", shared_or_skip("models/minilm"));
    snprintf(assignment, sizeof assignment, "%s", shared_or_skip("data/encoder/minilm.jsonl"));
    assert_int_equal(wordpiece_open(&g.w, folder, &te), TARE_OK);
    g.expected = malloc((size_t)TEXTS * WIDEST * sizeof(float));
    FILE *f = fopen(assignment, "rb");
    assert_non_null(f);
    assert_ok(json_each_line(f, "minilm.jsonl", take_line, &g, &e), &e);
    fclose(f);
    assert_true(g.n >= (shared_is_whole(assignment) ? 100 : 40));
    assert_ok(plugin_open("minilm", TARE_KIND_ENCODER, NULL, &p, &e), &e);
    const tare_value values[] = {{.s = folder}, {.i = 0}};
    assert_ok(plugin_create(p, values, 0, NULL, &g.encoder, &e), &e);
    assert_int_equal(g.encoder->sizes.dim, g.width);
    float *out = malloc((size_t)(g.n * g.width) * sizeof *out), one[WIDEST];
    struct pool *pool;
    assert_ok(pool_new(2, &pool, &e), &e);
    assert_ok(encode_texts(&(struct encoding){g.encoder, g.texts, g.n, pool}, out, &e), &e);
    double worst = 0;
    for (int64_t i = 0; i < g.n * g.width; i++) worst = fmax(worst, fabs((double)out[i] - (double)g.expected[i]));
    printf("largest difference %.2g over %lld texts\n", worst, (long long)g.n);
    assert_true(worst < 1e-4);
    for (int64_t i = 0; i < 5; i++) { /* independent of the batch */
        assert_ok(plugin_encode(g.encoder, &g.texts[i], 1, one, &e), &e);
        assert_memory_equal(one, out + i * g.width, (size_t)g.width * sizeof *one);
    }
    uint64_t sum = 0;
    for (int64_t i = 0; i < 20 * g.width; i++) sum = sum * 0x100000001b3u + f32_bits(out[i]);
    printf("checksum of the first 20 embeddings: %016llx\n", (unsigned long long)sum);
    /* AVX2, AVX-512 and NEON compute the same bits */
    struct plugin_instance *narrow;
    setenv("TARE_CPU", "avx2", 1);
    assert_ok(plugin_create(p, values, 0, NULL, &narrow, &e), &e);
    unsetenv("TARE_CPU");
    for (int64_t i = 0; i < 20; i++) {
        assert_ok(plugin_encode(narrow, &g.texts[i], 1, one, &e), &e);
        assert_memory_equal(one, out + i * g.width, (size_t)g.width * sizeof *one);
    }
    plugin_destroy(narrow);
    pool_free(pool);
    plugin_destroy(g.encoder);
    for (int64_t i = 0; i < g.n; i++) json_decref(g.lines[i]);
    wordpiece_close(&g.w);
    free(g.expected);
    free(out);
}

static void folders_that_are_no_model(void **state)
{
    (void)state;
    struct err e = {0};
    const struct plugin *p;
    struct plugin_instance *i;
    const char *folder = make_test_folder("tare-no-model");
    char path[FS_PATH];
    assert_non_null(folder);
    assert_ok(plugin_open("minilm", TARE_KIND_ENCODER, NULL, &p, &e), &e);
    const tare_value values[] = {{.s = folder}, {.i = 0}};
    assert_int_equal(plugin_create(p, values, 0, NULL, &i, &e), TARE_E_NOT_FOUND);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    static const char BPE[] = "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}";
    assert_ok(fs_write_atomic(path, BPE, sizeof BPE - 1, &e), &e);
    assert_int_equal(plugin_create(p, values, 0, NULL, &i, &e), TARE_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "BPE"));
    assert_ok(fs_remove_tree(folder, &e), &e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_a_small_vocabulary),
        cmocka_unit_test(ids_and_embeddings_of_minilm),
        cmocka_unit_test(folders_that_are_no_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
