#include "model/adapter.h"

#include "base/fs.h"
#include "base/json.h"
#include "model/hf_config.h"
#include "model/layout.h"
#include "model/safetensors.h"
#include "model/shards.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char CONFIG[] = "adapter_config.json", WEIGHTS[] = "adapter_model.safetensors", BASE[] = "base.json";

bool adapter_is(const char *folder)
{
    char path[FS_PATH];
    return !fs_join(path, folder, CONFIG, NULL) && fs_exists(path);
}

/* ---- adapter_config.json */

static bool is_empty(const json_t *v)
{
    return !v || json_is_null(v) || json_is_false(v) ||
           ((json_is_object(v) || json_is_array(v)) && !json_object_size(v) && !json_array_size(v));
}

/* Refuses settings that change the computation, unless they have the supported value. */
static tare_status refuse_others(const json_t *j, const char *path, struct err *e)
{
    static const char *const OFF[] = {"use_dora",
                                      "rank_pattern",
                                      "alpha_pattern",
                                      "layers_to_transform",
                                      "modules_to_save",
                                      "fan_in_fan_out",
                                      "lora_bias",
                                      "layer_replication",
                                      "loftq_config",
                                      "target_parameters",
                                      "exclude_modules",
                                      "use_qalora",
                                      "use_bdlora",
                                      "kasa_config",
                                      "velora_config",
                                      "monteclora_config",
                                      "arrow_config",
                                      "megatron_config",
                                      "trainable_token_indices",
                                      "alora_invocation_tokens"};
    /* other values change the base's weights */
    static const char *const STARTS[] = {"gaussian", "eva", "orthogonal"};
    const char *start = json_text_or(j, "init_lora_weights", STARTS[0]);
    size_t known = 0;
    const char *type = json_text_or(j, "peft_type", "");
    if (strcmp(type, "LORA")) FAIL(e, TARE_E_UNSUPPORTED, "%s: peft_type = \"%s\": only LORA is supported", path, type);
    if (strcmp(json_text_or(j, "bias", "none"), "none"))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: bias = \"%s\": only \"none\" is supported", path, json_text_or(j, "bias", ""));
    for (size_t i = 0; i < sizeof OFF / sizeof *OFF; i++)
        if (!is_empty(json_object_get(j, OFF[i])))
            FAIL(e, TARE_E_UNSUPPORTED, "%s: %s is set: adapters with it are not supported", path, OFF[i]);
    while (known < sizeof STARTS / sizeof *STARTS && strcmp(start, STARTS[known])) known++;
    if (known == sizeof STARTS / sizeof *STARTS)
        FAIL(e, TARE_E_UNSUPPORTED,
             "%s: init_lora_weights = \"%s\" changes the base; let peft convert the adapter to plain LoRA first", path, start);
    return TARE_OK;
}

/* Reads the targets from the tensors, whose names end in "q_proj.lora_A.weight". */
static tare_status targets_of_tensors(const char *folder, unsigned *out, struct err *e)
{
    static const char END[] = ".lora_A.weight";
    char path[FS_PATH], name[64];
    OWNED(safetensors_close) struct safetensors file = {0};
    TRY(fs_join(path, folder, WEIGHTS, e));
    TRY(safetensors_open(path, &file, e));
    for (int64_t i = 0; i < file.n_tensors; i++) {
        const char *all = file.tensors[i].name;
        unsigned more;
        if (!str_ends_with(all, END)) continue;
        const char *stop = all + strlen(all) - strlen(END), *begin = stop;
        while (begin > all && begin[-1] != '.') begin--;
        snprintf(name, sizeof name, "%.*s", (int)(stop - begin), begin);
        if (config_lora_targets(name, all, &more, e)) return err_prefix(e, "%s", path);
        *out |= more;
    }
    if (!*out) FAIL(e, TARE_E_INVALID, "%s: missing tensors *%s, which name the targets", path, END);
    return TARE_OK;
}

/* Reads names or whole paths ("model.layers.0.mlp.up_proj"), which the tensors then confirm for
 * every layer. Any other text is a regular expression: peft has made a tensor for each match. */
