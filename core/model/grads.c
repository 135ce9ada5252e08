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
    *out = m->k->alloc(&m->ctx, floats * (int64_t)sizeof(float));
    if (!*out) return kernels_no_memory(m->k, &m->ctx, what, floats * (int64_t)sizeof(float), e);
    *bytes += floats * (int64_t)sizeof(float);
    return TARE_OK;
}

static tare_status take_all(struct grads *g, struct err *e)
{
    const struct model *m = g->m;
    int64_t ends = 0, layer = 0;
    for (int64_t u = 0; u < unit_count(m); u++) {
        int64_t *most = at_the_ends(m, u) ? &ends : &layer;
        if (unit_floats(m, u) > *most) *most = unit_floats(m, u);
    }
    TRY(take(m, m->n_own, "the sums of gradients", &g->sum_bytes, &g->sum, e));
    TRY(take(m, ends, "the gradient of the head", &g->window_bytes, &g->ends, e));
    TRY(take(m, layer, "the gradient of a layer", &g->window_bytes, &g->layer, e));
    if (m->ranks == 1) return TARE_OK;
    return take(m, ends > layer ? ends : layer, "the ranks' gradients", &g->window_bytes, &g->received, e);
}

tare_status grads_new(struct model *m, struct grads *out, struct err *e)
{
    *out = (struct grads){.m = m, .active = 1};
    const tare_status status = take_all(out, e);
    if (status) grads_free(out);
    return status;
}

void grads_free(struct grads *g)
{
    float *const all[] = {g->sum, g->ends, g->layer, g->received};
    for (int i = 0; i < 4; i++)
        if (all[i]) g->m->k->release(&g->m->ctx, all[i]);
    *g = (struct grads){0};
}

float *grads_begin(struct grads *g, int64_t u)
{
    float *window = at_the_ends(g->m, u) ? g->ends : g->layer;
    g->m->k->zero(&g->m->ctx, window, unit_floats(g->m, u) * (int64_t)sizeof(float));
    return window;
}

float *grads_head(const struct grads *g)
{
    return g->ends;
}

tare_status grads_end(struct grads *g, int64_t u, struct err *e)
{
    struct model *m = g->m;
    const int64_t piece = unit_piece(m, u);
    float *sum = g->sum + unit_own(m, u), *from = at_the_ends(m, u) ? g->ends : g->layer;
    if (m->ranks > 1) {
        if (m->k->finish) m->k->finish(&m->ctx);
        TRY(m->comm->all_to_all(m->comm, from, piece * (int64_t)sizeof(float), g->received, e));
        from = g->received;
    }
    for (int r = 0; r < g->active; r++) m->k->add(&m->ctx, sum, from + r * piece, piece);
    return TARE_OK;
}
