/* The shape of a model from its config.json: the defaults of its family (FAMILIES), and the values
 * of the file. */
#include "model/hf_config.h"

#include <math.h>
#include <string.h>

enum window_of { WINDOW_NONE, WINDOW_ALL, WINDOW_BY_LAYER }; /* layers that sliding_window applies to */

/* The differences between the families. A field that is 0 means the same as in Llama; values are
 * defaults for keys missing from config.json. */
struct family {
    const char *type, *class_name;
    double rope_theta, window;  /* 0: 10,000; 0: no window */
    int64_t head_dim;           /* 0: hidden_size / num_attention_heads */
    double query_scalar;        /* 0: no query_pre_attn_scalar */
    const char *activation_key; /* NULL: hidden_act */
    enum window_of windows;
    enum norms norms;
    enum qk_norm qk_norm;
    bool qkv_bias, tied, fused;
    bool any_kv_heads;   /* num_key_value_heads may be missing and is then num_attention_heads */
    bool norm_plus_one;  /* norms multiply by 1 + w */
    bool embed_sqrt;     /* the embedding is multiplied by sqrt(hidden_size) */
    bool multipliers;    /* embedding_, residual_, attention_multiplier, logits_scaling */
    bool no_rope;        /* no_rope_layers */
    bool partial_rotary; /* partial_rotary_factor */
};

static const struct family FAMILIES[] = {
    [ARCH_QWEN2] = {.type = "qwen2", .class_name = "Qwen2ForCausalLM", .qkv_bias = true},
    [ARCH_LLAMA] = {.type = "llama", .class_name = "LlamaForCausalLM", .any_kv_heads = true},
    [ARCH_QWEN3] = {.type = "qwen3", .class_name = "Qwen3ForCausalLM", .qk_norm = QK_NORM_HEAD, .head_dim = 128},
    [ARCH_MISTRAL] = {.type = "mistral", .class_name = "MistralForCausalLM", .windows = WINDOW_ALL, .window = 4096},
    [ARCH_PHI3] = {.type = "phi3",
                   .class_name = "Phi3ForCausalLM",
                   .windows = WINDOW_ALL,
                   .fused = true,
                   .any_kv_heads = true,
                   .partial_rotary = true},
    [ARCH_GRANITE] = {.type = "granite", .class_name = "GraniteForCausalLM", .any_kv_heads = true, .multipliers = true},
    [ARCH_SMOLLM3] = {.type = "smollm3", .class_name = "SmolLM3ForCausalLM", .rope_theta = 2e6, .tied = true, .no_rope = true},
    [ARCH_OLMO2] =
        {.type = "olmo2", .class_name = "Olmo2ForCausalLM", .any_kv_heads = true, .norms = NORMS_AFTER, .qk_norm = QK_NORM_WHOLE},
    [ARCH_GEMMA3] = {.type = "gemma3_text",
                     .class_name = "Gemma3ForCausalLM",
                     .activation_key = "hidden_activation",
                     .rope_theta = 1e6,
                     .windows = WINDOW_BY_LAYER,
                     .window = 4096,
                     .head_dim = 256,
                     .query_scalar = 256,
                     .norms = NORMS_BOTH,
                     .qk_norm = QK_NORM_HEAD,
                     .norm_plus_one = true,
                     .embed_sqrt = true,
                     .tied = true},
};
enum { N_FAMILIES = sizeof FAMILIES / sizeof *FAMILIES };
static const int64_t SIZE_MAX_ALLOWED = 1 << 28; /* so that no product of two sizes overflows */

static const json_t *value_of(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    return json_is_null(v) ? NULL : v;
}

static tare_status get_size(const json_t *j, const char *key, const char *where, int64_t *out, struct err *e)
{
    TRY(json_get_int(j, key, where, out, e));
    if (*out < 1 || *out > SIZE_MAX_ALLOWED)
        FAIL(e, TARE_E_RANGE, "%s: \"%s\" is %lld: must be 1 to %lld", where, key, (long long)*out, (long long)SIZE_MAX_ALLOWED);
    return TARE_OK;
}

/* Reads a positive number; *out keeps its value if the key is missing. */
static tare_status get_factor(const json_t *j, const char *key, const char *where, double *out, struct err *e)
{
    if (!value_of(j, key)) return TARE_OK;
    TRY(json_get_double(j, key, where, out, e));
    if (!(*out >= 1e-12 && *out <= 1e12)) /* fp32 holds it, neither as 0 nor as infinity */
        FAIL(e, TARE_E_RANGE, "%s: \"%s\" is %g: must be from 1e-12 to 1e12", where, key, *out);
    return TARE_OK;
}

