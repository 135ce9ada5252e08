#include "model/model.h"

#include "base/fs.h"
#include "base/rng.h"
#include "model/adapter.h"
#include "model/frozen.h"
#include "model/hf_config.h"
#include "model/layout.h"
#include "model/lora.h"
#include "model/positions.h"
#include "model/proof.h"
#include "model/safetensors.h"
#include "model/shards.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t SHARD_BYTES = 5000000000; /* shard size of transformers and the Hub */

static void *source_take(const void *ctx, int64_t bytes)
{
    const struct model *m = ctx;
    return m->k->backend->alloc(&m->ctx, bytes);
}

static void source_give(const void *ctx, void *p)
{
    const struct model *m = ctx;
    m->k->backend->release(&m->ctx, p);
}

static tare_status source_none(const void *ctx, const char *name, int64_t bytes, struct err *e)
{
    const struct model *m = ctx;
    return kernels_no_memory(m->k, &m->ctx, name, bytes, e);
}

static void source_zero(const void *ctx, void *p, int64_t bytes)
{
    const struct model *m = ctx;
    m->k->backend->zero(&m->ctx, p, bytes);
}

void model_set_deterministic(struct model *m, enum deterministic deterministic)
{
    m->ctx.batch_invariant = deterministic == DETERMINISTIC_BATCH_INVARIANT;
}

void model_arena_init(const struct model *m, struct arena *a, const char *name)
{
    arena_init_from(a, name, m->k->backend->device || m->k->backend->counts ? &m->source : NULL);
}

const void *model_to_backend(const struct model *m, void *staging, const void *host, int64_t bytes)
{
    return kernels_place(m->k, &m->ctx, staging, host, bytes);
}

const void *model_from_backend(const struct model *m, void *staging, const void *bytes_there, int64_t bytes)
{
    return kernels_fetch(m->k, &m->ctx, staging, bytes_there, bytes);
}

tare_status model_host_alloc(const struct model *m, int64_t bytes, void **out, struct err *e)
{
    *out = NULL;
    return kernels_staging_bytes(m->k, bytes) ? mem_new(bytes, out, e) : TARE_OK;
}

tare_status model_backend_alloc(const struct model *m, struct arena *a, int64_t bytes, void *out, struct err *e)
{
    void *staging = NULL;
    if (kernels_staging_bytes(m->k, bytes)) TRY(arena_push_tensor_raw(a, bytes, &staging, e));
    memcpy(out, &staging, sizeof staging);
    return TARE_OK;
}

tare_status model_finish(const struct model *m, struct err *e)
{
    return kernels_finish(m->k, &m->ctx, e);
}

static tare_status model_alloc(const struct kernels *k, struct pool *pool, struct model **out, struct err *e)
{
    TRY(mem_new(sizeof **out, (void **)out, e));
    struct model *m = *out;
    arena_init(&m->kernel_scratch, "kernel scratch");
    m->k = k;
    m->fault = (struct kernel_fault){.stage = "loading the model", .layer = -1};
    m->ctx = (struct kctx){.pool = pool, .scratch = &m->kernel_scratch, .fault = &m->fault};
    m->source = (struct arena_source){.take = source_take, .give = source_give, .zero = source_zero, .none = source_none, .ctx = m};
    m->ranks = 1;
    m->shard = SHARD_NONE;
    for (int i = 0; i < 4; i++) m->window[i].unit = -1;
    return TARE_OK;
}

static tare_status backend_new(const struct model *m, int64_t bytes, const char *what, void *out, struct err *e)
{
    void *p = m->k->backend->alloc(&m->ctx, bytes);
    if (!p) return kernels_no_memory(m->k, &m->ctx, what, bytes, e);
    memcpy(out, &p, sizeof p);
    return TARE_OK;
}

