/* config.json in its spellings, its refusals, and a folder written and read back. */
#include "folder.h"
#include "load.h"
#include "small.h"

#include "base/fs.h"
#include "base/json.h"
#include "model/hf_config.h"
#include "model/positions.h"
#include "model/safetensors.h"

static const char *dir;

static int set_up(void **state)
{
    (void)state;
    return (dir = make_test_folder("tare-hf-folder")) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    struct err e;
    return fs_remove_tree(dir, &e) ? -1 : 0;
}

#define SIZES                                                                                                                      \
    "\"hidden_size\":64,\"intermediate_size\":144,\"max_position_embeddings\":4096,\"num_attention_heads\":4,\"num_hidden_"        \
    "layers\":2,"                                                                                                                  \
    "\"num_key_value_heads\":2,\"vocab_size\":256,\"rms_norm_eps\":1e-6"
#define QWEN2 "{\"model_type\":\"qwen2\"," SIZES
#define LLAMA "{\"model_type\":\"llama\"," SIZES
#define QWEN3 "{\"model_type\":\"qwen3\"," SIZES

static struct model_shape shape(const char *text)
{
    struct err e = {0};
    struct model_shape s;
    assert_ok(hf_config_shape(text, (int64_t)strlen(text), "config.json", &s, &e), &e);
    return s;
}

static void spellings(void **state)
{
    (void)state;
    struct model_shape s =
        shape(QWEN2 ",\"rope_theta\":1e6,\"rope_scaling\":null,\"use_sliding_window\":false,\"sliding_window\":4096}");
    assert_true(s.arch == ARCH_QWEN2 && s.qkv_bias && !s.qk_norm && !s.tied && s.rope_theta == 1e6 && s.head_dim == 16 &&
                !(s.scaling.factor > 0));
    s = shape(QWEN2 ",\"tie_word_embeddings\":true,\"layer_types\":[\"full_attention\",\"full_attention\"]}");
    assert_true(s.tied && s.rope_theta == 10000);
    s = shape(LLAMA ",\"head_dim\":24,\"rope_parameters\":{\"rope_theta\":5e5,\"rope_type\":\"default\"}}");
    assert_true(s.arch == ARCH_LLAMA && !s.qkv_bias && s.head_dim == 24 && s.rope_theta == 5e5 && !(s.scaling.factor > 0));
    s = shape(LLAMA ",\"rope_theta\":5e5,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1.0,\"high_"
                    "freq_factor\":4.0,"
                    "\"original_max_position_embeddings\":8192}}");
    assert_true(s.scaling.factor == 8 && s.scaling.low == 1 && s.scaling.high == 4 && s.scaling.original == 8192 &&
                s.rope_theta == 5e5);
    s = shape(LLAMA ",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":32,\"low_freq_factor\":1,\"high_freq_factor\":4,\"original_"
                    "max_position_embeddings\":64}}");
    assert_true(s.scaling.factor == 32);
    s = shape(QWEN3 ",\"attention_bias\":false}");
    /* The default of the architecture. */
    assert_true(s.arch == ARCH_QWEN3 && s.qk_norm && !s.qkv_bias && s.head_dim == 128);
}

static void refused(const char *text, const char *why)
{
    struct err e = {0};
    struct model_shape s;
    const tare_status status = hf_config_shape(text, (int64_t)strlen(text), "config.json", &s, &e);
    if (!status) fail_msg("%s was taken", text);
    if (!strstr(e.message, why) || !strstr(e.message, "config.json")) fail_msg("\"%s\" does not say \"%s\"", e.message, why);
}

