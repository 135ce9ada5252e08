#include "model/hf_config.h"

#include "base/fs.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *type, *class_name;
} ARCHS[] = {[ARCH_QWEN2] = {"qwen2", "Qwen2ForCausalLM"},
             [ARCH_LLAMA] = {"llama", "LlamaForCausalLM"},
             [ARCH_QWEN3] = {"qwen3", "Qwen3ForCausalLM"}};
enum { N_ARCHS = sizeof ARCHS / sizeof *ARCHS };
static const int64_t SIZE_MAX_ALLOWED = 1 << 28; /* so that no product of two sizes overflows */

static bool is_null(const json_t *v)
{
    return !v || json_is_null(v);
}

static tare_status get_size(const json_t *j, const char *key, const char *where, int64_t *out, struct err *e)
{
    TRY(json_get_int(j, key, where, out, e));
    if (*out < 1 || *out > SIZE_MAX_ALLOWED)
        FAIL(e, TARE_E_RANGE, "%s: \"%s\" is %lld; it has to be 1 to %lld", where, key, (long long)*out,
             (long long)SIZE_MAX_ALLOWED);
    return TARE_OK;
}

static tare_status get_arch(const json_t *j, const char *where, enum arch *out, struct err *e)
{
    const char *type = json_text_or(j, "model_type", "");
    for (int a = 0; a < N_ARCHS; a++) {
        if (strcmp(type, ARCHS[a].type)) continue;
        *out = (enum arch)a;
        return TARE_OK;
    }
    FAIL(e, TARE_E_UNSUPPORTED, "%s: model_type \"%.100s\" is not supported; supported: qwen2, llama, qwen3", where, type);
}

/* Refuses a key that is true and would change the computation. */
static tare_status refuse(const json_t *j, const char *key, const char *where, struct err *e)
{
    if (json_is_true(json_object_get(j, key))) FAIL(e, TARE_E_UNSUPPORTED, "%s: \"%s\": true is not supported", where, key);
    return TARE_OK;
}

static tare_status check_supported(const json_t *j, enum arch arch, const char *where, struct err *e)
{
    const char *act = json_text_or(j, "hidden_act", "silu");
    if (strcmp(act, "silu") && strcmp(act, "swish"))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: hidden_act \"%.100s\" is not supported; supported: silu", where, act);
    TRY(refuse(j, "use_sliding_window", where, e));
    TRY(refuse(j, "mlp_bias", where, e));
    if (arch != ARCH_QWEN2) TRY(refuse(j, "attention_bias", where, e));
    if (!is_null(json_object_get(j, "quantization_config")))
        FAIL(e, TARE_E_UNSUPPORTED,
             "%s: a quantized checkpoint (\"quantization_config\") is not supported; use the original weights", where);
    if (json_double_or(j, "partial_rotary_factor", 1) != 1)
        FAIL(e, TARE_E_UNSUPPORTED, "%s: \"partial_rotary_factor\" other than 1 is not supported", where);
    size_t i;
    const json_t *type;
    json_array_foreach(json_object_get(j, "layer_types"), i, type)
    {
        const char *name = json_string_value(type);
        if (!name || strcmp(name, "full_attention"))
            FAIL(e, TARE_E_UNSUPPORTED, "%s: layer_types: \"%.100s\" is not supported; supported: full_attention", where,
                 name ? name : "?");
    }
    return TARE_OK;
}

static tare_status get_scaling(const json_t *r, const char *where, struct rope_scaling *s, struct err *e)
{
    const char *type = json_text_or(r, "rope_type", json_text_or(r, "type", "default"));
    if (!strcmp(type, "default")) return TARE_OK;
    if (strcmp(type, "llama3"))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: rope scaling \"%.100s\" is not supported; supported: default, llama3", where, type);
    TRY(json_get_double(r, "factor", where, &s->factor, e));
    TRY(json_get_double(r, "low_freq_factor", where, &s->low, e));
    TRY(json_get_double(r, "high_freq_factor", where, &s->high, e));
    TRY(json_get_double(r, "original_max_position_embeddings", where, &s->original, e));
    if (!(s->factor >= 1) || !(s->low > 0) || !(s->high > s->low) || !(s->original >= 1))
        FAIL(e, TARE_E_RANGE,
             "%s: llama3 rope scaling needs factor >= 1, 0 < low_freq_factor < high_freq_factor, original_max_position_embeddings "
             ">= 1",
             where);
    return TARE_OK;
}