static tare_status weights_new(struct model *m, struct err *e)
{
    m->memory.parameters = (model_is_whole(m) ? m->n_params : m->n_own) * (int64_t)sizeof(float);
    TRY(backend_new(m, m->memory.parameters ? m->memory.parameters : 1, "the weights", &m->weights, e));
    return shards_new(m, e);
}

/* Refuses layers with a window where the kernels do not support them. A window over all positions
 * does not count. */
static tare_status check_windows(const struct model *m, struct err *e)
{
    if (!m->shape.window || m->shape.window >= m->shape.max_position || m->k->windows) return TARE_OK;
    FAIL(
        e, TARE_E_UNSUPPORTED,
        "config.json: \"sliding_window\": %lld is not supported with run.device = cuda; use run.device = cpu, or sequences that fit into the window: model.max_position_embeddings = %lld or less",
        (long long)m->shape.window, (long long)m->shape.window);
}

/* Allocates layout, weights (zero), windows and compute copy, once the shape and the ranks are
 * known. */
static tare_status whole_buffers(struct model *m, struct err *e)
{
    TRY(check_windows(m, e));
    TRY(layout_make(m, e));
    TRY(weights_new(m, e));
    TRY(positions_new(m, e));
    return compute_copy_new(m, e);
}

static tare_status base_buffers(struct model *m, const struct lora_spec *spec, struct err *e)
{
    TRY(check_windows(m, e));
    TRY(layout_make(m, e));
    TRY(lora_new(m, spec, e));
    TRY(positions_new(m, e));
    return compute_copy_new(m, e);
}

/* Replaces the base's layout with that of the adapters, once the base is read. */
static tare_status adapter_buffers(struct model *m, struct err *e)
{
    TRY(layout_make_adapters(m, e));
    TRY(weights_new(m, e));
    return lora_copy_new(m, e);
}

void model_free(struct model *m)
{
    if (!m) return;
    if (m->is_view) {
        mem_free(m);
        return;
    }
    lora_free(m);
    compute_copy_free(m);
    shards_free(m);
    if (m->weights) m->k->backend->release(&m->ctx, m->weights);
    positions_free(m);
    layout_free(m);
    free(m->config_json);
    arena_free(&m->kernel_scratch);
    mem_free(m);
}

void model_free_at(struct model **p)
{
    model_free(*p);
}

static void set_dtype(struct model *m, const struct model_config *c)
{
    m->dtype = c && c->dtype == PRECISION_BF16 ? DTYPE_BF16 : DTYPE_F32;
    m->int8 = c && c->weights == WEIGHTS_INT8;
}

/* Refuses int8 for a model whose weights are all trained. */
static tare_status refuse_int8(const struct model *m, struct err *e)
{
    if (!m->int8) return TARE_OK;
    FAIL(
        e, TARE_E_CONFIG,
        "model.weights = int8: cannot be trained, and all weights of this model are; set lora.rank to train adapters on them, or model.weights = dtype");
}

static enum dtype dtype_of(const struct st_tensor *t)
{
    return !t || !strcmp(t->dtype, "F32") ? DTYPE_F32 : !strcmp(t->dtype, "BF16") ? DTYPE_BF16 : DTYPE_F16;
}

static int64_t largest_tensor(const struct model *m)
{
    int64_t most = 0;
    for (int64_t i = 0; i < m->n_tensors; i++)
        if (m->tensors[i].rows * m->tensors[i].cols > most) most = m->tensors[i].rows * m->tensors[i].cols;
    return most;
}

tare_status model_read_weights(struct model *m, const char *folder, struct err *e)
{
    OWNED(safetensors_close) struct safetensors file = {0};
    OWNED(mem_free_at) float *staging = NULL;
    if (m->lora) return adapter_read(m, folder, e);
    TRY(safetensors_open_folder(folder, &file, e));
    TRY(mem_new(largest_tensor(m) * 4, (void **)&staging, e));
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        TRY(safetensors_read(&file, t->name, (struct st_extent){t->vector ? 1 : 2, t->vector ? t->cols : t->rows, t->cols}, staging,
                             e));
        shards_upload(m, t->offset, staging, t->rows * t->cols);
    }
    TRY(layout_check_names(m, &file, folder, e)); /* missing tensors are reported first */
    m->file_dtype = dtype_of(safetensors_find(&file, "model.embed_tokens.weight"));
    return TARE_OK;
}

