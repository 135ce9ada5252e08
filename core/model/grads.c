#include "model/grads.h"

#include "dist/comm.h"
#include "model/shards.h"

static bool is_end_unit(const struct model *m, int64_t u)
{
    return u == 0 || (u == m->shape.layers + 1 && !m->shape.tied);
}

static int64_t unit_floats(const struct model *m, int64_t u)
{
    return m->unit_begin[u + 1] - m->unit_begin[u];
}

static tare_status sums_alloc(const struct model *m, int64_t floats, const char *what, int64_t *bytes, float **out, struct err *e)
{
    *out = m->k->backend->alloc(&m->ctx, floats * (int64_t)sizeof(float));
    if (!*out) return kernels_no_memory(m->k, &m->ctx, what, floats * (int64_t)sizeof(float), e);
    *bytes += floats * (int64_t)sizeof(float);
    return TARE_OK;
}

static tare_status take_all(struct grads *g, struct err *e)
{
    const struct model *m = g->m;
    int64_t ends = 0, layer = 0;
    for (int64_t u = shards_unit_first(m); u < shards_unit_end(m); u++) {
        int64_t *most = is_end_unit(m, u) ? &ends : &layer;
        if (unit_floats(m, u) > *most) *most = unit_floats(m, u);
    }
    TRY(sums_alloc(m, m->n_own, "the sums of gradients", &g->sum_bytes, &g->sum, e));
    if (ends) TRY(sums_alloc(m, ends, "the gradient of the head", &g->window_bytes, &g->ends, e));
    TRY(sums_alloc(m, layer, "the gradient of a layer", &g->window_bytes, &g->layer[0], e));
    if (m->ranks == 1) return TARE_OK;
    if (m->comm->overlaps) TRY(sums_alloc(m, layer, "the gradient of the next layer", &g->window_bytes, &g->layer[1], e));
    return sums_alloc(m, ends > layer ? ends : layer, "the ranks' gradients", &g->window_bytes, &g->received, e);
}

tare_status grads_new(struct model *m, struct grads *out, struct err *e)
{
    *out = (struct grads){.m = m, .active = 1, .pending = -1};
    tare_status status = take_all(out, e);
    if (!status) status = moved_new(m, &out->moved, e);
    if (status) grads_free(out);
    return status;
}

void grads_free(struct grads *g)
{
    float *const all[] = {g->sum, g->ends, g->layer[0], g->layer[1], g->received};
    for (int i = 0; i < 5; i++)
        if (all[i]) g->m->k->backend->release(&g->m->ctx, all[i]);
    if (g->m) moved_free(g->m, &g->moved);
    *g = (struct grads){0};
}

/* Returns the window of unit u. */
static float *window_of(const struct grads *g, int64_t u)
{
    return is_end_unit(g->m, u) ? g->ends : g->layer[g->current];
}

/* Returns whether the gradients of matrices of unit u are added to the sums directly. */
static bool is_apart(const struct grads *g, int64_t u)
{
    return g->m->ranks == 1 && g->m->k->matmul_dw_apart && !is_end_unit(g->m, u);
}

struct unit_grads grads_begin(struct grads *g, int64_t u)
{
    const struct model *m = g->m;
    if (!is_end_unit(m, u) && g->layer[1]) g->current = !g->current; /* the other window may still be in transfer */
    float *window = window_of(g, u);
    if (!is_apart(g, u)) {
        m->k->backend->zero(&m->ctx, window, unit_floats(m, u) * (int64_t)sizeof(float));
        return (struct unit_grads){window, window, false};
    }
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        if (t->unit == u && t->vector)
            m->k->backend->zero(&m->ctx, window + t->offset - m->unit_begin[u], t->cols * (int64_t)sizeof(float));
    }
    return (struct unit_grads){g->sum + shards_unit_own(m, u), window, true};
}

float *grads_head(const struct grads *g)
{
    return g->ends;
}

/* Adds `windows` slices of unit u, one after the other in `from`, to the sums of this rank. */
static void add_window(const struct grads *g, int64_t u, const float *from, int windows)
{
    const int64_t slice = shards_unit_slice(g->m, u);
    for (int r = 0; r < windows; r++)
        KERNEL(g->m->k, &g->m->ctx, add, .y = g->sum + shards_unit_own(g->m, u), .x = from + r * slice, .n = slice);
}

/* Adds the norms and biases of unit u from its window to the sums. */
static void add_vectors(const struct grads *g, int64_t u)
{
    const struct model *m = g->m;
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        const int64_t at = t->offset - m->unit_begin[u];
        if (t->unit == u && t->vector)
            KERNEL(m->k, &m->ctx, add, .y = g->sum + shards_unit_own(m, u) + at, .x = window_of(g, u) + at, .n = t->cols);
    }
}

/* Waits for the window in transfer, and adds it. */
static tare_status finish_pending(struct grads *g, struct err *e)
{
    if (g->pending < 0) return TARE_OK;
    TRY(g->m->comm->exchange_wait(g->m->comm, e));
    moved_received(g->m, &g->moved, g->received, shards_unit_slice(g->m, g->pending), g->pending_at);
    add_window(g, g->pending, g->received, g->active);
    g->pending = -1;
    return TARE_OK;
}

tare_status grads_end(struct grads *g, int64_t u, struct err *e)
{
    struct model *m = g->m;
    if (m->ranks == 1) {
        if (is_apart(g, u))
            add_vectors(g, u);
        else
            add_window(g, u, window_of(g, u), g->active);
        return TARE_OK;
    }
    TRY(finish_pending(g, e)); /* the previous unit, received while this one was computed */
    g->pending_at = moved_send(m, &g->moved, window_of(g, u), shards_unit_slice(m, u));
    TRY(m->comm->exchange_begin(m->comm, window_of(g, u), shards_unit_slice(m, u) * (int64_t)sizeof(float), g->received, e));
    g->pending = u;
    /* the first unit is the last of a pass */
    return g->layer[1] && u > shards_unit_first(m) ? TARE_OK : finish_pending(g, e);
}

tare_status grads_check(struct grads *g, struct err *e)
{
    return moved_check(g->m, &g->moved, "gradients", e);
}
