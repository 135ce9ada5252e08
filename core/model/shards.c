#include "model/shards.h"

#include "base/fs.h"
#include "dist/comm.h"

#include <string.h>

bool model_is_whole(const struct model *m)
{
    return m->ranks == 1 || m->shard != SHARD_ZERO3;
}

int64_t shards_unit_count(const struct model *m)
{
    return m->shape.layers + 2;
}

int64_t shards_unit_first(const struct model *m)
{
    return m->lora ? 1 : 0;
}

int64_t shards_unit_end(const struct model *m)
{
    return shards_unit_count(m) - (m->lora ? 1 : 0);
}

int64_t model_head_unit(const struct model *m)
{
    return m->shape.tied ? 0 : m->shape.layers + 1;
}

int64_t shards_unit_slice(const struct model *m, int64_t u)
{
    return (m->unit_begin[u + 1] - m->unit_begin[u]) / m->ranks;
}

int64_t shards_unit_own(const struct model *m, int64_t u)
{
    return m->unit_begin[u] / m->ranks;
}

int64_t shards_unit_own_weights(const struct model *m, int64_t u)
{
    return model_is_whole(m) ? m->unit_begin[u] + m->rank * shards_unit_slice(m, u) : shards_unit_own(m, u);
}

/* ---------------------------------------------------------------- windows */

/* Returns the window of unit u. Neighbouring layers have different windows, so that the next one
 * can be gathered meanwhile. The embedding's window is the table that forward passes read. */
static struct unit_window *window_of(struct model *m, int64_t u)
{
    return &m->window[u == 0 ? 3 : u == m->shape.layers + 1 ? 2 : u & 1];
}

tare_status shards_new(struct model *m, struct err *e)
{
    int64_t size[4] = {0};
    for (int i = 0; i < 4; i++) m->window[i].unit = -1;
    if (model_is_whole(m)) return TARE_OK;
    TRY(moved_new(m, &m->moved, e));
    for (int64_t u = shards_unit_first(m); u < shards_unit_end(m); u++) {
        const int64_t i = window_of(m, u) - m->window, n = m->unit_begin[u + 1] - m->unit_begin[u];
        if (n > size[i]) size[i] = n;
    }
    for (int i = 0; i < 4; i++) {
        const int64_t bytes = size[i] * (int64_t)sizeof(float);
        if (!bytes) continue;
        m->window[i].data = m->k->backend->alloc(&m->ctx, bytes);
        if (!m->window[i].data) return kernels_no_memory(m->k, &m->ctx, "a gathered unit of the weights", bytes, e);
        if (i == 3)
            m->memory.sampler += bytes;
        else
            m->memory.windows += bytes;
    }
    return TARE_OK;
}

void shards_free(struct model *m)
{
    for (int i = 0; i < 4; i++)
        if (m->window[i].data) m->k->backend->release(&m->ctx, m->window[i].data);
    moved_free(m, &m->moved);
}

/* Gathers unit u into its window; without `wait` it only starts the transfer. */
static tare_status gather_into(struct model *m, int64_t u, bool wait, struct err *e)
{
    struct unit_window *w = window_of(m, u);
    struct comm *c = m->comm;
    const int64_t bytes = shards_unit_slice(m, u) * (int64_t)sizeof(float);
    w->unit = -1;
    const int64_t at = moved_send_all(m, &m->moved, m->weights + shards_unit_own(m, u), shards_unit_slice(m, u));
    TRY((wait ? c->all_gather : c->gather_begin)(c, m->weights + shards_unit_own(m, u), bytes, w->data, e));
    *w = (struct unit_window){.data = w->data, .unit = u, .version = m->version, .pending = !wait, .at = at};
    if (wait) moved_received(m, &m->moved, w->data, shards_unit_slice(m, u), at);
    return TARE_OK;
}

static bool is_there(struct model *m, int64_t u)
{
    const struct unit_window *w = window_of(m, u);
    return w->unit == u && w->version == m->version;
}

tare_status shards_unit_weights(struct model *m, int64_t u, const float **out, struct err *e)
{
    struct unit_window *w = window_of(m, u);
    *out = m->weights + m->unit_begin[u];
    if (model_is_whole(m)) return TARE_OK;
    if (!is_there(m, u)) TRY(gather_into(m, u, true, e));
    if (w->pending) TRY(m->comm->gather_wait(m->comm, e));
    if (w->pending) moved_received(m, &m->moved, w->data, shards_unit_slice(m, u), w->at);
    w->pending = false;
    *out = w->data;
    return TARE_OK;
}

tare_status shards_unit_prefetch(struct model *m, int64_t u, struct err *e)
{
    return model_is_whole(m) || is_there(m, u) ? TARE_OK : gather_into(m, u, false, e);
}

void shards_upload(struct model *m, int64_t offset, const float *host, int64_t n)
{
    int64_t u = 0;
    if (model_is_whole(m)) {
        m->k->backend->upload(&m->ctx, m->weights + offset, host, n * (int64_t)sizeof(float));
        return;
    }
    while (m->unit_begin[u + 1] <= offset) u++; /* a tensor is in one unit */
    const int64_t slice = shards_unit_slice(m, u), first = m->unit_begin[u] + m->rank * slice;
    const int64_t from = offset > first ? offset : first, to = offset + n < first + slice ? offset + n : first + slice;
    if (from < to)
        m->k->backend->upload(&m->ctx, m->weights + shards_unit_own(m, u) + from - first, host + from - offset,
                              (to - from) * (int64_t)sizeof(float));
}

/* ---------------------------------------------------------------- bytes of the backend's memory */

tare_status shards_backend_hash(const struct model *m, const void *data, int64_t bytes, uint64_t *hash, struct err *e)
{
    enum { CHUNK = 1 << 20 };
    void *host;
    const int64_t most = kernels_staging_bytes(m->k, CHUNK) ? CHUNK : bytes; /* whole where no copy is made */
    TRY(model_host_alloc(m, CHUNK, &host, e));
    for (int64_t at = 0; at < bytes; at += most) {
        const int64_t n = bytes - at < most ? bytes - at : most;
        *hash = fs_hash(model_from_backend(m, host, (const char *)data + at, n), n, *hash);
    }
    mem_free(host);
    return TARE_OK;
}