static tare_status read_targets(const json_t *j, const char *folder, const char *path, unsigned *out, struct err *e)
{
    const json_t *list = json_object_get(j, "target_modules"), *one;
    char where[FS_PATH + 32];
    struct err unused = {0};
    size_t i;
    snprintf(where, sizeof where, "%s: target_modules", path);
    *out = 0;
    if (json_is_string(list) && !config_lora_targets(json_string_value(list), where, out, &unused)) return TARE_OK;
    *out = 0;
    if (json_is_string(list)) return targets_of_tensors(folder, out, e);
    if (!json_is_array(list)) FAIL(e, TARE_E_INVALID, "%s: must be a list of names, \"all-linear\" or a regular expression", where);
    json_array_foreach(list, i, one)
    {
        const char *name = json_is_string(one) ? json_string_value(one) : "", *dot = strrchr(name, '.');
        unsigned more;
        if (strchr(name, '/')) FAIL(e, TARE_E_INVALID, "%s: '%.200s' is not the name of a layer", where, name);
        TRY(config_lora_targets(dot ? dot + 1 : name, where, &more, e));
        *out |= more;
    }
    if (!*out) FAIL(e, TARE_E_INVALID, "%s is empty", where);
    return TARE_OK;
}

static tare_status read_spec(const json_t *j, const char *folder, const char *path, struct lora_spec *out, struct err *e)
{
    TRY(refuse_others(j, path, e));
    TRY(json_get_int(j, "r", path, &out->rank, e));
    TRY(json_get_double(j, "lora_alpha", path, &out->alpha, e));
    /* the scale is computed in single precision */
    if (out->rank < 1 || out->rank > 1 << 20 || !(fabs(out->alpha) <= (double)FLT_MAX))
        FAIL(e, TARE_E_RANGE, "%s: r = %lld, lora_alpha = %g: r must be from 1 to %d, lora_alpha at most %.9g in magnitude", path,
             (long long)out->rank, out->alpha, 1 << 20, (double)FLT_MAX);
    const json_t *rslora = json_object_get(j, "use_rslora");
    if (rslora && !json_is_boolean(rslora) && !json_is_null(rslora))
        FAIL(e, TARE_E_INVALID, "%s: use_rslora must be true or false", path);
    out->rslora = json_is_true(rslora);
    return read_targets(j, folder, path, &out->targets, e);
}

tare_status adapter_config(const char *folder, const struct model_config *c, struct lora_spec *spec, char *base, struct err *e)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *j = NULL;
    TRY(fs_join(path, folder, CONFIG, e));
    TRY(json_read_file(path, &j, e));
    const char *named = c && c->base && *c->base ? c->base : json_text_or(j, "base_model_name_or_path", "");
    TRY(read_spec(j, folder, path, spec, e));
    TRY(fs_join(base, named, "", e));
    if (!fs_is_dir(named))
        FAIL(e, TARE_E_NOT_FOUND, "%s: the folder of its base, \"%s\", does not exist; set model.base=FOLDER", path, named);
    return TARE_OK;
}

tare_status adapter_base(const char *folder, const struct model_config *c, char *out, struct err *e)
{
    struct lora_spec spec;
    return adapter_is(folder) ? adapter_config(folder, c, &spec, out, e) : fs_join(out, folder, "", e);
}

tare_status adapter_check_base(const struct model_config *c, struct err *e)
{
    if (!c->base || !*c->base || !c->path || !fs_is_dir(c->path) || adapter_is(c->path)) return TARE_OK;
    FAIL(
        e, TARE_E_CONFIG,
        "model.base = %s, but model.path = %s is a whole model (it has no %s), which has no base; remove model.base, or set model.path to the folder of an adapter",
        c->base, c->path, CONFIG);
}

tare_status adapter_tokenizer(const char *folder, const struct model_config *c, char *out, struct err *e)
{
    char path[FS_PATH];
    TRY(fs_join(path, folder, "tokenizer.json", e));
    return fs_exists(path) ? fs_join(out, folder, "", e) : adapter_base(folder, c, out, e);
}

static json_t *targets_json(unsigned targets)
{
    json_t *list = json_array();
    bool bad = !list;
    for (int i = 0; i < LORA_KINDS; i++)
        if (targets >> i & 1) json_add(list, &bad, json_string(LORA_KIND[i].name));
    return json_unless(bad, list);
}

static tare_status write_json(json_t *made, const char *folder, const char *file, struct err *e)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *j = made;
    OWNED(str_free) struct str text = {0};
    TRY(fs_join(path, folder, file, e));
    if (!j) FAIL(e, TARE_E_NOMEM, "%s: cannot be written; are the paths valid UTF-8?", path);
    TRY(json_print_lines(j, &text, e));
    return fs_write_atomic(path, text.data, text.size, e);
}