static tare_status get_rope(const json_t *j, const char *where, struct model_shape *s, struct err *e)
{
    const json_t *r = json_object_get(j, "rope_parameters");
    if (is_null(r)) r = json_object_get(j, "rope_scaling");
    s->rope_theta = json_double_or(j, "rope_theta", 10000);
    if (!is_null(r)) {
        if (!json_is_object(r)) FAIL(e, TARE_E_INVALID, "%s: rope_parameters or rope_scaling is not an object", where);
        s->rope_theta = json_double_or(r, "rope_theta", s->rope_theta);
        TRY(get_scaling(r, where, &s->scaling, e));
    }
    if (!(s->rope_theta > 1)) FAIL(e, TARE_E_RANGE, "%s: rope_theta is %g; it has to be above 1", where, s->rope_theta);
    return TARE_OK;
}

static tare_status get_sizes(const json_t *j, const char *where, struct model_shape *s, struct err *e)
{
    TRY(get_size(j, "vocab_size", where, &s->vocab, e));
    TRY(get_size(j, "hidden_size", where, &s->hidden, e));
    TRY(get_size(j, "num_hidden_layers", where, &s->layers, e));
    TRY(get_size(j, "num_attention_heads", where, &s->heads, e));
    TRY(get_size(j, "intermediate_size", where, &s->intermediate, e));
    TRY(get_size(j, "max_position_embeddings", where, &s->max_position, e));
    s->kv_heads = s->heads;
    if (s->arch != ARCH_LLAMA || !is_null(json_object_get(j, "num_key_value_heads")))
        TRY(get_size(j, "num_key_value_heads", where, &s->kv_heads, e));
    s->head_dim = s->arch == ARCH_QWEN3 ? 128 : s->hidden / s->heads;
    if (!is_null(json_object_get(j, "head_dim")))
        TRY(get_size(j, "head_dim", where, &s->head_dim, e));
    else if (s->arch != ARCH_QWEN3 && s->hidden % s->heads)
        FAIL(e, TARE_E_SHAPE, "%s: hidden_size %lld is no multiple of num_attention_heads %lld, and there is no head_dim", where,
             (long long)s->hidden, (long long)s->heads);
    if (s->heads % s->kv_heads)
        FAIL(e, TARE_E_SHAPE, "%s: num_attention_heads %lld is no multiple of num_key_value_heads %lld", where, (long long)s->heads,
             (long long)s->kv_heads);
    if (s->head_dim % 2) FAIL(e, TARE_E_SHAPE, "%s: head_dim %lld is odd", where, (long long)s->head_dim);
    if (s->layers > 100000 || s->heads > 100000 || s->head_dim > 100000)
        FAIL(e, TARE_E_RANGE, "%s: more than 100000 layers, heads or head_dim", where);
    return TARE_OK;
}

static tare_status shape_of(const json_t *j, const char *where, struct model_shape *s, struct err *e)
{
    *s = (struct model_shape){0};
    if (!json_is_object(j)) FAIL(e, TARE_E_CORRUPT, "%s: is not a JSON object", where);
    TRY(get_arch(j, where, &s->arch, e));
    TRY(check_supported(j, s->arch, where, e));
    TRY(get_sizes(j, where, s, e));
    TRY(get_rope(j, where, s, e));
    TRY(json_get_double(j, "rms_norm_eps", where, &s->rms_eps, e));
    if (!(s->rms_eps >= 0 && s->rms_eps < 1))
        FAIL(e, TARE_E_RANGE, "%s: rms_norm_eps is %g; it has to be 0 to 1", where, s->rms_eps);
    s->tied = json_bool_or(j, "tie_word_embeddings", 0); /* the default of all three architectures */
    s->qkv_bias = s->arch == ARCH_QWEN2;
    s->qk_norm = s->arch == ARCH_QWEN3;
    return TARE_OK;
}

tare_status hf_config_shape(const char *text, int64_t n, const char *where, struct model_shape *out, struct err *e)
{
    json_t *j = NULL;
    TRY(json_parse(text, n, where, &j, e));
    const tare_status status = shape_of(j, where, out, e);
    json_decref(j);
    return status;
}

static tare_status add_eos(struct model *m, const json_t *v, const char *where, struct err *e)
{
    if (is_null(v)) return TARE_OK;
    if (json_is_array(v)) {
        for (size_t i = 0; i < json_array_size(v); i++) TRY(add_eos(m, json_array_get(v, i), where, e));
        return TARE_OK;
    }
    const int64_t id = json_is_integer(v) ? json_integer_value(v) : -1;
    if (id < 0 || id >= m->shape.vocab)
        FAIL(e, TARE_E_RANGE, "%s: eos_token_id %lld; it has to be an id from 0 to %lld, or a list of such", where, (long long)id,
             (long long)m->shape.vocab - 1);
    for (int64_t i = 0; i < m->n_eos; i++)
        if (m->eos[i] == id) return TARE_OK;
    if (m->n_eos == (int64_t)(sizeof m->eos / sizeof *m->eos))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: more than %lld EOS ids", where, (long long)m->n_eos);
    m->eos[m->n_eos++] = (int32_t)id;
    return TARE_OK;
}