const char *hf_family(enum arch arch, const char **class_name)
{
    if (class_name) *class_name = FAMILIES[arch].class_name;
    return FAMILIES[arch].type;
}

static tare_status get_arch(const json_t *j, const char *where, enum arch *out, struct err *e)
{
    const char *type = json_text_or(j, "model_type", "");
    char list[200] = "";
    for (int a = 0; a < N_FAMILIES; a++) {
        if (!strcmp(type, FAMILIES[a].type)) {
            *out = (enum arch)a;
            return TARE_OK;
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", a ? ", " : "", FAMILIES[a].type);
    }
    FAIL(e, TARE_E_UNSUPPORTED, "%s: model_type \"%.100s\" is not supported; supported: %s", where, type, list);
}

/* ---- unsupported settings */

static tare_status refuse_true(const json_t *j, const char *key, const char *where, struct err *e)
{
    if (json_is_true(json_object_get(j, key)))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: \"%s\": true is not supported; supported: false", where, key);
    return TARE_OK;
}

static tare_status refuse_value(const json_t *j, const char *key, const char *where, struct err *e)
{
    if (value_of(j, key))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: \"%s\": %g is not supported; supported: null", where, key, json_double_or(j, key, NAN));
    return TARE_OK;
}

static tare_status refuse_quantized(const json_t *j, const char *where, struct err *e)
{
    const json_t *q = value_of(j, "quantization_config");
    if (!q) return TARE_OK;
    FAIL(
        e, TARE_E_UNSUPPORTED,
        "%s: a quantized checkpoint (\"quantization_config\", quant_method \"%.60s\") is not supported; use the original weights in F32, BF16 or F16",
        where, json_text_or(q, "quant_method", "?"));
}

static tare_status check_supported(const json_t *j, const struct family *f, const char *where, struct err *e)
{
    static const char *const GEMMA[] = {"final_logit_softcapping", "attn_logit_softcapping"};
    TRY(refuse_true(j, "use_sliding_window", where, e));
    TRY(refuse_true(j, "mlp_bias", where, e));
    TRY(refuse_true(j, "use_bidirectional_attention", where, e));
    if (!f->qkv_bias) TRY(refuse_true(j, "attention_bias", where, e));
    for (int i = 0; i < 2; i++) TRY(refuse_value(j, GEMMA[i], where, e));
    return refuse_quantized(j, where, e);
}

/* ---- activation */

static tare_status get_activation(const json_t *j, const struct family *f, const char *where, struct model_shape *s, struct err *e)
{
    const char *key = f->activation_key ? f->activation_key : "hidden_act",
               *name = json_text_or(j, key, f->activation_key ? "gelu_pytorch_tanh" : "silu");
    s->gelu = !strcmp(name, "gelu_pytorch_tanh");
    if (!s->gelu && strcmp(name, "silu") && strcmp(name, "swish"))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: %s \"%.100s\" is not supported; supported: silu, gelu_pytorch_tanh", where, key, name);
    return TARE_OK;
}

/* ---- rotary positions */

static tare_status get_llama3(const json_t *r, const char *where, struct rope_scaling *s, struct err *e)
{
    TRY(json_get_double(r, "factor", where, &s->factor, e));
    TRY(json_get_double(r, "low_freq_factor", where, &s->low, e));
    TRY(json_get_double(r, "high_freq_factor", where, &s->high, e));
    TRY(json_get_double(r, "original_max_position_embeddings", where, &s->original, e));
    if (!(s->factor >= 1) || !(s->low > 0) || !(s->high > s->low) || !(s->original >= 1))
        FAIL(
            e, TARE_E_RANGE,
            "%s: llama3 rope scaling needs factor >= 1, 0 < low_freq_factor < high_freq_factor, original_max_position_embeddings >= 1",
            where);
    return TARE_OK;
}

