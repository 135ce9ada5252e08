/* Tests the encoders and codebooks through the loader: hashed, field, prompt, and k-means with valid and
 * damaged files. */
#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "cluster/codebook.h"
#include "cluster/encode.h"
#include "cluster/match.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static struct plugin_instance *open_plugin(const char *name, int32_t kind, const char *const *settings, int64_t n)
{
    struct err e = {0};
    struct arena a;
    const struct plugin *p;
    const struct config_param *params = NULL;
    const tare_value *values;
    struct plugin_instance *i;
    arena_init(&a, "test");
    assert_ok(plugin_open(name, kind, NULL, &p, &e), &e);
    assert_ok(plugin_settings(p, (struct plugin_words){settings, n}, NULL, &a, &params, &e), &e);
    assert_ok(plugin_params(p, params, &a, &values, &e), &e);
    assert_ok(plugin_create(p, values, 0, NULL, &i, &e), &e);
    arena_free(&a);
    return i;
}

static tare_text text(const char *s)
{
    return (tare_text){s, (int64_t)strlen(s)};
}

static double dot(const float *a, const float *b, int64_t d)
{
    double s = 0;
    for (int64_t i = 0; i < d; i++) s += (double)a[i] * (double)b[i];
    return s;
}

static void hashed_embeds(void **state)
{
    (void)state;
    struct err e = {0};
    struct plugin_instance *h = open_plugin("hashed", TARE_KIND_ENCODER, NULL, 0);
    const tare_text texts[] = {text("A train travels 60 miles in 2 hours. What is its speed?"),
                               text("a  train travels 90 miles in 3 hours.\nWhat is its speed? "),
                               text("Factor the polynomial x^2 - 5x + 6."),
                               text(""),
                               text("\xc3\xa9t\xc3\xa9 \xff\xfe caf\xc3\xa9"),
                               text("x")};
    const int64_t d = h->sizes.dim;
    assert_int_equal(d, 256);
    float all[6 * 256], one[256], fitted[256];
    assert_ok(plugin_encode(h, texts, 6, all, &e), &e);
    for (int i = 0; i < 6; i++) {
        /* unit length, zero for an empty text */
        assert_true(fabs(dot(all + i * d, all + i * d, d) - (i != 3)) < 1e-5);
        assert_ok(plugin_encode(h, &texts[i], 1, one, &e), &e);
        assert_memory_equal(one, all + i * d, sizeof one); /* independent of the batch */
    }
    assert_true(dot(all, all + d, d) > dot(all, all + 2 * d, d) + 0.3);
    const tare_text spaced = text("  A TRAIN travels\t60 miles in 2 hours. What is its speed?");
    assert_ok(plugin_encode(h, &spaced, 1, one, &e), &e);
    assert_memory_equal(one, all, sizeof one);
    /* fit changes the weights, and its state can be loaded elsewhere */
    assert_ok(plugin_fit(h, texts, 5, &e), &e);
    assert_ok(plugin_encode(h, texts, 1, fitted, &e), &e);
    assert_memory_not_equal(fitted, all, sizeof fitted);
    struct str state_bytes = {0};
    assert_ok(plugin_save_raw(h, &state_bytes, &e), &e);
    struct plugin_instance *other = open_plugin("hashed", TARE_KIND_ENCODER, NULL, 0);
    assert_ok(plugin_load_raw(other, state_bytes.data, state_bytes.size, "test", &e), &e);
    assert_ok(plugin_encode(other, texts, 1, one, &e), &e);
    assert_memory_equal(one, fitted, sizeof one);
    assert_int_not_equal(plugin_load_raw(other, state_bytes.data, state_bytes.size - 4, "test", &e), TARE_OK);
    str_free(&state_bytes);
    plugin_destroy(other);
    plugin_destroy(h);
    const struct plugin *p;
    assert_ok(plugin_open("hashed", TARE_KIND_ENCODER, NULL, &p, &e), &e);
    tare_value values[6];
    memcpy(values, ((const tare_value[6]){{.i = 8}, {.i = 5}, {.i = 3}, {.i = 64}, {.i = 1}, {.i = 1}}), sizeof values);
    assert_int_not_equal(plugin_create(p, values, 0, NULL, &h, &e), TARE_OK);
    assert_non_null(strstr(e.message, "ngram_max"));
}

