#include "model/hf_config.h"

#include "base/fs.h"

#include <stdlib.h>
#include <string.h>

static bool is_null(const json_t *v)
{
    return !v || json_is_null(v);
}

tare_status hf_config_shape(const char *text, int64_t n, const char *where, struct model_shape *out, struct err *e)
{
    OWNED(json_decrefp) json_t *j = NULL;
    TRY(json_parse(text, n, where, &j, e));
    return hf_shape(j, where, out, e);
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
        FAIL(e, TARE_E_RANGE, "%s: eos_token_id = %lld: must be an id from 0 to %lld, or a list of ids", where, (long long)id,
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

/* Maps a set of layers to a number; different sets almost surely have different numbers. */
static double layers_value(const struct layer_set *set)
{
    uint64_t h = 0;
    for (int i = 0; i < LAYER_SET / 64; i++) h = (h ^ set->bits[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (double)(h >> 12);
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
                                               {"original_max_position_embeddings", r->original},
                                               {"rope_local_base_freq", s->local_theta},
                                               {"partial_rotary_factor", (double)s->rotary_dim / (double)s->head_dim},
                                               {"no_rope_layers", layers_value(&s->no_rope)},
                                               {"sliding_window", (double)s->window},
                                               {"layer_types", layers_value(&s->sliding)},
                                               {"hidden_act", s->gelu},
                                               {"embedding_multiplier", s->embed_scale},
                                               {"residual_multiplier", s->residual_scale},
                                               {"attention_multiplier", s->attention_scale},
                                               {"logits_scaling", s->logits_divisor}};
    memcpy(out, values, sizeof values);
}

tare_status hf_config_check(const struct model *m, const char *folder, struct err *e)
{
    struct model_shape there;
    struct hf_value was[HF_VALUES], is[HF_VALUES];
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    TRY(fs_join(path, folder, "config.json", e));
    TRY(fs_read_all(path, &text, e));
    TRY(hf_config_shape(text.data, text.size, path, &there, e));
    hf_config_values(&there, was);
    hf_config_values(&m->shape, is);
    for (int i = 0; i < HF_VALUES; i++)
        if (was[i].value != is[i].value && !(m->rope_theta_set && !strcmp(is[i].key, "rope_theta")))
            FAIL(e, TARE_E_CONFIG,
                 "%s: the run has %s = %.9g; %s/config.json has %.9g now. Restore the config.json that the run started with", path,
                 was[i].key, was[i].value, m->folder, is[i].value);
    return TARE_OK;
}

tare_status hf_config_load(struct model *m, const char *folder, const struct model_config *c, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    OWNED(json_decrefp) json_t *j = NULL;
    TRY(fs_join(path, folder, "config.json", e));
    TRY(fs_join(m->folder, folder, "", e));
    TRY(fs_read_all(path, &text, e));
    TRY(json_parse(text.data, text.size, path, &j, e));
    TRY(hf_shape(j, path, &m->shape, e));
    TRY(load_eos(m, folder, path, j, e));
    m->rope_theta_set = c && c->rope_theta > 0;
    if (m->rope_theta_set) m->shape.rope_theta = c->rope_theta;
    if (c && c->max_position_embeddings > 0) m->shape.max_position = c->max_position_embeddings;
    m->config_json = text.data;
    text = (struct str){0};
    return TARE_OK;
}

static json_t *eos_json(const struct model *m)
{
    if (!m->n_eos) return json_null();
    if (m->n_eos == 1) return json_integer(m->eos[0]);
    json_t *list = json_array();
    bool bad = !list;
    for (int64_t i = 0; i < m->n_eos; i++) json_add(list, &bad, json_integer(m->eos[i]));
    return json_unless(bad, list);
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
    OWNED(str_free) struct str text = {0};
    const char *class_name;
    TRY(new_arch(c, &arch, e));
    const char *type = hf_family(arch, &class_name);
    if (c->heads < 1 || c->kv_heads < 1 || c->hidden_size < 1)
        FAIL(e, TARE_E_CONFIG, "model.hidden_size, model.heads and model.kv_heads must be at least 1 for a new model");
    const int64_t head_dim = c->head_dim > 0 ? c->head_dim : c->hidden_size / c->heads;
    const int64_t context = c->max_position_embeddings > 0 ? c->max_position_embeddings : c->context;
    OWNED(json_decrefp)
    json_t *j =
        json_pack("{s:[s], s:s, s:s, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b, s:o, s:b, s:s}", "architectures",
                  class_name, "model_type", type, "hidden_act", "silu", "initializer_range", 0.02, "vocab_size", (json_int_t)vocab,
                  "hidden_size", (json_int_t)c->hidden_size, "intermediate_size", (json_int_t)c->intermediate_size,
                  "num_hidden_layers", (json_int_t)c->layers, "num_attention_heads", (json_int_t)c->heads, "num_key_value_heads",
                  (json_int_t)c->kv_heads, "head_dim", (json_int_t)head_dim, "max_position_embeddings", (json_int_t)context,
                  "rms_norm_eps", 1e-6, "rope_theta", c->rope_theta > 0 ? c->rope_theta : 10000.0, "tie_word_embeddings",
                  (int)c->tie_embeddings, "eos_token_id", eos_json(m), "use_cache", 1, "torch_dtype", "float32");
    if (!j) FAIL(e, TARE_E_NOMEM, "no memory for config.json");
    TRY(hf_shape(j, "[model]", &m->shape, e));
    TRY(json_print(j, &text, e));
    m->config_json = text.data;
    text = (struct str){0};
    return TARE_OK;
}

/* Updates keys that describe the computation rather than the file as it was read. */
static tare_status update_config(const struct model *m, json_t *j, enum dtype dtype, struct err *e)
{
    const char *name = dtype == DTYPE_BF16 ? "bfloat16" : "float32";
    json_t *r = json_object_get(j, "rope_parameters"), *full = json_object_get(r, "full_attention");
    if (json_is_object(full)) r = full;
    const json_t *top = json_object_get(j, "rope_theta");
    bool bad = false;
    if (json_object_get(j, "dtype")) json_put(j, &bad, "dtype", json_string(name));
    if (json_object_get(j, "torch_dtype") || !json_object_get(j, "dtype")) json_put(j, &bad, "torch_dtype", json_string(name));
    if (json_integer_value(json_object_get(j, "max_position_embeddings")) != m->shape.max_position)
        json_put(j, &bad, "max_position_embeddings", json_integer(m->shape.max_position));
    if (json_is_object(r) && json_double_or(r, "rope_theta", 0) != m->shape.rope_theta)
        json_put(r, &bad, "rope_theta", json_real(m->shape.rope_theta));
    if ((top || !json_is_object(r)) && json_double_or(j, "rope_theta", 0) != m->shape.rope_theta)
        json_put(j, &bad, "rope_theta", json_real(m->shape.rope_theta));
    if (bad) FAIL(e, TARE_E_NOMEM, "no memory for config.json");
    return TARE_OK;
}

static tare_status write_json(const json_t *j, const char *folder, const char *file, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    TRY(fs_join(path, folder, file, e));
    TRY(json_print_lines(j, &text, e));
    return fs_write_atomic(path, text.data, text.size, e);
}

static tare_status save_generation(const struct model *m, const char *folder, struct err *e)
{
    char from[FS_PATH], to[FS_PATH];
    TRY(fs_join(from, m->folder, "generation_config.json", e));
    TRY(fs_join(to, folder, "generation_config.json", e));
    if (m->folder[0] && fs_exists(from)) return fs_copy(from, to, e);
    OWNED(json_decrefp) json_t *j = json_pack("{s:o}", "eos_token_id", eos_json(m));
    if (!j) FAIL(e, TARE_E_NOMEM, "no memory for %s", to);
    return write_json(j, folder, "generation_config.json", e);
}

tare_status hf_config_save(const struct model *m, const char *folder, enum dtype dtype, struct err *e)
{
    OWNED(json_decrefp) json_t *j = NULL;
    TRY(json_parse(m->config_json, (int64_t)strlen(m->config_json), "config.json", &j, e));
    TRY(update_config(m, j, dtype, e));
    TRY(write_json(j, folder, "config.json", e));
    return save_generation(m, folder, e);
}