static tare_status get_scaling(const json_t *r, const char *where, struct rope_scaling *s, struct err *e)
{
    enum { DEFAULT, LINEAR, LLAMA3, KINDS };
    static const char *const KIND[KINDS] = {[DEFAULT] = "default", [LINEAR] = "linear", [LLAMA3] = "llama3"};
    const char *type = json_text_or(r, "rope_type", json_text_or(r, "type", KIND[DEFAULT]));
    int kind = 0;
    while (kind < KINDS && strcmp(type, KIND[kind])) kind++;
    if (kind == KINDS)
        FAIL(e, TARE_E_UNSUPPORTED, "%s: rope scaling \"%.100s\" is not supported; supported: default, linear, llama3", where,
             type);
    if (kind == LLAMA3) return get_llama3(r, where, s, e);
    if (kind == LINEAR) TRY(json_get_double(r, "factor", where, &s->factor, e));
    if (kind == LINEAR && !(s->factor >= 1))
        FAIL(e, TARE_E_RANGE, "%s: linear rope scaling needs factor >= 1, not %g", where, s->factor);
    return TARE_OK;
}

/* Reads how many of the first elements of a head are rotated, if not all. */
static tare_status get_rotary_dim(const json_t *j, const json_t *r, const struct family *f, const char *where,
                                  struct model_shape *s, struct err *e)
{
    double part = 1;
    TRY(get_factor(j, "partial_rotary_factor", where, &part, e));
    TRY(get_factor(r, "partial_rotary_factor", where, &part, e));
    if (!(part < 1 || part > 1)) return TARE_OK;
    if (!f->partial_rotary)
        FAIL(e, TARE_E_UNSUPPORTED, "%s: \"partial_rotary_factor\": %g is not supported with model_type \"%s\"; supported: 1",
             where, part, f->type);
    s->rotary_dim = part < 1 ? (int64_t)((double)s->head_dim * part) : 0;
    if (s->rotary_dim < 2 || s->rotary_dim % 2)
        FAIL(e, TARE_E_RANGE,
             "%s: \"partial_rotary_factor\" %g rotates %lld of the %lld elements of a head: must be an even number of them", where,
             part, (long long)s->rotary_dim, (long long)s->head_dim);
    return TARE_OK;
}

/* Reads the separate positions of layers with a window: rope_parameters.sliding_attention, or
 * rope_local_base_freq. */
static tare_status get_local(const json_t *j, const json_t *local, const char *where, struct model_shape *s, struct err *e)
{
    struct rope_scaling scaling = {0};
    s->local_theta = 10000;
    TRY(get_factor(j, "rope_local_base_freq", where, &s->local_theta, e));
    if (!local) return TARE_OK;
    TRY(get_factor(local, "rope_theta", where, &s->local_theta, e));
    TRY(get_scaling(local, where, &scaling, e));
    if (scaling.factor > 0)
        FAIL(e, TARE_E_UNSUPPORTED,
             "%s: rope_parameters.sliding_attention: rope_type \"%.60s\" is not supported; supported: default", where,
             json_text_or(local, "rope_type", ""));
    return TARE_OK;
}

static tare_status get_rope(const json_t *j, const struct family *f, const char *where, struct model_shape *s, struct err *e)
{
    const json_t *r = value_of(j, "rope_parameters"), *full = value_of(r, "full_attention");
    if (f->windows == WINDOW_BY_LAYER) TRY(get_local(j, value_of(r, "sliding_attention"), where, s, e));
    if (full) r = full;
    if (!r) r = value_of(j, "rope_scaling");
    s->rope_theta = json_double_or(j, "rope_theta", f->rope_theta > 0 ? f->rope_theta : 10000);
    if (r) {
        if (!json_is_object(r)) FAIL(e, TARE_E_INVALID, "%s: rope_parameters or rope_scaling must be an object", where);
        s->rope_theta = json_double_or(r, "rope_theta", s->rope_theta);
        TRY(get_scaling(r, where, &s->scaling, e));
    }
    TRY(get_rotary_dim(j, r, f, where, s, e));
    if (!(s->rope_theta > 1)) FAIL(e, TARE_E_RANGE, "%s: rope_theta is %g: must be above 1", where, s->rope_theta);
    if (f->windows == WINDOW_BY_LAYER && !(s->local_theta > 1))
        FAIL(e, TARE_E_RANGE, "%s: rope_local_base_freq is %g: must be above 1", where, s->local_theta);
    return TARE_OK;
}

/* ---- layers that differ */

static void add_layer(struct layer_set *set, int64_t l)
{
    set->bits[l / 64] |= UINT64_C(1) << (l % 64);
}

