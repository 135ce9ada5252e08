/* Reads a BERT folder: the kind of the model, and its weights. */
#include "bert.h"
#include "wordpiece.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static tare_status read_json(const char *folder, const char *name, int needed, json_t **out, tare_error *error)
{
    char path[PATH_SIZE];
    json_error_t bad;
    *out = NULL;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return tare_fail(error, TARE_E_INVALID, "%s: path too long", folder);
    if (!needed && access(path, F_OK)) return TARE_OK;
    *out = json_load_file(path, 0, &bad);
    return *out ? TARE_OK
                : tare_fail(error, access(path, F_OK) ? TARE_E_NOT_FOUND : TARE_E_CORRUPT, "%s: line %d: %s", path, bad.line,
                            bad.text);
}

static tare_status size_of(const json_t *config, const char *key, int64_t most, int64_t *out, tare_error *error)
{
    const json_t *v = json_object_get(config, key);
    *out = json_integer_value(v);
    if (!json_is_integer(v) || *out < 1 || *out > most)
        return tare_fail(error, TARE_E_CONFIG, "config.json: %s is %s; 1 to %lld is possible", key,
                         json_is_integer(v) ? "out of range" : "missing", (long long)most);
    return TARE_OK;
}

static tare_status expect_tensor(const json_t *config, const char *key, const char *wanted, tare_error *error)
{
    const json_t *v = json_object_get(config, key);
    if (!v || !strcmp(json_is_string(v) ? json_string_value(v) : "?", wanted)) return TARE_OK;
    return tare_fail(error, TARE_E_UNSUPPORTED, "config.json: %s is %s; only %s is understood", key,
                     json_is_string(v) ? json_string_value(v) : "no text", wanted);
}

static tare_status read_config(struct bert *b, const json_t *c, tare_error *error)
{
    tare_status s = expect_tensor(c, "model_type", "bert", error);
    if (!s) s = expect_tensor(c, "hidden_act", "gelu", error);
    if (!s) s = expect_tensor(c, "position_embedding_type", "absolute", error);
    if (!s) s = size_of(c, "hidden_size", 16384, &b->width, error);
    if (!s) s = size_of(c, "num_hidden_layers", 1000, &b->layers, error);
    if (!s) s = size_of(c, "num_attention_heads", 1024, &b->heads, error);
    if (!s) s = size_of(c, "intermediate_size", 65536, &b->inner, error);
    if (!s) s = size_of(c, "vocab_size", 10000000, &b->vocabulary, error);
    if (!s) s = size_of(c, "max_position_embeddings", 1000000, &b->positions, error);
    if (s) return s;
    const json_t *eps = json_object_get(c, "layer_norm_eps");
    b->eps = json_is_number(eps) ? (float)json_number_value(eps) : 1e-12f;
    if (b->width % b->heads || b->width % PANEL || b->inner % PANEL || (b->width / b->heads) % PANEL)
        return tare_fail(error, TARE_E_UNSUPPORTED,
                         "config.json: hidden_size %lld, %lld heads and intermediate_size %lld; widths must be multiples of %d",
                         (long long)b->width, (long long)b->heads, (long long)b->inner, PANEL);
    return TARE_OK;
}

/* Reads the pooling: modules.json and 1_Pooling of sentence-transformers. Without them: the mean.
 */
static tare_status read_modules(struct bert *b, const char *folder, tare_error *error)
{
    static const char *const KNOWN[] = {"Transformer", "Pooling", "Normalize"};
    json_t *modules, *pooling;
    tare_status s = read_json(folder, "modules.json", 0, &modules, error);
    if (s) return s;
    size_t i;
    const json_t *m;
    json_array_foreach(modules, i, m)
    {
        const char *type = json_string_value(json_object_get(m, "type")), *dot = type ? strrchr(type, '.') : NULL;
        int known = 0;
        for (size_t j = 0; j < sizeof KNOWN / sizeof *KNOWN; j++) known = known || (dot && !strcmp(dot + 1, KNOWN[j]));
        if (!known && !s)
            s = tare_fail(error, TARE_E_UNSUPPORTED, "modules.json: unknown module %s", type ? type : "without a type");
    }
    json_decref(modules);
    if (!s) s = read_json(folder, "1_Pooling/config.json", 0, &pooling, error);
    if (s || !pooling) return s;
    b->pool_cls = json_is_true(json_object_get(pooling, "pooling_mode_cls_token"));
    if (!b->pool_cls && !json_is_true(json_object_get(pooling, "pooling_mode_mean_tokens")))
        s = tare_fail(error, TARE_E_UNSUPPORTED, "1_Pooling/config.json: pools neither by the mean of tokens nor by [CLS]");
    json_decref(pooling);
    return s;
}