static tare_status load_eos(struct model *m, const char *folder, const char *config, const json_t *j, struct err *e)
{
    char path[FS_PATH];
    json_t *g = NULL;
    TRY(fs_join(path, folder, "generation_config.json", e));
    if (fs_exists(path)) {
        TRY(json_read_file(path, &g, e));
        const tare_status status = add_eos(m, json_object_get(g, "eos_token_id"), path, e);
        json_decref(g);
        TRY(status);
    }
    return add_eos(m, json_object_get(j, "eos_token_id"), config, e);
}

void hf_config_values(const struct model_shape *s, struct hf_value out[HF_VALUES])
{
    const struct rope_scaling *r = &s->scaling;
    const struct hf_value values[HF_VALUES] = {{"num_attention_heads", (double)s->heads},
                                               {"num_key_value_heads", (double)s->kv_heads},
                                               {"head_dim", (double)s->head_dim},
                                               {"rms_norm_eps", s->rms_eps},
                                               {"rope_theta", s->rope_theta},
                                               {"factor", r->factor},
                                               {"low_freq_factor", r->low},
                                               {"high_freq_factor", r->high},
                                               {"original_max_position_embeddings", r->original}};
    memcpy(out, values, sizeof values);
}

tare_status hf_config_check(const struct model *m, const char *folder, struct err *e)
{
    struct model_shape there;
    struct hf_value was[HF_VALUES], is[HF_VALUES];
    char path[FS_PATH];
    struct str text = {0};
    TRY(fs_join(path, folder, "config.json", e));
    tare_status status = fs_read_all(path, &text, e);
    if (!status) status = hf_config_shape(text.data, text.size, path, &there, e);
    str_free(&text);
    TRY(status);
    hf_config_values(&there, was);
    hf_config_values(&m->shape, is);
    for (int i = 0; i < HF_VALUES; i++)
        if (was[i].value != is[i].value && !(m->rope_theta_set && !strcmp(is[i].key, "rope_theta")))
            FAIL(e, TARE_E_CONFIG,
                 "%s: the run has %s = %.9g; %s/config.json says %.9g now. Put back the config.json with which the run began", path,
                 was[i].key, was[i].value, m->folder, is[i].value);
    return TARE_OK;
}

tare_status hf_config_load(struct model *m, const char *folder, const struct model_config *c, struct err *e)
{
    char path[FS_PATH];
    struct str text = {0};
    json_t *j = NULL;
    tare_status status = TARE_OK;
    TRY(fs_join(path, folder, "config.json", e));
    TRY_TO(status, done, fs_join(m->folder, folder, "", e));
    TRY_TO(status, done, fs_read_all(path, &text, e));
    TRY_TO(status, done, json_parse(text.data, text.size, path, &j, e));
    TRY_TO(status, done, shape_of(j, path, &m->shape, e));
    TRY_TO(status, done, load_eos(m, folder, path, j, e));
    m->rope_theta_set = c && c->rope_theta > 0;
    if (m->rope_theta_set) m->shape.rope_theta = c->rope_theta;
    if (c && c->max_position_embeddings > 0) m->shape.max_position = c->max_position_embeddings;
    m->config_json = text.data;
    text = (struct str){0};
done:
    json_decref(j);
    str_free(&text);
    return status;
}

static json_t *eos_json(const struct model *m)
{
    if (!m->n_eos) return json_null();
    if (m->n_eos == 1) return json_integer(m->eos[0]);
    json_t *list = json_array();
    for (int64_t i = 0; i < m->n_eos; i++) json_array_append_new(list, json_integer(m->eos[i]));
    return list;
}

static tare_status new_arch(const struct model_config *c, enum arch *out, struct err *e)
{
    static const enum arch OF[] = {[INIT_QWEN2] = ARCH_QWEN2, [INIT_LLAMA] = ARCH_LLAMA, [INIT_QWEN3] = ARCH_QWEN3};
    if (c->init == INIT_NONE) FAIL(e, TARE_E_CONFIG, "model.init is empty; a new model needs an architecture");
    *out = OF[c->init];
    return TARE_OK;
}

