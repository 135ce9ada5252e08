#include "model/grads.h"

#include "dist/comm.h"
#include "model/shards.h"

static bool at_the_ends(const struct model *m, int64_t u)
{
    return u == 0 || (u == m->shape.layers + 1 && !m->shape.tied);
}

static int64_t unit_floats(const struct model *m, int64_t u)
{
    return m->unit_begin[u + 1] - m->unit_begin[u];
}

static tare_status take(const struct model *m, int64_t floats, const char *what, int64_t *bytes, float **out, struct err *e)
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
        int64_t *most = at_the_ends(m, u) ? &ends : &layer;
        if (unit_floats(m, u) > *most) *most = unit_floats(m, u);
    }
    TRY(take(m, m->n_own, "the sums of gradients", &g->sum_bytes, &g->sum, e));
    if (ends) TRY(take(m, ends, "the gradient of the head", &g->window_bytes, &g->ends, e));
    TRY(take(m, layer, "the gradient of a layer", &g->window_bytes, &g->layer[0], e));
    if (m->ranks == 1) return TARE_OK;
    if (m->comm->overlaps) TRY(take(m, layer, "the gradient of the next layer", &g->window_bytes, &g->layer[1], e));
    return take(m, ends > layer ? ends : layer, "the ranks' gradients", &g->window_bytes, &g->received, e);
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

static float *window_of(const struct grads *g, int64_t u)
{
    return at_the_ends(g->m, u) ? g->ends : g->layer[g->turn];
}

/* Matrices of unit u go into the sums at once. */
static bool is_apart(const struct grads *g, int64_t u)
{
    return g->m->ranks == 1 && g->m->k->matmul_dw_apart && !at_the_ends(g->m, u);
}

struct unit_grads grads_begin(struct grads *g, int64_t u)
{
    const struct model *m = g->m;
    if (!at_the_ends(m, u) && g->layer[1]) g->turn = !g->turn; /* the other one may still be being sent */
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

static void add(const struct grads *g, int64_t u, const float *from, int windows)
{
    const int64_t piece = shards_unit_slice(g->m, u);
    for (int r = 0; r < windows; r++)
        KERNEL(g->m->k, &g->m->ctx, add, .y = g->sum + shards_unit_own(g->m, u), .x = from + r * piece, .n = piece);
}

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

/* Waits for the window that is being sent, and adds it. */
static tare_status settle(struct grads *g, struct err *e)
{
    if (g->pending < 0) return TARE_OK;
    TRY(g->m->comm->exchange_wait(g->m->comm, e));
    moved_got(g->m, &g->moved, g->received, shards_unit_slice(g->m, g->pending), g->pending_at);
    add(g, g->pending, g->received, g->active);
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
            add(g, u, window_of(g, u), g->active);
        return TARE_OK;
    }
    TRY(settle(g, e)); /* the unit before, which came while this one was computed */
    g->pending_at = moved_send(m, &g->moved, window_of(g, u), shards_unit_slice(m, u));
    TRY(m->comm->exchange_begin(m->comm, window_of(g, u), shards_unit_slice(m, u) * (int64_t)sizeof(float), g->received, e));
    g->pending = u;
    return g->layer[1] && u > shards_unit_first(m) ? TARE_OK : settle(g, e); /* the first unit is a pass's last */
}

tare_status grads_check(struct grads *g, struct err *e)
{
    return moved_check(g->m, &g->moved, "gradients", e);
}