static tare_status read_length(struct bert *b, const char *folder, int64_t max_length, tare_error *error)
{
    json_t *config;
    const tare_status s = read_json(folder, "sentence_bert_config.json", 0, &config, error);
    if (s) return s;
    const int64_t said = json_integer_value(json_object_get(config, "max_seq_length"));
    json_decref(config);
    b->max_length = max_length ? max_length : said > 0 ? said : b->positions;
    if (b->max_length > b->positions)
        return tare_fail(error, TARE_E_RANGE, "max_length is %lld, and the model has %lld positions", (long long)b->max_length,
                         (long long)b->positions);
    return TARE_OK;
}

/* ---------------------------------------------------------------- weights */

struct loader {
    struct bert *b;
    const char *prefix; /* "" or "bert." */
    float *at;          /* position of the next floats */
    float *scratch;     /* [largest tensor] */
    tare_error *error;
    tare_status status; /* the first failure; later calls do nothing */
};

static const struct tensor *tensor_of(struct loader *l, int64_t rows, int64_t cols, const char *name)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", l->prefix, name);
    const struct tensor *t = safetensors_find(&l->b->file, full);
    if (!t) {
        l->status = tare_fail(l->error, TARE_E_CORRUPT, "%s: has no tensor %s", l->b->path, full);
    } else if (t->rank != (cols ? 2 : 1) || t->shape[0] != rows || (cols && t->shape[1] != cols)) {
        l->status = tare_fail(l->error, TARE_E_SHAPE, "%s: invalid shape of tensor %s: must be [%lld, %lld] as in config.json",
                              l->b->path, full, (long long)rows, (long long)cols);
        t = NULL;
    }
    return t;
}

static void read_floats(struct loader *l, int64_t rows, int64_t cols, const char *name, float *out)
{
    const struct tensor *t = l->status ? NULL : tensor_of(l, rows, cols, name);
    if (!t) return;
    l->status = tensor_floats(&l->b->file, t, out, l->error);
    for (int64_t i = 0; i < t->items && !l->status; i++)
        if (!isfinite(out[i]))
            l->status = tare_fail(l->error, TARE_E_NOT_FINITE, "%s: tensor %s has a NaN or an infinity", l->b->path, name);
    l->b->hash = bytes_hash(t->data, t->end - t->begin, l->b->hash);
}

static float *load_vector(struct loader *l, int64_t n, const char *name)
{
    float *to = l->at;
    l->at += n;
    read_floats(l, n, 0, name, to);
    return to;
}

/* Packs parts of n rows each, one below the other. */
static float *load_matrix(struct loader *l, int64_t n, int64_t k, const char *const *names, int parts)
{
    float *to = l->at;
    l->at += n * parts * k;
    for (int p = 0; p < parts; p++) read_floats(l, n, k, names[p], l->scratch + p * n * k);
    if (!l->status) bert_pack(to, l->scratch, k, n * parts, k, 0);
    return to;
}

static void read_layer(struct loader *l, int64_t index)
{
    struct bert *b = l->b;
    struct bert_layer *y = &b->layer[index];
    const int64_t c = b->width, f = b->inner;
    static const char *const PARTS[] = {"attention.self.query",       "attention.self.key", "attention.self.value",
                                        "attention.output.dense",     "intermediate.dense", "output.dense",
                                        "attention.output.LayerNorm", "output.LayerNorm"};
    char names[8][2][160];
    const char *weight[8], *bias[8];
    for (int i = 0; i < 8; i++) {
        snprintf(names[i][0], sizeof names[i][0], "encoder.layer.%lld.%s.weight", (long long)index, PARTS[i]);
        snprintf(names[i][1], sizeof names[i][1], "encoder.layer.%lld.%s.bias", (long long)index, PARTS[i]);
        weight[i] = names[i][0];
        bias[i] = names[i][1];
    }
    y->qkv = load_matrix(l, c, c, weight, 3);
    y->out = load_matrix(l, c, c, weight + 3, 1);
    y->up = load_matrix(l, f, c, weight + 4, 1);
    y->down = load_matrix(l, c, f, weight + 5, 1);
    y->qkv_bias = load_vector(l, c, bias[0]);
    load_vector(l, c, bias[1]);
    load_vector(l, c, bias[2]);
    y->out_bias = load_vector(l, c, bias[3]);
    y->up_bias = load_vector(l, f, bias[4]);
    y->down_bias = load_vector(l, c, bias[5]);
    y->gain1 = load_vector(l, c, weight[6]);
    y->bias1 = load_vector(l, c, bias[6]);
    y->gain2 = load_vector(l, c, weight[7]);
    y->bias2 = load_vector(l, c, bias[7]);
}