tare_status hf_config_new(struct model *m, const struct model_config *c, int64_t vocab, struct err *e)
{
    enum arch arch = ARCH_QWEN2;
    struct str text = {0};
    TRY(new_arch(c, &arch, e));
    if (c->heads < 1 || c->kv_heads < 1 || c->hidden_size < 1)
        FAIL(e, TARE_E_CONFIG, "model.hidden_size, model.heads and model.kv_heads have to be at least 1 for a new model");
    const int64_t head_dim = c->head_dim > 0 ? c->head_dim : c->hidden_size / c->heads;
    const int64_t context = c->max_position_embeddings > 0 ? c->max_position_embeddings : c->context;
    json_t *j = json_pack("{s:[s], s:s, s:s, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b, s:o, s:b, s:s}",
                          "architectures", ARCHS[arch].class_name, "model_type", ARCHS[arch].type, "hidden_act", "silu",
                          "initializer_range", 0.02, "vocab_size", (json_int_t)vocab, "hidden_size", (json_int_t)c->hidden_size,
                          "intermediate_size", (json_int_t)c->intermediate_size, "num_hidden_layers", (json_int_t)c->layers,
                          "num_attention_heads", (json_int_t)c->heads, "num_key_value_heads", (json_int_t)c->kv_heads, "head_dim",
                          (json_int_t)head_dim, "max_position_embeddings", (json_int_t)context, "rms_norm_eps", 1e-6, "rope_theta",
                          c->rope_theta > 0 ? c->rope_theta : 10000.0, "tie_word_embeddings", (int)c->tie_embeddings,
                          "eos_token_id", eos_json(m), "use_cache", 1, "torch_dtype", "float32");
    if (!j) FAIL(e, TARE_E_NOMEM, "no memory for config.json");
    tare_status status = shape_of(j, "[model]", &m->shape, e);
    if (!status) status = json_print(j, &text, e);
    json_decref(j);
    if (status)
        str_free(&text);
    else
        m->config_json = text.data;
    return status;
}

/* Keys whose value follows what was computed, not what was read. */
static void update_config(const struct model *m, json_t *j, enum dtype dtype)
{
    const char *name = dtype == DTYPE_BF16 ? "bfloat16" : "float32";
    json_t *r = json_object_get(j, "rope_parameters");
    const json_t *top = json_object_get(j, "rope_theta");
    if (json_object_get(j, "dtype")) json_object_set_new(j, "dtype", json_string(name));
    if (json_object_get(j, "torch_dtype") || !json_object_get(j, "dtype")) json_object_set_new(j, "torch_dtype", json_string(name));
    if (json_integer_value(json_object_get(j, "max_position_embeddings")) != m->shape.max_position)
        json_object_set_new(j, "max_position_embeddings", json_integer(m->shape.max_position));
    if (json_is_object(r) && json_double_or(r, "rope_theta", 0) != m->shape.rope_theta)
        json_object_set_new(r, "rope_theta", json_real(m->shape.rope_theta));
    if ((top || !json_is_object(r)) && json_double_or(j, "rope_theta", 0) != m->shape.rope_theta)
        json_object_set_new(j, "rope_theta", json_real(m->shape.rope_theta));
}

static tare_status write_json(const json_t *j, const char *folder, const char *file, struct err *e)
{
    char path[FS_PATH];
    TRY(fs_join(path, folder, file, e));
    char *text = json_dumps(j, JSON_INDENT(2));
    if (!text) FAIL(e, TARE_E_NOMEM, "no memory to write %s", path);
    const tare_status status = fs_write_atomic(path, text, (int64_t)strlen(text), e);
    free(text);
    return status;
}

static tare_status save_generation(const struct model *m, const char *folder, struct err *e)
{
    char from[FS_PATH], to[FS_PATH];
    TRY(fs_join(from, m->folder, "generation_config.json", e));
    TRY(fs_join(to, folder, "generation_config.json", e));
    if (m->folder[0] && fs_exists(from)) return fs_copy(from, to, e);
    json_t *j = json_pack("{s:o}", "eos_token_id", eos_json(m));
    if (!j) FAIL(e, TARE_E_NOMEM, "no memory for %s", to);
    const tare_status status = write_json(j, folder, "generation_config.json", e);
    json_decref(j);
    return status;
}

tare_status hf_config_save(const struct model *m, const char *folder, enum dtype dtype, struct err *e)
{
    json_t *j = NULL;
    TRY(json_parse(m->config_json, (int64_t)strlen(m->config_json), "config.json", &j, e));
    update_config(m, j, dtype);
    const tare_status status = write_json(j, folder, "config.json", e);
    json_decref(j);
    TRY(status);
    return save_generation(m, folder, e);
}