static void many_texts_on_threads(void **state)
{
    (void)state;
    struct err e = {0};
    enum { N = 500 };
    struct plugin_instance *h = open_plugin("hashed", TARE_KIND_ENCODER, (const char *const[]){"dim=16"}, 1);
    static char words[N][64];
    tare_text texts[N];
    static float a[N * 16], b[N * 16];
    for (int i = 0; i < N; i++) {
        snprintf(words[i], sizeof words[i], "%.*s question number %d", i % 9, "so so so so", i);
        texts[i] = text(words[i]);
    }
    struct pool *pool;
    assert_ok(pool_new(3, &pool, &e), &e);
    const struct encoding what = {h, texts, N, pool};
    assert_ok(encode_texts(&(struct encoding){h, texts, N, NULL}, a, &e), &e);
    assert_ok(encode_texts(&what, b, &e), &e);
    assert_memory_equal(a, b, sizeof a);
    const char *folder = make_test_folder("tare-cache");
    assert_non_null(folder);
    bool hit;
    memset(b, 0, sizeof b);
    assert_ok(encode_cached(&what, folder, b, &hit, &e), &e);
    assert_false(hit);
    assert_memory_equal(a, b, sizeof a);
    memset(b, 0, sizeof b);
    assert_ok(encode_cached(&what, folder, b, &hit, &e), &e);
    assert_true(hit);
    assert_memory_equal(a, b, sizeof a);
    texts[7] = text("another text"); /* other texts, other file */
    assert_ok(encode_cached(&what, folder, b, &hit, &e), &e);
    assert_false(hit);
    assert_memory_not_equal(a, b, sizeof a);
    assert_ok(fs_remove_tree(folder, &e), &e);
    pool_free(pool);
    plugin_destroy(h);
}

static void field_takes_values(void **state)
{
    (void)state;
    struct err e = {0};
    struct plugin_instance *f = open_plugin("field", TARE_KIND_CODEBOOK, NULL, 0);
    const tare_text rows[] = {text("{\"subject\":\"geometry\"}"), text("{\"subject\":\"algebra\"}"), text("{\"subject\":3}"),
                              text("{\"id\":\"x\"}"), text("{\"subject\":\"algebra\",\"question\":\"q\"}")};
    const tare_text unseen = text("{\"subject\":\"topology\"}");
    int32_t k[5];
    assert_ok(plugin_fit(f, rows, 5, &e), &e);
    assert_int_equal(f->sizes.clusters, 3);
    assert_int_equal(f->sizes.dim, 0);
    assert_ok(plugin_assign(f, &(struct plugin_assignment){NULL, rows, 5, k, NULL}, &e), &e);
    const int32_t expected[] = {2, 1, 0, -1, 1};
    assert_memory_equal(k, expected, sizeof k);
    assert_ok(plugin_assign(f, &(struct plugin_assignment){NULL, &unseen, 1, k, NULL}, &e), &e);
    assert_int_equal(k[0], -1);
    struct str name = {0}, saved = {0};
    assert_ok(plugin_cluster_name(f, 1, &name, &e), &e);
    assert_string_equal(name.data, "algebra");
    str_free(&name);
    assert_ok(plugin_save(f, &saved, &e), &e);
    struct plugin_instance *g = open_plugin("field", TARE_KIND_CODEBOOK, NULL, 0);
    assert_ok(plugin_load(g, saved.data, saved.size, NULL, "test", &e), &e);
    assert_int_equal(g->sizes.clusters, 3);
    assert_ok(plugin_assign(g, &(struct plugin_assignment){NULL, rows, 5, k, NULL}, &e), &e);
    assert_memory_equal(k, expected, sizeof k);
    str_free(&saved);
    plugin_destroy(g);
    plugin_destroy(f);
    f = open_plugin("field", TARE_KIND_CODEBOOK, (const char *const[]){"values=geometry, algebra"}, 1);
    assert_ok(plugin_fit(f, rows, 5, &e), &e);
    assert_int_equal(f->sizes.clusters, 2);
    assert_ok(plugin_assign(f, &(struct plugin_assignment){NULL, rows, 5, k, NULL}, &e), &e);
    const int32_t listed[] = {0, 1, -1, -1, 1};
    assert_memory_equal(k, listed, sizeof k);
    plugin_destroy(f);
    f = open_plugin("field", TARE_KIND_CODEBOOK, (const char *const[]){"field=topic"}, 1);
    assert_int_not_equal(plugin_fit(f, rows, 5, &e), TARE_OK);
    assert_non_null(strstr(e.message, "topic"));
    plugin_destroy(f);
}