static void set_ranks(struct model *m, const struct model_source *s)
{
    if (s->comm) {
        m->comm = s->comm;
        m->ranks = s->comm->size;
        m->rank = s->comm->rank;
        m->shard = s->shard;
    }
}

static tare_status open_whole(struct model *m, const struct model_source *s, struct err *e)
{
    set_ranks(m, s);
    TRY(hf_config_load(m, s->folder, s->config, e));
    TRY(whole_buffers(m, e));
    TRY(positions_fill(m, e));
    return model_read_weights(m, s->folder, e);
}

/* Reads the compute copy of the base first, whole on every rank; then the adapters replace its
 * layout. */
static tare_status open_base(struct model *m, const struct model_source *s, const char *base, const struct lora_spec *spec,
                             struct err *e)
{
    TRY(hf_config_load(m, base, s->config, e));
    TRY(base_buffers(m, spec, e));
    TRY(fs_join(m->lora->base, base, "", e));
    TRY(positions_fill(m, e));
    TRY(frozen_read(m, base, e));
    set_ranks(m, s);
    return adapter_buffers(m, e);
}

static tare_status open_adapter(struct model *m, const struct model_source *s, struct err *e)
{
    struct lora_spec spec = {0};
    char base[FS_PATH], word[STR_SHELL];
    if (s->trains)
        FAIL(e, TARE_E_CONFIG,
             "%s is an adapter; training starts from a whole model. `tare merge %s OUT` writes one, base and adapter in one folder",
             s->folder, str_shell(word, s->folder));
    TRY(adapter_config(s->folder, s->config, &spec, base, e));
    TRY(open_base(m, s, base, &spec, e));
    return adapter_read(m, s->folder, e);
}

/* Opens the base alone, whole on every rank. */
static tare_status open_frozen(struct model *m, const struct model_source *s, struct err *e)
{
    struct model_source alone = *s;
    if (s->trains) TRY(refuse_int8(m, e));
    alone.comm = NULL;
    return open_base(m, &alone, s->folder, &(struct lora_spec){0}, e);
}

static tare_status open_new_adapter(struct model *m, const struct model_source *s, struct err *e)
{
    TRY(open_base(m, s, s->folder, s->lora, e));
    return lora_init(m, s->seed, e);
}

tare_status model_open(const struct model_source *s, struct model **out, struct err *e)
{
    struct model *m;
    *out = NULL;
    if (!fs_is_dir(s->folder)) FAIL(e, TARE_E_NOT_FOUND, "%s: model folder not found", s->folder);
    if (s->config) TRY(adapter_check_base(s->config, e));
    TRY(model_alloc(s->kernels, s->pool, &m, e));
    set_dtype(m, s->config);
    tare_status status = adapter_is(s->folder)          ? open_adapter(m, s, e)
                         : s->lora && s->lora->rank > 0 ? open_new_adapter(m, s, e)
                         : m->int8                      ? open_frozen(m, s, e)
                                                        : open_whole(m, s, e);
    if (!status) status = model_refresh(m, e);
    if (status)
        model_free(m);
    else
        *out = m;
    return status;
}

static tare_status counted_buffers(struct model *m, const struct model_source *s, struct err *e)
{
    const struct lora_spec none = {0}, *spec = s->lora && s->lora->rank ? s->lora : &none;
    if (!spec->rank && s->trains) TRY(refuse_int8(m, e));
    if (!spec->rank && !m->int8) {
        set_ranks(m, s);
        return whole_buffers(m, e);
    }
    TRY(base_buffers(m, spec, e));
    if (spec->rank) set_ranks(m, s);
    return adapter_buffers(m, e);
}