static void unsupported(void **state)
{
    (void)state;
    refused("{\"model_type\":\"mamba\"," SIZES "}", "supported: qwen2, llama, qwen3");
    refused("{" SIZES "}", "model_type");
    refused(LLAMA ",\"attention_bias\":true}", "attention_bias");
    refused(QWEN3 ",\"attention_bias\":true}", "attention_bias");
    refused(LLAMA ",\"mlp_bias\":true}", "mlp_bias");
    refused(QWEN2 ",\"use_sliding_window\":true}", "use_sliding_window");
    refused(QWEN2 ",\"layer_types\":[\"sliding_attention\"]}", "sliding_attention");
    refused(QWEN2 ",\"hidden_act\":\"gelu\"}", "gelu");
    refused(LLAMA ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}}", "yarn");
    refused(LLAMA ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8}}", "low_freq_factor");
    refused(LLAMA ",\"rope_scaling\":3}", "must be an object");
    refused(LLAMA ",\"quantization_config\":{}}", "quantized");
    refused(LLAMA ",\"head_dim\":15}", "even");
    refused(LLAMA ",\"head_dim\":0}", "head_dim");
    refused(LLAMA ",\"rope_theta\":0}", "rope_theta");
    refused("{\"model_type\":\"llama\"}", "vocab_size");
    refused("[]", "not a JSON object");
    refused("{", "not valid JSON");
    refused("{\"model_type\":\"llama\",\"hidden_size\":64,\"intermediate_size\":1,\"max_position_embeddings\":1,\"num_attention_"
            "heads\":6,\"num_hidden_layers\":1,"
            "\"vocab_size\":9,\"rms_norm_eps\":1e-6}",
            "must be a multiple of num_attention_heads 6");
    refused("{\"model_type\":\"llama\",\"hidden_size\":64,\"intermediate_size\":1,\"max_position_embeddings\":1,\"num_attention_"
            "heads\":4,\"num_hidden_layers\":1,"
            "\"num_key_value_heads\":3,\"vocab_size\":9,\"rms_norm_eps\":1e-6}",
            "num_key_value_heads 3");
}

/* ---- folders */
static const char *fresh(const char *name)
{
    static char path[FS_PATH];
    struct err e = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_ok(fs_remove_tree(path, &e), &e);
    assert_ok(fs_mkdirs(path, &e), &e);
    return path;
}

static void put(const char *folder, const char *file, const char *text)
{
    char path[FS_PATH];
    struct err e = {0};
    assert_ok(fs_join(path, folder, file, &e), &e);
    assert_ok(fs_write_atomic(path, text, (int64_t)strlen(text), &e), &e);
}

static json_t *get(const char *folder, const char *file)
{
    char path[FS_PATH];
    json_t *j;
    struct err e = {0};
    assert_ok(fs_join(path, folder, file, &e), &e);
    assert_ok(json_read_file(path, &j, &e), &e);
    return j;
}

static uint64_t hash_of(const struct model *m)
{
    struct err e = {0};
    uint64_t hash;
    assert_ok(model_hash(m, &hash, &e), &e);
    return hash;
}

static void round_trip(void **state)
{
    (void)state;
    struct err e = {0};
    for (int arch = 0; arch < 6; arch++) {
        struct model *m = small_model(SMALL_ARCHS[arch % 3], arch < 3, NULL), *again, *coarse;
        const char *folder = fresh("round");
        put(dir, "tokenizer.json", "{\"version\":\"1.0\"}");
        assert_ok(model_save(m, folder, DTYPE_F32, dir, &e), &e);
        json_decref(get(folder, "tokenizer.json"));
        assert_ok(model_load(folder, NULL, m->k, NULL, &again, &e), &e);
        assert_int_equal(again->n_params, m->n_params);
        assert_memory_equal(again->weights, m->weights, (size_t)m->n_params * 4);
        assert_true(hash_of(again) == hash_of(m));
        assert_memory_equal(&again->shape, &m->shape, sizeof m->shape);
        assert_int_equal(again->n_eos, 2);
        assert_memory_equal(again->eos, m->eos, sizeof m->eos);
        assert_int_equal(again->file_dtype, DTYPE_F32);

        folder = fresh("coarse");
        assert_ok(model_save(again, folder, DTYPE_BF16, NULL, &e), &e);
        assert_ok(model_load(folder, NULL, m->k, NULL, &coarse, &e), &e);
        assert_int_equal(coarse->file_dtype, DTYPE_BF16);
        for (int64_t i = 0; i < m->n_params; i++) {
            const uint32_t bits = (uint32_t)safetensors_to_bf16(m->weights[i]) << 16;
            assert_memory_equal(&coarse->weights[i], &bits, 4);
        }
        assert_true(hash_of(coarse) != hash_of(m));
        model_free(m);
        model_free(again);
        model_free(coarse);
    }
}

