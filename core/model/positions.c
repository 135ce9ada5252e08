#include "model/positions.h"

#include <math.h>
#include <stdio.h>

/* Positions computed in host memory at a time, and per task. */
enum { BLOCK = 4096, ROWS = 64 };

struct position_block {
    const double *frequency; /* [R/2] */
    float *host;             /* [n, R] */
    int64_t begin, n, width;
};

/* Returns the frequency of pair i: theta^(-2i/R). Linear scaling divides it by the factor. With
 * llama3 scaling (Llama 3.1, "rope_type": "llama3") wavelengths longer than original/low are
 * stretched by factor, those shorter than original/high stay, and between the two the factor
 * changes smoothly. */
static double rope_frequency(const struct rope_scaling *r, double theta, int64_t i, int64_t width)
{
    const double f = pow(theta, -2.0 * (double)i / (double)width);
    if (!(r->factor > 0)) return f;
    if (!(r->original > 0)) return f / r->factor;
    const double wavelength = 2 * acos(-1.0) / f;
    if (wavelength > r->original / r->low) return f / r->factor;
    if (wavelength < r->original / r->high) return f;
    const double smooth = (r->original / wavelength - r->low) / (r->high - r->low);
    return (1 - smooth) * f / r->factor + smooth * f;
}

/* A task of ROWS positions: host[n, R] = cos | sin of pos * frequency. */
static void fill_rows(void *arg, int64_t task, int thread)
{
    const struct position_block *w = arg;
    const int64_t end = (task + 1) * ROWS < w->n ? (task + 1) * ROWS : w->n, half = w->width / 2;
    (void)thread;
    for (int64_t row = task * ROWS; row < end; row++)
        for (int64_t i = 0; i < half; i++) {
            const double angle = (double)(w->begin + row) * w->frequency[i];
            w->host[row * w->width + i] = (float)cos(angle);
            w->host[row * w->width + half + i] = (float)sin(angle);
        }
}

int64_t positions_rope_width(const struct model_shape *s)
{
    return s->rotary_dim ? s->rotary_dim : s->head_dim;
}

static tare_status table_new(struct model *m, float **out, struct err *e)
{
    const int64_t bytes = m->shape.max_position * positions_rope_width(&m->shape) * (int64_t)sizeof(float);
    char what[120];
    *out = m->k->backend->alloc(&m->ctx, bytes);
    m->memory.sampler += *out ? bytes : 0;
    if (*out) return TARE_OK;
    snprintf(what, sizeof what, "the table of %lld positions (model.max_position_embeddings)", (long long)m->shape.max_position);
    return kernels_no_memory(m->k, &m->ctx, what, bytes, e);
}

tare_status positions_new(struct model *m, struct err *e)
{
    TRY(table_new(m, &m->rope, e));
    return m->shape.local_theta > 0 ? table_new(m, &m->rope_local, e) : TARE_OK;
}

static tare_status table_fill(struct model *m, float *table, const struct rope_scaling *scaling, double theta, struct err *e)
{
    const int64_t n = m->shape.max_position, R = positions_rope_width(&m->shape), most = n < BLOCK ? n : BLOCK;
    OWNED(mem_free_at) double *frequency = NULL;
    OWNED(mem_free_at) float *host = NULL;
    TRY(mem_new(R / 2 * (int64_t)sizeof *frequency, (void **)&frequency, e));
    TRY(mem_new(most * R * (int64_t)sizeof *host, (void **)&host, e));
    for (int64_t i = 0; i < R / 2; i++) frequency[i] = rope_frequency(scaling, theta, i, R);
    for (int64_t at = 0; at < n; at += most) {
        struct position_block w = {frequency, host, at, n - at < most ? n - at : most, R};
        pool_run(m->ctx.pool, (w.n + ROWS - 1) / ROWS, fill_rows, &w);
        m->k->backend->upload(&m->ctx, table + at * R, host, w.n * R * (int64_t)sizeof *host);
    }
    return TARE_OK;
}

tare_status positions_fill(struct model *m, struct err *e)
{
    const struct model_shape *s = &m->shape;
    TRY(table_fill(m, m->rope, &s->scaling, s->rope_theta, e));
    return m->rope_local ? table_fill(m, m->rope_local, &(struct rope_scaling){0}, s->local_theta, e) : TARE_OK;
}

void positions_free(struct model *m)
{
    if (m->rope) m->k->backend->release(&m->ctx, m->rope);
    if (m->rope_local) m->k->backend->release(&m->ctx, m->rope_local);
    m->rope = m->rope_local = NULL;
}

tare_status model_positions(const struct model *m, int64_t n, struct err *e)
{
    if (n <= m->shape.max_position) return TARE_OK;
    FAIL(
        e, TARE_E_RANGE,
        "%lld positions are needed, the model has %lld (max_position_embeddings); use shorter sequences or set model.max_position_embeddings",
        (long long)n, (long long)m->shape.max_position);
}