static tare_status check_pattern(const struct model_shape *s, const json_t *list, const char *key, const char *where, struct err *e)
{
    if (list && (!json_is_array(list) || (int64_t)json_array_size(list) < s->layers))
        FAIL(e, TARE_E_SHAPE, "%s: \"%s\" must be a list with an entry for each of the %lld layers", where, key,
             (long long)s->layers);
    if (s->layers > LAYER_SET)
        FAIL(e, TARE_E_RANGE, "%s: num_hidden_layers is %lld; with layers that differ (\"%s\") at most %d are supported", where,
             (long long)s->layers, key, LAYER_SET);
    return TARE_OK;
}

/* Reads no_rope_layers: 1 with positions, 0 without. If it is missing, every
 * no_rope_layer_interval-th layer is without. */
static tare_status get_no_rope(const json_t *j, const char *where, struct model_shape *s, struct err *e)
{
    const json_t *list = value_of(j, "no_rope_layers");
    int64_t interval = 4;
    TRY(check_pattern(s, list, "no_rope_layers", where, e));
    if (value_of(j, "no_rope_layer_interval")) TRY(get_size(j, "no_rope_layer_interval", where, &interval, e));
    for (int64_t l = 0; l < s->layers; l++) {
        const json_t *v = list ? json_array_get(list, (size_t)l) : NULL;
        const json_int_t with = v ? json_integer_value(v) : (l + 1) % interval != 0;
        if (v && (!json_is_integer(v) || with < 0 || with > 1))
            FAIL(e, TARE_E_INVALID, "%s: no_rope_layers: the entry of layer %lld must be 1 (rotary positions) or 0 (none)", where,
                 (long long)l);
        if (!with) add_layer(&s->no_rope, l);
    }
    return TARE_OK;
}

/* Reads layer_types. If it is missing, all but every sliding_window_pattern-th layer have a
 * window. */
static tare_status get_layer_types(const json_t *j, const struct family *f, const char *where, struct model_shape *s, struct err *e)
{
    const json_t *list = value_of(j, "layer_types");
    const bool slides = f->windows == WINDOW_BY_LAYER;
    int64_t pattern = 6;
    if (slides) TRY(check_pattern(s, list, "layer_types", where, e));
    if (slides && value_of(j, "sliding_window_pattern")) TRY(get_size(j, "sliding_window_pattern", where, &pattern, e));
    for (int64_t l = 0; slides && !list && l < s->layers; l++)
        if ((l + 1) % pattern) add_layer(&s->sliding, l);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        const bool sliding = slides && name && !strcmp(name, "sliding_attention");
        if (!sliding && (!name || strcmp(name, "full_attention")))
            FAIL(e, TARE_E_UNSUPPORTED,
                 "%s: layer_types: \"%.100s\" is not supported with model_type \"%s\"; supported: full_attention%s", where,
                 name ? name : "?", f->type, slides ? ", sliding_attention" : "");
        if (sliding && (int64_t)i < s->layers) add_layer(&s->sliding, (int64_t)i);
    }
    return TARE_OK;
}

static tare_status get_window(const json_t *j, const struct family *f, const char *where, struct model_shape *s, struct err *e)
{
    const json_t *v = json_object_get(j, "sliding_window");
    TRY(get_layer_types(j, f, where, s, e));
    if (f->windows == WINDOW_NONE) return TARE_OK;
    if (json_is_null(v) && f->windows == WINDOW_BY_LAYER)
        FAIL(e, TARE_E_INVALID, "%s: \"sliding_window\" is null; model_type \"%s\" needs a number of positions", where, f->type);
    if (json_is_null(v)) return TARE_OK;
    s->window = (int64_t)f->window;
    if (v) TRY(get_size(j, "sliding_window", where, &s->window, e));
    if (f->windows == WINDOW_BY_LAYER || !s->window) return TARE_OK;
    TRY(check_pattern(s, NULL, "sliding_window", where, e));
    for (int64_t l = 0; l < s->layers; l++) add_layer(&s->sliding, l);
    return TARE_OK;
}

/* ---- factors: 0 in the shape means 1 */

static tare_status get_multiplier(const json_t *j, const char *key, const char *where, double *out, struct err *e)
{
    *out = 1;
    TRY(get_factor(j, key, where, out, e));
    if (!(*out < 1 || *out > 1)) *out = 0;
    return TARE_OK;
}