static void prompt_numbers_rows(void **state)
{
    (void)state;
    struct err e = {0};
    struct plugin_instance *p = open_plugin("prompt", TARE_KIND_CODEBOOK, NULL, 0);
    const tare_text rows[] = {text("{\"question\":\"b\"}"), text("{\"question\":\"a\"}"), text("{\"question\":\"b\"}"),
                              text("{\"question\":\"c\"}")};
    const tare_text unseen = text("{\"question\":\"d\"}");
    int32_t k[4];
    assert_ok(plugin_fit(p, rows, 4, &e), &e);
    assert_int_equal(p->sizes.clusters, 3);
    assert_ok(plugin_assign(p, &(struct plugin_assignment){NULL, rows, 4, k, NULL}, &e), &e);
    const int32_t expected[] = {0, 1, 0, 2};
    assert_memory_equal(k, expected, sizeof k);
    assert_ok(plugin_assign(p, &(struct plugin_assignment){NULL, &unseen, 1, k, NULL}, &e), &e);
    assert_int_equal(k[0], -1);
    struct str saved = {0};
    assert_ok(plugin_save(p, &saved, &e), &e);
    struct plugin_instance *q = open_plugin("prompt", TARE_KIND_CODEBOOK, NULL, 0);
    assert_ok(plugin_load(q, saved.data, saved.size, NULL, "test", &e), &e);
    assert_ok(plugin_assign(q, &(struct plugin_assignment){NULL, rows, 4, k, NULL}, &e), &e);
    assert_memory_equal(k, expected, sizeof k);
    str_free(&saved);
    plugin_destroy(q);
    plugin_destroy(p);
}

/* ---------------------------------------------------------------- the k-means codebook's file */

static const char *FOLDER;
static char CODEBOOK[FS_PATH];

static int make_codebook(void **state)
{
    (void)state;
    struct err e = {0};
    struct kmeans_result r;
    float x[40 * 3];
    for (int i = 0; i < 120; i++) x[i] = (float)((i * 37) % 101) / 10;
    const struct codebook_origin from = {
        .encoder = "toy/1.0.0 dim=3", .corpus = "here", .corpus_rows = 40, .encoder_state = {"\1\0\2", 3}};
    if (!(FOLDER = make_test_folder("tare-codebook"))) return 1;
    snprintf(CODEBOOK, sizeof CODEBOOK, "%s/good.safetensors", FOLDER);
    const struct kmeans_options options = {.k = 4, .restarts = 2, .iterations = 50, .seed = 7};
    const tare_status s = codebook_train(CODEBOOK, (struct kmeans_rows){x, 40, 3}, &options, &from, &r, &e);
    if (!s) kmeans_result_free(&r);
    return s != TARE_OK;
}

static int remove_codebook(void **state)
{
    (void)state;
    struct err e;
    return fs_remove_tree(FOLDER, &e) != TARE_OK;
}

static tare_status open_codebook(const char *path, struct plugin_instance **out, struct err *e)
{
    const struct plugin *p;
    const tare_value value = {.s = path};
    *out = NULL;
    TRY(plugin_open("kmeans", TARE_KIND_CODEBOOK, NULL, &p, e));
    return plugin_create(p, &value, 0, NULL, out, e);
}

