/* The families of models: the shape of each config.json, refusals with their messages, and folders
 * written back unchanged. test_parity compares the computation with transformers on
 * tests/data/models/families, and update/test_shards on ranks. */
#include "check.h"
#include "folder.h"
#include "load.h"

#include "base/fs.h"
#include "base/json.h"
#include "model/hf_config.h"
#include "model/lora.h"
#include "model/safetensors.h"

#include <string.h>

static const char *const FAMILIES[] = {"llama3.2", "mistral", "mistral-window", "phi3",  "phi3-part",
                                       "granite",  "smollm3", "olmo2",          "gemma3"};
enum { N_FAMILIES = sizeof FAMILIES / sizeof *FAMILIES };

#define SIZES                                                                                                                      \
    "\"hidden_size\":64,\"intermediate_size\":144,\"max_position_embeddings\":4096,\"num_attention_heads\":4,\"num_hidden_"        \
    "layers\":6,\"num_key_value_heads\":2,\"vocab_size\":256,\"rms_norm_eps\":1e-6"
#define OF(TYPE, MORE) "{\"model_type\":\"" TYPE "\"," SIZES MORE "}"

static const char *family(const char *name)
{
    static char path[FS_PATH];
    snprintf(path, sizeof path, "%s/tests/data/models/families/%s", getenv("SOURCE"), name);
    return path;
}

static const struct kernels *cpu(void)
{
    const struct kernels *k;
    struct err e = {0};
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
    return k;
}

static struct model_shape shape(const char *text)
{
    struct err e = {0};
    struct model_shape s;
    assert_ok(hf_config_shape(text, (int64_t)strlen(text), "config.json", &s, &e), &e);
    return s;
}

static bool close_to(double a, double b)
{
    return a - b < 1e-12 && b - a < 1e-12;
}

static void features(void **state)
{
    (void)state;
    struct model_shape s = shape(OF("mistral", ""));
    /* The default of MistralConfig. */
    assert_true(s.window == 4096 && layer_in(&s.sliding, 0) && layer_in(&s.sliding, 5));
    s = shape(OF("mistral", ",\"sliding_window\":null"));
    assert_true(!s.window && !layer_in(&s.sliding, 0) && !s.tied && s.head_dim == 16);
    s = shape(OF("phi3", ",\"partial_rotary_factor\":0.75,\"sliding_window\":2047"));
    assert_true(s.fused && s.rotary_dim == 12 && s.window == 2047);
    s = shape(OF("phi3", ",\"rope_scaling\":null"));
    assert_true(s.fused && !s.rotary_dim && !s.window);
    s = shape(
        OF("granite",
           ",\"embedding_multiplier\":12,\"residual_multiplier\":0.22,\"attention_multiplier\":0.0078125,\"logits_scaling\":1"));
    assert_true(close_to(s.embed_scale, 12) && close_to(s.residual_scale, 0.22) && close_to(s.attention_scale, 0.0078125));
    assert_true(close_to(s.logits_divisor, 0)); /* 1: no division */
    s = shape(OF("granite", ""));
    assert_true(close_to(s.attention_scale, 1)); /* not 1/sqrt(head_dim) */
    s = shape(OF("smollm3", ""));
    assert_true(s.tied && close_to(s.rope_theta, 2e6) && !layer_in(&s.no_rope, 2) && layer_in(&s.no_rope, 3));
    s = shape(OF("smollm3", ",\"no_rope_layers\":[0,1,1,1,1,0]"));
    assert_true(layer_in(&s.no_rope, 0) && !layer_in(&s.no_rope, 3) && layer_in(&s.no_rope, 5));
    s = shape(OF("olmo2", ""));
    assert_true(s.norms == NORMS_AFTER && s.qk_norm == QK_NORM_WHOLE);
}

static void gemma_in_old_and_new_spelling(void **state)
{
    (void)state;
    static const char *const TEXT[] = {
        OF("gemma3_text",
           ",\"rope_theta\":1000000,\"rope_local_base_freq\":10000,\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8},"
           "\"sliding_window\":512,\"sliding_window_pattern\":3,\"query_pre_attn_scalar\":64"),
        OF("gemma3_text",
           ",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"linear\",\"factor\":8,\"rope_theta\":1000000},"
           "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":10000}},\"sliding_window\":512,\"layer_types\":["
           "\"sliding_attention\",\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"sliding_attention\","
           "\"full_attention\"],\"query_pre_attn_scalar\":64")};
    for (int i = 0; i < 2; i++) {
        const struct model_shape s = shape(TEXT[i]);
        assert_true(s.gelu && s.norm_plus_one && s.tied && s.norms == NORMS_BOTH && s.head_dim == 256 && s.window == 512);
        assert_true(close_to(s.rope_theta, 1e6) && close_to(s.local_theta, 1e4) && close_to(s.scaling.factor, 8));
        assert_true(close_to(s.embed_scale, 8) && close_to(s.attention_scale, 0.125));
        for (int64_t l = 0; l < 6; l++) assert_true(layer_in(&s.sliding, l) == (l % 3 != 2));
    }
}