static void keys_are_kept(void **state)
{
    (void)state;
    struct err e = {0};
    struct model *m = small_model("llama", false, NULL), *n;
    char from[FS_PATH];
    snprintf(from, sizeof from, "%s", fresh("from"));
    assert_ok(model_save(m, from, DTYPE_F32, NULL, &e), &e);
    const char *fields = "\"hidden_size\":40,\"intermediate_size\":56,\"max_position_embeddings\":128,\"num_attention_heads\":4,"
                         "\"num_hidden_layers\":3,"
                         "\"num_key_value_heads\":2,\"head_dim\":12,\"vocab_size\":97,\"rms_norm_eps\":1e-6,\"my_key\":{\"a\":[1,2."
                         "5,null]},\"eos_token_id\":[2,5]";
    char text[1000];
    snprintf(text, sizeof text,
             "{\"model_type\":\"llama\",%s,\"dtype\":\"float32\",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":"
             "10000.0}}",
             fields);
    put(from, "config.json", text);
    put(from, "generation_config.json", "{\"eos_token_id\":[7,2],\"top_p\":0.8}");
    const struct model_config over = {.dtype = PRECISION_F32, .rope_theta = 40000, .max_position_embeddings = 16384};
    assert_ok(model_load(from, &over, m->k, NULL, &n, &e), &e);
    assert_int_equal(n->n_eos, 3); /* both files, each id once */
    assert_true(n->eos[0] == 7 && n->eos[1] == 2 && n->eos[2] == 5);
    assert_true(n->shape.rope_theta == 40000 && n->shape.max_position == 16384);
    const char *to = fresh("to");
    assert_ok(model_save(n, to, DTYPE_BF16, NULL, &e), &e);
    json_t *j = get(to, "config.json"), *g = get(to, "generation_config.json");
    assert_true(json_number_value(json_object_get(json_object_get(j, "rope_parameters"), "rope_theta")) == 40000);
    assert_null(json_object_get(j, "rope_theta"));
    assert_int_equal(json_integer_value(json_object_get(j, "max_position_embeddings")), 16384);
    assert_string_equal(json_string_value(json_object_get(j, "dtype")), "bfloat16");
    assert_null(json_object_get(j, "torch_dtype"));
    assert_true(json_number_value(json_array_get(json_object_get(json_object_get(j, "my_key"), "a"), 1)) == 2.5);
    assert_true(json_number_value(json_object_get(g, "top_p")) == 0.8);
    json_decref(j);
    json_decref(g);
    model_free(n);

    put(from, "generation_config.json", "{\"eos_token_id\":97}");
    assert_int_equal(model_load(from, NULL, m->k, NULL, &n, &e), TARE_E_RANGE);
    assert_null(n);
    model_free(m);
}