static void codebook_file_holds_everything(void **state)
{
    (void)state;
    struct err e = {0};
    struct plugin_instance *c;
    json_t *m;
    assert_ok(open_codebook(CODEBOOK, &c, &e), &e);
    assert_int_equal(c->sizes.clusters, 4);
    assert_int_equal(c->sizes.dim, 3);
    struct str bytes = {0};
    struct plugin_stream writer = {.out = &bytes};
    const tare_stream stream = plugin_stream(&writer);
    tare_error error = {.struct_size = sizeof error};
    assert_int_equal(c->plugin->codebook->encoder_state(c->self, &stream, &error), TARE_OK);
    assert_int_equal(bytes.size, 3);
    assert_memory_equal(bytes.data, "\1\0\2", 3);
    str_clear(&bytes);
    assert_ok(match_identity(c, &bytes, &e), &e);
    assert_string_equal(bytes.data, "toy/1.0.0 dim=3");
    str_free(&bytes);
    assert_string_equal(match_codebook_path(c), CODEBOOK);
    assert_ok(codebook_metadata(CODEBOOK, &m, &e), &e);
    assert_string_equal(json_text_or(m, "encoder", ""), "toy/1.0.0 dim=3");
    assert_string_equal(json_text_or(m, "K", ""), "4");
    assert_string_equal(json_text_or(m, "seed", ""), "7");
    assert_string_equal(json_text_or(m, "corpus_rows", ""), "40");
    assert_non_null(json_object_get(m, "inertia"));
    assert_non_null(json_object_get(m, "iterations"));
    assert_non_null(json_object_get(m, "corpus_hash"));
    json_decref(m);
    /* another encoder is refused with both identities in the message */
    struct plugin_instance *h = open_plugin("hashed", TARE_KIND_ENCODER, (const char *const[]){"dim=8"}, 1);
    assert_int_equal(match_encoder(c, h, CODEBOOK, &e), TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "toy/1.0.0 dim=3"));
    assert_non_null(strstr(e.message, "hashed/1.0.0 dim=8"));
    assert_int_equal(match_encoder(c, NULL, CODEBOOK, &e), TARE_E_CONFIG);
    plugin_destroy(h);
    plugin_destroy(c);
}

/* Writes the valid file with one change and expects a refusal with a reason. */
static void refuse(const char *from, const char *to, int64_t cut, const char *reason)
{
    struct err e = {0};
    struct str file = {0};
    struct plugin_instance *c;
    char path[FS_PATH];
    snprintf(path, sizeof path, "%s/bad.safetensors", FOLDER);
    assert_ok(fs_read_all(CODEBOOK, &file, &e), &e);
    for (int64_t i = 0; from && i + (int64_t)strlen(from) <= file.size; i++)
        if (!memcmp(file.data + i, from, strlen(from))) {
            memcpy(file.data + i, to, strlen(to));
            from = NULL;
        }
    assert_null(from);
    assert_ok(fs_write_atomic(path, file.data, file.size - cut, &e), &e);
    assert_int_not_equal(open_codebook(path, &c, &e), TARE_OK);
    if (!strstr(e.message, reason)) fail_msg("\"%s\" lacks \"%s\"", e.message, reason);
    assert_non_null(strstr(e.message, path));
    str_free(&file);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    refuse(NULL, NULL, 1, "cut short");
    refuse(NULL, NULL, 50, "cut short");
    refuse("tare.codebook/1", "tare.codebook/2", 0, "not a codebook");
    refuse("\"data_offsets\":[48,51]", "\"data_offsets\":[45,48]", 0, "overlap");
    refuse("\"data_offsets\":[0,48]", "\"data_offsets\":[0,44]", 0, "need 48");
    refuse("\"shape\":[4,3]", "\"shape\":[4,4]", 0, "need 64");
    refuse("\"F32\"", "\"F64\"", 0, "need 96");
    refuse("\"F32\"", "\"I32\"", 0, "centroids");
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    struct err e = {0};
    struct str file = {0};
    struct plugin_instance *c;
    char path[FS_PATH];
    snprintf(path, sizeof path, "%s/cut.safetensors", FOLDER);
    assert_ok(fs_read_all(CODEBOOK, &file, &e), &e);
    for (int64_t n = 0; n < file.size; n += n < 80 ? 1 : 37) {
        assert_ok(fs_write_atomic(path, file.data, n, &e), &e);
        assert_int_not_equal(open_codebook(path, &c, &e), TARE_OK);
    }
    const float nan = NAN;
    memcpy(file.data + file.size - 3 - 4, &nan, sizeof nan);
    assert_ok(fs_write_atomic(path, file.data, file.size, &e), &e);
    assert_int_equal(open_codebook(path, &c, &e), TARE_E_NOT_FINITE);
    memset(file.data, 0xFF, 7); /* a header longer than the file */
    assert_ok(fs_write_atomic(path, file.data, file.size, &e), &e);
    assert_int_equal(open_codebook(path, &c, &e), TARE_E_CORRUPT);
    assert_int_equal(open_codebook("/nowhere/at/all", &c, &e), TARE_E_NOT_FOUND);
    str_free(&file);
}