static void read_embeddings(struct loader *l)
{
    struct bert *b = l->b;
    const int64_t c = b->width;
    const struct tensor *types;
    b->words = tensor_of(l, b->vocabulary, c, "embeddings.word_embeddings.weight");
    if (!b->words) return;
    if (b->words->type != TENSOR_F32 && b->words->type != TENSOR_F16 && b->words->type != TENSOR_BF16) {
        l->status = tare_fail(l->error, TARE_E_UNSUPPORTED, "%s: word embeddings of type %s; F32, F16 and BF16 are understood",
                              b->path, b->words->type_name);
        return;
    }
    b->hash = bytes_hash(b->words->data, b->words->end - b->words->begin, b->hash);
    b->position = l->at;
    l->at += b->positions * c;
    read_floats(l, b->positions, c, "embeddings.position_embeddings.weight", b->position);
    char name[300];
    snprintf(name, sizeof name, "%sembeddings.token_type_embeddings.weight", l->prefix);
    types = l->status ? NULL : safetensors_find(&b->file, name);
    if (types && (types->rank != 2 || types->shape[0] < 1 || types->shape[1] != c))
        l->status = tare_fail(l->error, TARE_E_SHAPE, "%s: tensor %s does not have rows of %lld", b->path, name, (long long)c);
    if (types && !l->status) read_floats(l, types->shape[0], c, "embeddings.token_type_embeddings.weight", l->scratch);
    if (types)
        for (int64_t i = 0; !l->status && i < b->positions * c; i++) b->position[i] += l->scratch[i % c];
    b->gain = load_vector(l, c, "embeddings.LayerNorm.weight");
    b->bias = load_vector(l, c, "embeddings.LayerNorm.bias");
}

static tare_status read_weights(struct bert *b, tare_error *error)
{
    const int64_t c = b->width, f = b->inner;
    const int64_t floats = (b->positions + 2) * c + b->layers * (4 * c * c + 2 * c * f + 9 * c + f) + 64;
    const struct tensor *types = NULL;
    int64_t scratch = 3 * c * c > c * f ? 3 * c * c : c * f;
    struct loader l = {.b = b, .prefix = "", .error = error};
    if (!safetensors_find(&b->file, "embeddings.word_embeddings.weight")) l.prefix = "bert.";
    for (int64_t i = 0; i < b->file.n; i++)
        if (strstr(b->file.tensors[i].name, "token_type_embeddings")) types = &b->file.tensors[i];
    if (types && types->items > scratch) scratch = types->items;
    b->memory = aligned_alloc(64, (size_t)((floats * 4 + 63) / 64 * 64));
    b->layer = calloc((size_t)b->layers, sizeof *b->layer);
    l.scratch = malloc((size_t)scratch * sizeof *l.scratch);
    l.at = b->memory;
    if (!b->memory || !b->layer || !l.scratch) {
        free(l.scratch);
        return tare_fail(error, TARE_E_NOMEM, "no memory for %lld MB of weights", (long long)(floats * 4 >> 20));
    }
    for (int64_t i = 0; i < b->layers && !l.status; i++) read_layer(&l, i);
    if (!l.status) read_embeddings(&l);
    free(l.scratch);
    return l.status;
}

tare_status bert_open(struct bert *b, const char *folder, int64_t max_length, tare_error *error)
{
    json_t *config;
    *b = (struct bert){.kernels = bert_kernels_best()};
    tare_status s = read_json(folder, "config.json", 1, &config, error);
    if (!s) s = read_config(b, config, error);
    json_decref(config);
    if (!s) s = read_modules(b, folder, error);
    if (!s) s = read_length(b, folder, max_length, error);
    b->path = s ? NULL : malloc(PATH_SIZE);
    if (!s && !b->path) s = tare_fail(error, TARE_E_NOMEM, "no memory");
    if (!s) snprintf(b->path, PATH_SIZE, "%s/model.safetensors", folder);
    if (!s) s = safetensors_open(&b->file, b->path, error);
    if (!s) s = read_weights(b, error);
    if (s) bert_close(b);
    return s;
}

void bert_close(struct bert *b)
{
    if (b->file.map) safetensors_close(&b->file);
    free(b->path);
    free(b->memory);
    free(b->layer);
    *b = (struct bert){0};
}