/* The weights of a folder do not fit its config.json. */
static void wrong_weights(void **state)
{
    (void)state;
    struct err e = {0};
    struct model *m = small_model("qwen2", false, NULL), *n = NULL;
    char folder[FS_PATH], path[FS_PATH];
    snprintf(folder, sizeof folder, "%s", fresh("wrong"));
    assert_int_equal(model_load("/no/such/folder", NULL, m->k, NULL, &n, &e), TARE_E_NOT_FOUND);
    assert_int_equal(model_load(folder, NULL, m->k, NULL, &n, &e), TARE_E_NOT_FOUND);
    assert_ok(model_save(m, folder, DTYPE_F32, NULL, &e), &e);
    assert_ok(fs_join(path, folder, "model.safetensors", &e), &e);

    /* The head and the embedding of the file have 97 rows. */
    json_t *j = get(folder, "config.json");
    json_object_set_new(j, "vocab_size", json_integer(98));
    char *text = json_dumps(j, 0);
    put(folder, "config.json", text);
    free(text);
    assert_int_equal(model_load(folder, NULL, m->k, NULL, &n, &e), TARE_E_SHAPE);
    assert_non_null(strstr(e.message, "model.embed_tokens.weight"));
    assert_non_null(strstr(e.message, "[97, 40]"));
    assert_non_null(strstr(e.message, "[98, 40]"));
    json_object_set_new(j, "vocab_size", json_integer(97));
    json_object_set_new(j, "num_hidden_layers", json_integer(4));
    text = json_dumps(j, 0);
    put(folder, "config.json", text);
    free(text);
    json_decref(j);
    assert_int_equal(model_load(folder, NULL, m->k, NULL, &n, &e), TARE_E_NOT_FOUND);
    assert_non_null(strstr(e.message, "model.layers.3."));
    assert_int_equal(truncate(path, 1000), 0);
    assert_int_equal(model_load(folder, NULL, m->k, NULL, &n, &e), TARE_E_CORRUPT);
    assert_non_null(strstr(e.message, "truncated"));
    assert_null(n);
    model_free(m);
}

static tare_status new_of(const struct model_config *c, uint64_t seed, const struct kernels *k, struct model **out, struct err *e)
{
    return model_new(&(struct model_source){.config = c, .kernels = k, .seed = seed}, 11, NULL, 0, out, e);
}

static void new_models(void **state)
{
    (void)state;
    struct err e = {0};
    struct model *m = small_model("llama", true, NULL), *a, *b;
    struct model_config c = {
        .init = INIT_LLAMA, .hidden_size = 16, .layers = 1, .heads = 2, .kv_heads = 1, .intermediate_size = 8, .context = 9};
    assert_ok(new_of(&c, 1, m->k, &a, &e), &e);
    assert_ok(new_of(&c, 1, m->k, &b, &e), &e);
    assert_true(hash_of(a) == hash_of(b));
    model_free(b);
    assert_ok(new_of(&c, 2, m->k, &b, &e), &e);
    assert_true(hash_of(a) != hash_of(b));
    assert_int_equal(a->shape.head_dim, 8);
    assert_ok(model_positions(a, 9, &e), &e);
    assert_int_equal(model_positions(a, 10, &e), TARE_E_RANGE);
    model_free(a);
    model_free(b);
    c.kv_heads = 3;
    assert_int_equal(new_of(&c, 1, m->k, &a, &e), TARE_E_SHAPE);
    c.init = INIT_NONE;
    assert_int_equal(new_of(&c, 1, m->k, &a, &e), TARE_E_CONFIG);
    model_free(m);
}

/* Compares llama3 scaling and the plain table with the formula in long double at a few
 * positions. */
static void positions(void **state)
{
    (void)state;
    struct err e = {0};
    struct model *m = small_model("llama", true, NULL);
    m->shape.scaling = (struct rope_scaling){8, 1, 4, 64};
    assert_true(m->shape.max_position >= 128);
    assert_ok(positions_fill(m, &e), &e);
    const int64_t D = 12;
    for (int64_t i = 0; i < D / 2; i++) {
        const long double f = powl(10000.0L, -2.0L * (long double)i / (long double)D), wavelength = 2 * acosl(-1.0L) / f;
        long double want = f;
        if (wavelength > 64)
            want = f / 8;
        else if (wavelength >= 16)
            want = ((4 - 64 / wavelength) / 3) * f / 8 + ((64 / wavelength - 1) / 3) * f;
        for (int64_t p = 0; p < 128; p += 127) {
            assert_true(fabsl(cosl((long double)p * want) - (long double)m->rope[p * D + i]) < 1e-7L);
            assert_true(fabsl(sinl((long double)p * want) - (long double)m->rope[p * D + D / 2 + i]) < 1e-7L);
        }
    }
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(spellings),     cmocka_unit_test(unsupported),
                                       cmocka_unit_test(round_trip),    cmocka_unit_test(keys_are_kept),
                                       cmocka_unit_test(wrong_weights), cmocka_unit_test(new_models),
                                       cmocka_unit_test(positions)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