static void write_plainly(const char *path, const char *data, int64_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, (size_t)n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Flips each bit: the file is refused by name, unless the bit removed the checksum's key and all
 * else is unchanged. */
static void every_changed_bit_is_found(void **state)
{
    (void)state;
    struct err e = {0};
    OWNED(str_free) struct str file = {0};
    struct plugin_instance *c;
    char path[FS_PATH];
    snprintf(path, sizeof path, "%s/flipped.safetensors", FOLDER);
    assert_ok(fs_read_all(CODEBOOK, &file, &e), &e);
    int64_t key = 0;
    while (key + 6 < file.size && memcmp(file.data + key, "\"xxh3\"", 6)) key++;
    const int64_t end = ++key + 4;
    int taken = 0;
    write_plainly(path, file.data, file.size);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (int64_t bit = 0; bit < 8 * file.size; bit++) {
        const char changed = (char)(file.data[bit / 8] ^ (1 << bit % 8));
        if (bit % 8 == 0 && bit) assert_int_equal(pwrite(fd, &file.data[bit / 8 - 1], 1, bit / 8 - 1), 1);
        assert_int_equal(pwrite(fd, &changed, 1, bit / 8), 1);
        e = (struct err){0};
        if (open_codebook(path, &c, &e)) {
            if (!strstr(e.message, path)) fail_msg("bit %lld: \"%s\" does not name the file", (long long)bit, e.message);
            continue;
        }
        plugin_destroy(c);
        taken++;
        if (bit / 8 < key || bit / 8 >= end) fail_msg("bit %lld of byte %lld was accepted", (long long)bit % 8, (long long)bit / 8);
    }
    close(fd);
    /* a codebook without a checksum, as other programs write it, is accepted */
    assert_true(taken > 0);
}

/* The checksum covers the content of the header and not its formatting: another program may rewrite
 * the file. */
static void the_header_may_be_rewritten(void **state)
{
    (void)state;
    struct err e = {0};
    OWNED(str_free) struct str file = {0}, text = {0};
    OWNED(json_decrefp) json_t *header = NULL;
    struct plugin_instance *c;
    char path[FS_PATH];
    int64_t length = 0;
    snprintf(path, sizeof path, "%s/anew.safetensors", FOLDER);
    assert_ok(fs_read_all(CODEBOOK, &file, &e), &e);
    for (int i = 7; i >= 0; i--) length = length << 8 | (unsigned char)file.data[i];
    assert_ok(json_parse(file.data + 8, length, path, &header, &e), &e);
    assert_ok(str_add(&text, "        ", 8, &e), &e);
    assert_ok(json_print_lines(header, &text, &e), &e);
    for (int i = 0; i < 8; i++) text.data[i] = (char)((uint64_t)(text.size - 8) >> (8 * i));
    assert_ok(str_add(&text, file.data + 8 + length, file.size - 8 - length, &e), &e);
    write_plainly(path, text.data, text.size);
    assert_ok(open_codebook(path, &c, &e), &e);
    plugin_destroy(c);
    text.data[text.size - 1] ^= 1;
    write_plainly(path, text.data, text.size);
    assert_int_equal(open_codebook(path, &c, &e), TARE_E_CORRUPT);
    assert_non_null(strstr(e.message, "is damaged"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashed_embeds),
        cmocka_unit_test(many_texts_on_threads),
        cmocka_unit_test(field_takes_values),
        cmocka_unit_test(prompt_numbers_rows),
        cmocka_unit_test(codebook_file_holds_everything),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(every_changed_bit_is_found),
        cmocka_unit_test(the_header_may_be_rewritten),
    };
    return cmocka_run_group_tests(tests, make_codebook, remove_codebook);
}