tare_status model_counted(const struct model_source *s, const struct model_shape *shape, struct model **out, struct err *e)
{
    *out = NULL;
    struct model *m;
    TRY(model_alloc(s->kernels, s->pool, &m, e));
    set_dtype(m, s->config);
    m->shape = *shape;
    const tare_status status = counted_buffers(m, s, e);
    if (status)
        model_free(m);
    else
        *out = m;
    return status;
}

tare_status model_base_view(const struct model *m, struct model **out, struct err *e)
{
    TRY(mem_new(sizeof **out, (void **)out, e));
    **out = *m;
    (*out)->lora = NULL;
    (*out)->is_view = true;
    return TARE_OK;
}

struct initial {
    struct rng_key key;
    double deviation;
    int64_t n;
    float *x;
};
/* Numbers per task. Each number is a function of its index, so the assignment to threads does not
 * matter. */
enum { INITIAL_TASK = 1 << 14 };

static void init_task(void *arg, int64_t task, int thread)
{
    const struct initial *t = arg;
    const int64_t first = task * INITIAL_TASK, last = first + INITIAL_TASK < t->n ? first + INITIAL_TASK : t->n;
    (void)thread;
    for (int64_t j = first; j < last; j++) t->x[j] = (float)(t->deviation * rng_normal(t->key, (uint64_t)j));
}

/* Initialises norms to 1, biases to 0, products and embedding from a normal distribution. Products
 * that write to the residual stream are scaled down so that its variance does not grow with L
 * (Radford et al. 2019, GPT-2). */
static void init_tensor(const struct model *m, int64_t i, double std, uint64_t seed, float *x)
{
    const struct tensor *t = &m->tensors[i];
    const bool residual = strstr(t->name, "o_proj") || strstr(t->name, "down_proj");
    struct initial draws = {.key = rng_derive(rng_key(seed, RNG_INIT), (uint64_t)i),
                            .deviation = residual ? std / sqrt(2.0 * (double)m->shape.layers) : std,
                            .n = t->rows * t->cols,
                            .x = x};
    if (!t->vector) {
        pool_run(m->ctx.pool, (draws.n + INITIAL_TASK - 1) / INITIAL_TASK, init_task, &draws);
        return;
    }
    const float value = strstr(t->name, ".bias") ? 0.0f : 1.0f;
    for (int64_t j = 0; j < draws.n; j++) x[j] = value;
}

/* Initialises one tensor at a time, so that the host holds no second copy of the model. */
static tare_status init_weights(struct model *m, double std, uint64_t seed, struct err *e)
{
    float *staging;
    TRY(mem_new(largest_tensor(m) * (int64_t)sizeof *staging, (void **)&staging, e));
    for (int64_t i = 0; i < m->n_tensors; i++) {
        init_tensor(m, i, std, seed, staging);
        shards_upload(m, m->tensors[i].offset, staging, m->tensors[i].rows * m->tensors[i].cols);
    }
    mem_free(staging);
    return TARE_OK;
}

tare_status model_new(const struct model_source *s, int64_t vocab, const int32_t *eos, int64_t n_eos, struct model **out,
                      struct err *e)
{
    const struct model_config *c = s->config;
    OWNED(model_free_at) struct model *m = NULL;
    *out = NULL;
    TRY(model_alloc(s->kernels, s->pool, &m, e));
    if (n_eos > (int64_t)(sizeof m->eos / sizeof *m->eos)) FAIL(e, TARE_E_RANGE, "%lld EOS ids; at most 16", (long long)n_eos);
    if (n_eos) memcpy(m->eos, eos, (size_t)n_eos * sizeof *eos);
    m->n_eos = n_eos;
    set_dtype(m, c);
    TRY(refuse_int8(m, e));
    set_ranks(m, s);
    TRY(hf_config_new(m, c, vocab, e));
    TRY(whole_buffers(m, e));
    TRY(positions_fill(m, e));
    TRY(init_weights(m, c->init_std > 0 ? c->init_std : 0.02, s->seed, e));
    TRY(model_refresh(m, e));
    *out = m;
    m = NULL;
    return TARE_OK;
}