static void refused(const char *text, const char *why)
{
    struct err e = {0};
    struct model_shape s;
    if (!hf_config_shape(text, (int64_t)strlen(text), "config.json", &s, &e)) fail_msg("%s was taken", text);
    if (!strstr(e.message, why) || !strstr(e.message, "config.json")) fail_msg("\"%s\" does not say \"%s\"", e.message, why);
}

static void refusals(void **state)
{
    (void)state;
    refused(OF("gemma3", ""),
            "model_type \"gemma3\" is not supported; supported: qwen2, llama, qwen3, mistral, phi3, granite, smollm3, olmo2, "
            "gemma3_text");
    refused(OF("phi3", ",\"rope_scaling\":{\"type\":\"longrope\",\"short_factor\":[1],\"long_factor\":[1]}"),
            "rope scaling \"longrope\" is not supported; supported: default, linear, llama3");
    refused(OF("phi3", ",\"partial_rotary_factor\":0.7"), "\"partial_rotary_factor\" 0.7 rotates 11 of the 16");
    refused(OF("phi3", ",\"partial_rotary_factor\":1e300"), "\"partial_rotary_factor\" is 1e+300");
    refused(OF("phi3", ",\"partial_rotary_factor\":1.5"), "\"partial_rotary_factor\" 1.5");
    refused(OF("llama", ",\"partial_rotary_factor\":0.5"),
            "\"partial_rotary_factor\": 0.5 is not supported with model_type \"llama\"");
    refused(OF("granite", ",\"logits_scaling\":0"), "\"logits_scaling\" is 0: must be from 1e-12 to 1e12");
    refused(OF("granite", ",\"residual_multiplier\":\"x\""), "residual_multiplier");
    refused(OF("granite", ",\"attention_bias\":true"), "\"attention_bias\": true is not supported; supported: false");
    refused(OF("smollm3", ",\"no_rope_layers\":[1,1]"), "\"no_rope_layers\" must be a list with an entry for each of the 6 layers");
    refused(OF("smollm3", ",\"no_rope_layers\":[1,1,1,2,1,1]"), "the entry of layer 3 must be 1");
    refused(OF("smollm3", ",\"no_rope_layer_interval\":0"), "no_rope_layer_interval");
    refused(OF("smollm3", ",\"use_sliding_window\":true"), "use_sliding_window");
    refused(OF("mistral", ",\"sliding_window\":0"), "\"sliding_window\" is 0");
    refused(OF("mistral", ",\"layer_types\":[\"sliding_attention\"]"),
            "\"sliding_attention\" is not supported with model_type \"mistral\"");
    refused(OF("gemma3_text", ",\"layer_types\":[\"sliding_attention\"]"), "\"layer_types\" must be a list");
    refused(OF("gemma3_text", ",\"layer_types\":[\"x\",\"x\",\"x\",\"x\",\"x\",\"x\"]"),
            "supported: full_attention, sliding_attention");
    refused(OF("gemma3_text", ",\"sliding_window\":null"), "\"sliding_window\" is null");
    refused(OF("gemma3_text", ",\"final_logit_softcapping\":30"),
            "\"final_logit_softcapping\": 30 is not supported; supported: null");
    refused(OF("gemma3_text", ",\"attn_logit_softcapping\":50"), "attn_logit_softcapping");
    refused(OF("gemma3_text", ",\"use_bidirectional_attention\":true"), "use_bidirectional_attention");
    refused(OF("gemma3_text", ",\"hidden_activation\":\"relu\""),
            "hidden_activation \"relu\" is not supported; supported: silu, gelu_pytorch_tanh");
    refused(OF("gemma3_text", ",\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"linear\",\"factor\":2}}"),
            "sliding_attention");
    refused(OF("gemma3_text", ",\"rope_local_base_freq\":1"), "rope_local_base_freq is 1");
    refused(OF("llama", ",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":0.5}"), "linear rope scaling needs factor >= 1");
    refused(OF("llama", ",\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4}"), "quant_method \"gptq\"");
    refused(OF("llama", ",\"quantization_config\":{\"quant_method\":\"fp8\"}"), "quant_method \"fp8\"");
}

/* At most LAYER_SET layers can differ. */
static void too_many_layers(void **state)
{
    (void)state;
    char text[2000];
    snprintf(text, sizeof text,
             "{\"model_type\":\"mistral\",\"hidden_size\":64,\"intermediate_size\":1,\"max_position_embeddings\":9,\"num_attention_"
             "heads\":4,"
             "\"num_hidden_layers\":257,\"num_key_value_heads\":2,\"vocab_size\":9,\"rms_norm_eps\":1e-6}");
    refused(text, "at most 256");
}

/* ---- folders */

static void same_tensors(const char *a, const char *b)
{
    struct err e = {0};
    struct safetensors x, y;
    assert_ok(safetensors_open_folder(a, &x, &e), &e);
    assert_ok(safetensors_open_folder(b, &y, &e), &e);
    assert_int_equal(x.n_tensors, y.n_tensors);
    for (int64_t i = 0; i < x.n_tensors; i++) {
        const struct st_tensor *t = &x.tensors[i], *u = &y.tensors[i];
        assert_string_equal(t->name, u->name);
        assert_string_equal(t->dtype, u->dtype);
        assert_int_equal(t->rank, u->rank);
        assert_memory_equal(t->shape, u->shape, (size_t)t->rank * sizeof *t->shape);
        assert_memory_equal(t->data, u->data, (size_t)t->bytes);
    }
    safetensors_close(&x);
    safetensors_close(&y);
}

static json_t *config_of(const char *folder)
{
    char path[FS_PATH];
    json_t *j;
    struct err e = {0};
    assert_ok(fs_join(path, folder, "config.json", &e), &e);
    assert_ok(json_read_file(path, &j, &e), &e);
    return j;
}

/* transformers wrote these folders: tare must write the same names, fused tensors, bytes and
 * keys. */
static void a_folder_goes_out_as_it_came_in(void **state)
{
    (void)state;
    const char *out = make_test_folder("tare-families");
    struct err e = {0};
    assert_non_null(out);
    for (int i = 0; i < N_FAMILIES; i++) {
        struct model *m;
        const char *key;
        json_t *value;
        assert_ok(model_load(family(FAMILIES[i]), NULL, cpu(), NULL, &m, &e), &e);
        assert_ok(model_save(m, out, DTYPE_BF16, NULL, &e), &e);
        same_tensors(family(FAMILIES[i]), out);
        json_t *was = config_of(family(FAMILIES[i])), *is = config_of(out);
        json_object_foreach(was, key, value)
        {
            if (!json_equal(value, json_object_get(is, key))) fail_msg("%s: config.json: %s is another one", FAMILIES[i], key);
        }
        json_decref(was);
        json_decref(is);
        model_free(m);
    }
    fs_remove_tree(out, NULL);
}

/* A layer, a bias or a norm that is missing in config.json would be lost silently. */
static void more_tensors_than_the_model_has_are_refused(void **state)
{
    (void)state;
    const char *out = make_test_folder("tare-families");
    struct err e = {0};
    struct model *m;
    char path[FS_PATH];
    assert_non_null(out);
    assert_ok(model_load(family("granite"), NULL, cpu(), NULL, &m, &e), &e);
    assert_ok(model_save(m, out, DTYPE_BF16, NULL, &e), &e);
    model_free(m);
    json_t *config = config_of(out);
    const json_int_t layers = json_integer_value(json_object_get(config, "num_hidden_layers"));
    assert_true(layers > 1);
    json_object_set_new(config, "num_hidden_layers", json_integer(layers - 1));
    assert_ok(fs_join(path, out, "config.json", &e), &e);
    assert_int_equal(json_dump_file(config, path, 0), 0);
    json_decref(config);
    assert_int_equal(model_load(out, NULL, cpu(), NULL, &m, &e), TARE_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "unknown tensor model.layers."));
    fs_remove_tree(out, NULL);
}