/* Writes base.json, which check_base compares. */
static tare_status write_base(const struct model *m, const char *folder, const char *base, struct err *e)
{
    struct hf_value values[HF_VALUES];
    char hash[17];
    json_t *config = json_object();
    bool bad = !config;
    hf_config_values(&m->shape, values);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)m->lora->base_hash);
    for (int i = 0; i < HF_VALUES; i++)
        if (i < HF_VALUES_ALWAYS || values[i].value != 0) json_put(config, &bad, values[i].key, json_real(values[i].value));
    return write_json(json_pack("{s:s, s:s, s:o}", "path", base, "xxh3", hash, "config", json_unless(bad, config)), folder, BASE,
                      e);
}

/* Writes the base as an absolute path, because an adapter is opened from other folders too. */
static tare_status write_configs(const struct model *m, const char *folder, struct err *e)
{
    const struct lora_spec *s = &m->lora->spec;
    char base[PATH_MAX];
    if (!realpath(m->lora->base, base)) {
        if (!fs_is_answer(errno)) FAIL(e, TARE_E_IO, "%s: %s", m->lora->base, strerror(errno));
        snprintf(base, sizeof base, "%s", m->lora->base);
    }
    json_t *alpha = fabs(s->alpha) < 1e9 && s->alpha == floor(s->alpha) ? json_integer((json_int_t)s->alpha) : json_real(s->alpha);
    TRY(write_json(json_pack("{s:s, s:s, s:s, s:I, s:o, s:f, s:s, s:b, s:b, s:b, s:b, s:b, s:o}", "peft_type", "LORA", "task_type",
                             "CAUSAL_LM", "base_model_name_or_path", base, "r", (json_int_t)s->rank, "lora_alpha", alpha,
                             "lora_dropout", 0.0, "bias", "none", "use_rslora", (int)s->rslora, "use_dora", 0, "fan_in_fan_out", 0,
                             "inference_mode", 1, "init_lora_weights", 1, "target_modules", targets_json(s->targets)),
                   folder, CONFIG, e));
    return write_base(m, folder, base, e);
}

/* ---- weights */

static const char RIGHT_BASE[] =
    "Set model.base=FOLDER to the right base (model.path when resuming training), or remove base.json to use this base anyway";

static tare_status check_hash(const struct model *m, const json_t *j, const char *path, struct err *e)
{
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)m->lora->base_hash);
    if (strcmp(json_text_or(j, "xxh3", ""), hash))
        FAIL(e, TARE_E_CONFIG, "%s: the adapter was trained on a base with hash %s (%s); %s has %s. %s", path,
             json_text_or(j, "xxh3", "(none)"), json_text_or(j, "path", "?"), m->lora->base, hash, RIGHT_BASE);
    return TARE_OK;
}

static tare_status check_values(const struct model *m, const json_t *j, const char *path, struct err *e)
{
    struct hf_value values[HF_VALUES];
    const json_t *config = json_object_get(j, "config");
    hf_config_values(&m->shape, values);
    for (int i = 0; i < HF_VALUES; i++) {
        const json_t *was = json_object_get(config, values[i].key);
        char text[32] = "(not written there)";
        if (json_is_number(was) && json_number_value(was) == values[i].value) continue;
        if (!was && i >= HF_VALUES_ALWAYS && values[i].value == 0) continue;
        if (json_is_number(was)) snprintf(text, sizeof text, "%.9g", json_number_value(was));
        FAIL(e, TARE_E_CONFIG, "%s: the adapter was trained on a base with %s = %s (%s); for %s it is %.9g. %s", path,
             values[i].key, text, json_text_or(j, "path", "?"), m->lora->base, values[i].value, RIGHT_BASE);
    }
    return TARE_OK;
}

/* Refuses another base, with which the adapter would compute silently wrong results. */
static tare_status check_base(const struct model *m, const char *folder, struct err *e)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *j = NULL;
    TRY(fs_join(path, folder, BASE, e));
    if (!fs_exists(path)) return TARE_OK; /* peft writes no base.json */
    TRY(json_read_file(path, &j, e));
    TRY(check_hash(m, j, path, e));
    return check_values(m, j, path, e);
}

