#include "model/merge.h"

#include "model/adapter.h"
#include "model/hf_config.h"
#include "model/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const int64_t SHARD_BYTES = 5000000000; /* shard size of transformers and the Hub */

struct merge {
    const struct model *m;
    const struct safetensors *base;
    const float *adapters; /* in the flat layout */
    float *whole;          /* buffer for the largest tensor */
    enum dtype dtype;      /* of the files written */
};

/* Returns the adapter's tensor for the weight `name` of the base; NULL: it has none. */
static const struct tensor *tensor_for(const struct model *m, const char *name, char half)
{
    char wanted[128];
    const size_t n = strlen(name), ending = strlen(".weight");
    if (n <= ending || n > 96 || strcmp(name + n - ending, ".weight")) return NULL;
    snprintf(wanted, sizeof wanted, "base_model.model.%.*s.lora_%c.weight", (int)(n - ending), name, half);
    for (int64_t i = 0; i < m->n_tensors; i++)
        if (!strcmp(m->tensors[i].name, wanted)) return &m->tensors[i];
    return NULL;
}

/* Refuses a merged weight that is NaN, or infinite in the precision of the file, as loading would.
 * An unmerged tensor is copied, and may only not overflow by its conversion. */
static tare_status check_merged(const struct merge *g, const struct st_tensor *t, bool merged, struct err *e)
{
    /* magnitudes from here on become infinite */
    const double limit = g->dtype == DTYPE_BF16 ? 0x1.ffp127 : (double)INFINITY;
    const int64_t n = safetensors_count(t), columns = t->rank == 2 ? t->shape[1] : n;
    for (int64_t i = 0; i < n; i++) {
        const double w = (double)g->whole[i];
        if (fabs(w) < limit || (!merged && !isfinite(w))) continue;
        if (!merged)
            FAIL(e, TARE_E_NOT_FINITE, "%s: row %lld, column %lld is %g, which bf16 cannot hold; use dtype=f32", t->name,
                 (long long)(i / columns), (long long)(i % columns), w);
        FAIL(
            e, TARE_E_NOT_FINITE,
            "%s: row %lld, column %lld would be %s after the merge; the adapter of %s is damaged, or its training had diverged: fetch it again, or take an earlier checkpoint",
            t->name, (long long)(i / columns), (long long)(i % columns), isnan(w) ? "NaN" : "infinite", g->m->folder);
    }
    return TARE_OK;
}

/* *data = W + s B A of tensor i, [n, k]; the tensor of the base if it has no adapter. */
static tare_status fetch_merged(void *ctx, int64_t i, const float **data, struct err *e)
{
    const struct merge *g = ctx;
    const struct st_tensor *t = &g->base->tensors[i];
    const struct tensor *a = tensor_for(g->m, t->name, 'A'), *b = tensor_for(g->m, t->name, 'B');
    TRY(safetensors_read_f32(g->base, t, g->whole, e));
    *data = g->whole;
    if (!a || !b) return check_merged(g, t, false, e);
    const float *A = g->adapters + a->offset, *B = g->adapters + b->offset;
    for (int64_t row = 0; row < b->rows; row++)
        for (int64_t column = 0; column < a->cols; column++) {
            double sum = 0;
            for (int64_t r = 0; r < a->rows; r++) sum += (double)B[row * b->cols + r] * (double)A[r * a->cols + column];
            float *w = g->whole + row * a->cols + column;
            *w = (float)((double)*w + (double)g->m->lora->scale * sum);
        }
    return check_merged(g, t, true, e);
}

static tare_status write_all(struct merge *g, const char *folder, struct err *e)
{
    const struct safetensors *s = g->base;
    struct st_source *sources;
    int64_t largest = 0;
    TRY(mem_new(s->n_tensors * (int64_t)sizeof *sources, (void **)&sources, e));
    tare_status status = TARE_OK;
    for (int64_t i = 0; i < s->n_tensors && !status; i++) {
        const struct st_tensor *t = &s->tensors[i];
        sources[i] = (struct st_source){.name = t->name, .rank = t->rank, .shape = {t->shape[0], t->shape[1]}};
        if (safetensors_count(t) > largest) largest = safetensors_count(t);
        if (t->rank < 1 || t->rank > 2)
            status = err_set(e, TARE_E_UNSUPPORTED, __FILE__, __LINE__, "%s: %s has %lld dimensions; 1 or 2 can be written",
                             s->files[t->file].path, t->name, (long long)t->rank);
    }
    if (!status) status = mem_new(largest * (int64_t)sizeof(float), (void **)&g->whole, e);
    if (!status)
        status =
            safetensors_write_folder(folder, sources, s->n_tensors, &(struct st_writer){fetch_merged, g, g->dtype, SHARD_BYTES}, e);
    mem_free(g->whole);
    mem_free(sources);
    return status;
}

tare_status model_merge(struct model *m, const char *folder, enum merge_dtype dtype, const char *tokenizer_folder, struct err *e)
{
    OWNED(safetensors_close) struct safetensors base = {0};
    OWNED(mem_free_at) float *adapters = NULL;
    if (!m->lora) FAIL(e, TARE_E_INVALID, "%s: must be an adapter to merge, but is a whole model", m->folder);
    TRY(mem_new(m->n_params * (int64_t)sizeof *adapters, (void **)&adapters, e));
    TRY(adapter_fetch(m, adapters, e));
    TRY(safetensors_open_folder(m->lora->base, &base, e));
    const struct st_tensor *first = safetensors_find(&base, "model.embed_tokens.weight");
    const bool bf16 = dtype == MERGE_BF16 || (dtype == MERGE_AS_BASE && first && !strcmp(first->dtype, "BF16"));
    struct merge g = {.m = m, .base = &base, .adapters = adapters, .dtype = bf16 ? DTYPE_BF16 : DTYPE_F32};
    TRY(write_all(&g, folder, e));
    TRY(hf_config_save(m, folder, bf16 ? DTYPE_BF16 : DTYPE_F32, e));
    return model_copy_tokenizer(tokenizer_folder, folder, e);
}
