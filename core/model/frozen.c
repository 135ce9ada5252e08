/* Reads the base of adapters unit by unit into the compute copy; its fp32 weights are then
 * discarded. */
#include "model/frozen.h"

#include "model/layout.h"
#include "model/lora.h"
#include "model/proof.h"
#include "model/safetensors.h"
#include "model/shards.h"

/* Reads unit u into host memory and adds it to the hash. */
static tare_status read_unit(struct model *m, const struct safetensors *file, int64_t u, float *unit, struct err *e)
{
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        float *to = unit + t->offset - m->unit_begin[u];
        if (t->unit != u) continue;
        TRY(safetensors_read(file, t->name, (struct st_extent){t->vector ? 1 : 2, t->vector ? t->cols : t->rows, t->cols}, to, e));
        m->lora->base_hash = fs_hash(to, t->rows * t->cols * (int64_t)sizeof *to, m->lora->base_hash);
    }
    return TARE_OK;
}

static tare_status read_units(struct model *m, const struct safetensors *file, float *unit, void *staging, struct err *e)
{
    struct refresh_proof nothing = {0}; /* all ranks have read the same files, as base_hash shows */
    for (int64_t u = 0; u < shards_unit_count(m); u++) {
        TRY(read_unit(m, file, u, unit, e));
        const float *there = model_to_backend(m, staging, unit, m->unit_size[u] * (int64_t)sizeof *unit);
        if (u == 0) m->k->backend->upload(&m->ctx, m->lora->table, unit, m->shape.vocab * m->shape.hidden * (int64_t)sizeof *unit);
        TRY(model_copy_unit(m, &nothing, u, there, e));
        TRY(model_finish(m, e)); /* the staging is overwritten next */
    }
    return TARE_OK;
}

static int64_t largest_unit(const struct model *m)
{
    int64_t most = 0;
    for (int64_t u = 0; u < shards_unit_count(m); u++)
        if (m->unit_size[u] > most) most = m->unit_size[u];
    return most;
}

tare_status frozen_read(struct model *m, const char *folder, struct err *e)
{
    const int64_t bytes = largest_unit(m) * (int64_t)sizeof(float), far = kernels_staging_bytes(m->k, bytes);
    OWNED(safetensors_close) struct safetensors file = {0};
    OWNED(mem_free_at) float *unit = NULL;
    void *staging = NULL;
    TRY(safetensors_open_folder(folder, &file, e));
    TRY(mem_new(bytes, (void **)&unit, e));
    if (far && !(staging = m->k->backend->alloc(&m->ctx, far)))
        return kernels_no_memory(m->k, &m->ctx, "a unit of the base while it is read", far, e);
    const tare_status status = read_units(m, &file, unit, staging, e);
    if (staging) m->k->backend->release(&m->ctx, staging);
    TRY(status);
    return layout_check_names(m, &file, folder, e);
}