static tare_status get_multipliers(const json_t *j, const struct family *f, const char *where, struct model_shape *s, struct err *e)
{
    double scalar = f->query_scalar;
    if (f->embed_sqrt) s->embed_scale = (double)(float)sqrt((double)s->hidden);
    if (f->query_scalar > 0) {
        TRY(get_factor(j, "query_pre_attn_scalar", where, &scalar, e));
        s->attention_scale = 1 / sqrt(scalar);
    }
    if (!f->multipliers) return TARE_OK;
    TRY(get_multiplier(j, "embedding_multiplier", where, &s->embed_scale, e));
    TRY(get_multiplier(j, "residual_multiplier", where, &s->residual_scale, e));
    TRY(get_multiplier(j, "logits_scaling", where, &s->logits_divisor, e));
    s->attention_scale = 1; /* not 1/sqrt(head_dim) */
    return get_factor(j, "attention_multiplier", where, &s->attention_scale, e);
}

/* ---- sizes */

static tare_status get_heads(const json_t *j, const struct family *f, const char *where, struct model_shape *s, struct err *e)
{
    s->kv_heads = s->heads;
    if (!f->any_kv_heads || value_of(j, "num_key_value_heads")) TRY(get_size(j, "num_key_value_heads", where, &s->kv_heads, e));
    s->head_dim = f->head_dim ? f->head_dim : s->hidden / s->heads;
    if (value_of(j, "head_dim"))
        TRY(get_size(j, "head_dim", where, &s->head_dim, e));
    else if (!f->head_dim && s->hidden % s->heads)
        FAIL(e, TARE_E_SHAPE, "%s: hidden_size %lld must be a multiple of num_attention_heads %lld if head_dim is missing", where,
             (long long)s->hidden, (long long)s->heads);
    if (s->heads % s->kv_heads)
        FAIL(e, TARE_E_SHAPE, "%s: num_attention_heads %lld must be a multiple of num_key_value_heads %lld", where,
             (long long)s->heads, (long long)s->kv_heads);
    if (s->head_dim % 2) FAIL(e, TARE_E_SHAPE, "%s: head_dim %lld must be even", where, (long long)s->head_dim);
    return TARE_OK;
}

static tare_status get_sizes(const json_t *j, const struct family *f, const char *where, struct model_shape *s, struct err *e)
{
    TRY(get_size(j, "vocab_size", where, &s->vocab, e));
    TRY(get_size(j, "hidden_size", where, &s->hidden, e));
    TRY(get_size(j, "num_hidden_layers", where, &s->layers, e));
    TRY(get_size(j, "num_attention_heads", where, &s->heads, e));
    TRY(get_size(j, "intermediate_size", where, &s->intermediate, e));
    TRY(get_size(j, "max_position_embeddings", where, &s->max_position, e));
    TRY(get_heads(j, f, where, s, e));
    if (s->layers > 100000 || s->heads > 100000 || s->head_dim > 100000)
        FAIL(e, TARE_E_RANGE, "%s: more than 100000 layers, heads or head_dim", where);
    TRY(json_get_double(j, "rms_norm_eps", where, &s->rms_eps, e));
    if (!(s->rms_eps >= 0 && s->rms_eps < 1)) FAIL(e, TARE_E_RANGE, "%s: rms_norm_eps is %g: must be 0 to 1", where, s->rms_eps);
    return TARE_OK;
}

tare_status hf_shape(const json_t *j, const char *where, struct model_shape *s, struct err *e)
{
    *s = (struct model_shape){0};
    if (!json_is_object(j)) FAIL(e, TARE_E_CORRUPT, "%s: is not a JSON object", where);
    TRY(get_arch(j, where, &s->arch, e));
    const struct family *f = &FAMILIES[s->arch];
    TRY(check_supported(j, f, where, e));
    TRY(get_activation(j, f, where, s, e));
    TRY(get_sizes(j, f, where, s, e));
    TRY(get_rope(j, f, where, s, e));
    if (f->no_rope) TRY(get_no_rope(j, where, s, e));
    TRY(get_window(j, f, where, s, e));
    TRY(get_multipliers(j, f, where, s, e));
    s->tied = json_bool_or(j, "tie_word_embeddings", f->tied);
    s->qkv_bias = f->qkv_bias;
    s->qk_norm = f->qk_norm;
    s->norms = f->norms;
    s->norm_plus_one = f->norm_plus_one;
    s->fused = f->fused;
    return TARE_OK;
}