/* A run or an adapter of another model with the same tensors is detected. */
static void other_values_are_found(void **state)
{
    (void)state;
    struct err e = {0};
    struct model *m;
    assert_ok(model_load(family("granite"), NULL, cpu(), NULL, &m, &e), &e);
    assert_ok(model_check_folder(m, family("granite"), &e), &e);
    m->shape.residual_scale = 0.5;
    assert_int_equal(model_check_folder(m, family("granite"), &e), TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "residual_multiplier = 0.22"));
    model_free(m);
    assert_ok(model_load(family("smollm3"), NULL, cpu(), NULL, &m, &e), &e);
    assert_ok(model_check_folder(m, family("smollm3"), &e), &e);
    m->shape.no_rope.bits[0] ^= 4;
    assert_int_equal(model_check_folder(m, family("smollm3"), &e), TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "no_rope_layers"));
    model_free(m);
}

/* Kernels without windows accept a model with windows only if all positions fit into one. */
static void windows_need_kernels_that_have_them(void **state)
{
    (void)state;
    struct err e = {0};
    struct model *m;
    struct kernels without = *cpu();
    const struct model_config fits = {.max_position_embeddings = 8}, more = {.max_position_embeddings = 9};
    without.windows = 0;
    assert_int_equal(model_load(family("mistral-window"), NULL, &without, NULL, &m, &e), TARE_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "\"sliding_window\": 8 is not supported with run.device = cuda"));
    assert_int_equal(model_load(family("gemma3"), &more, &without, NULL, &m, &e), TARE_E_UNSUPPORTED);
    assert_ok(model_load(family("gemma3"), &fits, &without, NULL, &m, &e), &e);
    model_free(m);
    assert_ok(model_load(family("mistral"), NULL, &without, NULL, &m, &e), &e);
    model_free(m);
}