tare_status model_copy_tokenizer(const char *from, const char *to, struct err *e)
{
    static const char *const FILES[] = {
        "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
        "merges.txt",     "chat_template.jinja",   "chat_template.json",      "tokenizer.model"};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        char source[FS_PATH], target[FS_PATH];
        TRY(fs_join(source, from, FILES[i], e));
        TRY(fs_join(target, to, FILES[i], e));
        if (fs_exists(source)) TRY(fs_copy(source, target, e));
    }
    return TARE_OK;
}

/* Fetches a tensor's floats to host memory from its unit, which is gathered when the unit
 * changes. */
struct saving {
    struct model *m;
    void *host; /* staging of model_from_backend for the largest tensor */
};

static tare_status fetch_tensor(void *ctx, int64_t i, const float **out, struct err *e)
{
    const struct saving *s = ctx;
    const struct tensor *t = &s->m->tensors[i];
    const float *unit;
    TRY(shards_unit_weights(s->m, t->unit, &unit, e));
    kernels_at(&s->m->ctx, "saving the weights", -1);
    *out =
        model_from_backend(s->m, s->host, unit + t->offset - s->m->unit_begin[t->unit], t->rows * t->cols * (int64_t)sizeof(float));
    return model_finish(s->m, e);
}

static tare_status write_weights(struct saving *s, const char *folder, enum dtype dtype, struct err *e)
{
    const struct model *m = s->m;
    struct st_source *sources;
    TRY(mem_new(m->n_tensors * (int64_t)sizeof *sources, (void **)&sources, e));
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        sources[i] =
            (struct st_source){.name = t->name, .rank = t->vector ? 1 : 2, .shape = {t->vector ? t->cols : t->rows, t->cols}};
    }
    tare_status status = model_host_alloc(m, largest_tensor(m) * (int64_t)sizeof(float), &s->host, e);
    if (!status)
        status =
            safetensors_write_folder(folder, sources, m->n_tensors, &(struct st_writer){fetch_tensor, s, dtype, SHARD_BYTES}, e);
    mem_free(s->host);
    mem_free(sources);
    return status;
}

tare_status model_save(struct model *m, const char *folder, enum dtype dtype, const char *tokenizer_folder, struct err *e)
{
    struct saving s = {.m = m};
    const float *unit;
    if (m->lora) {
        TRY(adapter_write(m, folder, dtype, e));
        return tokenizer_folder && !m->rank ? model_copy_tokenizer(tokenizer_folder, folder, e) : TARE_OK;
    }
    if (m->rank) { /* rank 0 writes; the others send their slices */
        for (int64_t u = 0; u < shards_unit_count(m); u++) TRY(shards_unit_weights(m, u, &unit, e));
        return TARE_OK;
    }
    TRY(write_weights(&s, folder, dtype, e));
    TRY(hf_config_save(m, folder, dtype, e));
    return tokenizer_folder ? model_copy_tokenizer(tokenizer_folder, folder, e) : TARE_OK;
}

tare_status model_check_folder(const struct model *m, const char *folder, struct err *e)
{
    return m->lora ? adapter_check(m, folder, e) : hf_config_check(m, folder, e);
}

tare_status model_check_moved(struct model *m, struct err *e)
{
    return moved_check(m, &m->moved, "weights", e);
}

uint64_t model_frozen_hash(const struct model *m)
{
    return m->lora ? m->lora->base_hash : 0;
}

tare_status model_hash(const struct model *m, uint64_t *out, struct err *e)
{
    *out = m->hash;
    return m->ranks > 1 ? TARE_OK : proof_digest(m, out, e);
}