static tare_status check_spec(const struct model *m, const char *folder, struct err *e)
{
    const struct lora_spec *mine = &m->lora->spec;
    const struct model_config here = {.base = m->lora->base};
    struct lora_spec s = {0};
    char base[FS_PATH];
    if (!adapter_is(folder))
        FAIL(e, TARE_E_CONFIG, "%s: contains a whole model, but [lora] is set; a resumed run cannot change that", folder);
    TRY(adapter_config(folder, &here, &s, base, e));
    TRY(lora_targets(&m->shape, s.targets, folder, &s.targets, e));
    if (s.rank != mine->rank || s.alpha != mine->alpha || s.rslora != mine->rslora || s.targets != mine->targets)
        FAIL(
            e, TARE_E_CONFIG,
            "%s: the adapter has rank %lld and alpha %g, but [lora] sets rank %lld, alpha %g, or other targets or rslora; a resumed run cannot change them",
            folder, (long long)s.rank, s.alpha, (long long)mine->rank, mine->alpha);
    return TARE_OK;
}

/* Refuses tensors that are not in the adapter: they would be ignored silently. */
static tare_status check_names(const struct model *m, const struct safetensors *file, const char *path, struct err *e)
{
    for (int64_t i = 0; i < file->n_tensors; i++)
        if (!layout_has(m, file->tensors[i].name))
            FAIL(e, TARE_E_UNSUPPORTED, "%s: unknown tensor %s, which is not part of the adapter of its adapter_config.json", path,
                 file->tensors[i].name);
    return TARE_OK;
}

tare_status adapter_check(const struct model *m, const char *folder, struct err *e)
{
    TRY(check_spec(m, folder, e));
    return check_base(m, folder, e);
}

tare_status adapter_read(struct model *m, const char *folder, struct err *e)
{
    char path[FS_PATH];
    OWNED(safetensors_close) struct safetensors file = {0};
    TRY(adapter_check(m, folder, e));
    TRY(fs_join(path, folder, WEIGHTS, e));
    TRY(safetensors_open(path, &file, e));
    TRY(check_names(m, &file, path, e));
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        OWNED(mem_free_at) float *staging = NULL;
        TRY(mem_new(t->rows * t->cols * (int64_t)sizeof *staging, (void **)&staging, e));
        TRY(safetensors_read(&file, t->name, (struct st_extent){2, t->rows, t->cols}, staging, e));
        shards_upload(m, t->offset, staging, t->rows * t->cols);
    }
    return TARE_OK;
}

tare_status adapter_open(const char *folder, struct safetensors *out, struct err *e)
{
    char path[FS_PATH];
    if (!adapter_is(folder)) return safetensors_open_folder(folder, out, e);
    TRY(fs_join(path, folder, WEIGHTS, e));
    return safetensors_open(path, out, e);
}

tare_status adapter_fetch(struct model *m, float *host, struct err *e)
{
    for (int64_t u = shards_unit_first(m); u < shards_unit_end(m); u++) {
        const int64_t bytes = m->unit_size[u] * (int64_t)sizeof *host;
        float *to = host + m->unit_begin[u];
        const float *unit;
        TRY(shards_unit_weights(m, u, &unit, e));
        kernels_at(&m->ctx, "saving the weights", -1);
        const float *here = model_from_backend(m, to, unit, bytes);
        TRY(model_finish(m, e));
        if (here != to) memcpy(to, here, (size_t)bytes);
    }
    return TARE_OK;
}

static tare_status write_weights(const struct model *m, const char *folder, const float *host, enum dtype dtype, struct err *e)
{
    char path[FS_PATH];
    OWNED(mem_free_at) struct st_source *sources = NULL;
    TRY(fs_join(path, folder, WEIGHTS, e));
    TRY(mem_new(m->n_tensors * (int64_t)sizeof *sources, (void **)&sources, e));
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        sources[i] = (struct st_source){.name = t->name, .rank = 2, .shape = {t->rows, t->cols}, .data = host + t->offset};
    }
    return safetensors_write(path, sources, m->n_tensors, dtype, e);
}

tare_status adapter_write(struct model *m, const char *folder, enum dtype dtype, struct err *e)
{
    OWNED(mem_free_at) float *host = NULL;
    TRY(mem_new(m->n_params * (int64_t)sizeof *host, (void **)&host, e));
    TRY(adapter_fetch(m, host, e));
    if (!m->rank) TRY(write_weights(m, folder, host, dtype, e));
    if (!m->rank) TRY(write_configs(m, folder, e));
    return TARE_OK;
}