/* ---- tensors that are not weights */
static void quantized_tensors_are_refused(void **state)
{
    (void)state;
    static const float zeros[16];
    const struct st_source packed = {.name = "model.layers.0.mlp.up_proj.qweight", .rank = 2, .shape = {4, 4}, .data = zeros};
    const char *out = make_test_folder("tare-families");
    char path[FS_PATH];
    float to[16];
    struct safetensors file;
    struct err e = {0};
    assert_non_null(out);
    assert_ok(fs_join(path, out, "model.safetensors", &e), &e);
    assert_ok(safetensors_write(path, &packed, 1, DTYPE_F32, &e), &e);
    assert_ok(safetensors_open(path, &file, &e), &e);
    assert_int_equal(safetensors_read(&file, "model.layers.0.mlp.up_proj.weight", (struct st_extent){2, 4, 4}, to, &e),
                     TARE_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "model.layers.0.mlp.up_proj.qweight"));
    assert_int_equal(safetensors_read(&file, "model.layers.0.mlp.down_proj.weight", (struct st_extent){2, 4, 4}, to, &e),
                     TARE_E_NOT_FOUND);
    safetensors_close(&file);
    static const char FP8[] = "{\"x.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2],\"data_offsets\":[0,4]}}  ";
    unsigned char bytes[8 + sizeof FP8 + 3] = {sizeof FP8 - 1};
    memcpy(bytes + 8, FP8, sizeof FP8 - 1);
    assert_ok(safetensors_parse(bytes, (int64_t)(8 + sizeof FP8 - 1 + 4), "fp8.safetensors", &file, &e), &e);
    assert_int_equal(safetensors_read(&file, "x.weight", (struct st_extent){2, 2, 2}, to, &e), TARE_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "F8_E4M3"));
    safetensors_close(&file);
    fs_remove_tree(out, NULL);
}

/* ---- adapters on checkpoints whose q, k, v are one tensor */
static void targets_are_those_of_the_checkpoint(void **state)
{
    (void)state;
    struct err e = {0};
    unsigned out;
    const struct model_shape fused = {.arch = ARCH_PHI3, .fused = true}, apart = {.arch = ARCH_LLAMA};
    assert_ok(lora_targets(&apart, LORA_ALL, "x", &out, &e), &e);
    assert_int_equal(out, 127);
    assert_ok(lora_targets(&fused, LORA_ALL, "x", &out, &e), &e);
    assert_int_equal(out, 1 << LORA_O_PROJ | 1 << LORA_DOWN_PROJ | 1 << LORA_QKV_PROJ | 1 << LORA_GATE_UP_PROJ);
    assert_int_equal(lora_targets(&fused, 1 << LORA_Q_PROJ | 1 << LORA_O_PROJ, "lora.targets", &out, &e), TARE_E_CONFIG);
    assert_string_equal(e.message,
                        "lora.targets: the model (model_type \"phi3\") has no q_proj; its linear layers are o_proj, down_proj, "
                        "qkv_proj, gate_up_proj; all-linear selects all of them");
    assert_int_equal(lora_targets(&apart, 1 << LORA_QKV_PROJ, "lora.targets", &out, &e), TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "has no qkv_proj"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(features),
                                       cmocka_unit_test(gemma_in_old_and_new_spelling),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(too_many_layers),
                                       cmocka_unit_test(a_folder_goes_out_as_it_came_in),
                                       cmocka_unit_test(more_tensors_than_the_model_has_are_refused),
                                       cmocka_unit_test(other_values_are_found),
                                       cmocka_unit_test(windows_need_kernels_that_have_them),
                                       cmocka_unit_test(quantized_tensors_are_refused),
                                       cmocka_unit_test(targets_are_those_of_the_checkpoint)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
