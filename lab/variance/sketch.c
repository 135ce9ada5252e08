#include "lab/variance/sketch.h"

#include "base/rng.h"

#include <string.h>

static const uint16_t SIGN = 0x8000;

/* Choose a cell and a sign for each coordinate. A block of Philox gives four words, and each word
 * two cells. */
static void draw_cells(struct sketch *s, uint64_t seed)
{
    const struct rng_key key = rng_derive(rng_key(seed, RNG_VARIANCE), 0);
    const uint16_t mask = (uint16_t)(s->width - 1);
    uint32_t word[4];
    for (int64_t j = 0; j < s->n; j++) {
        if (j % 8 == 0) rng_block(key, (uint64_t)(j / 8), 0, word);
        const uint16_t bits = (uint16_t)(word[j % 8 / 2] >> (j % 2 * 16));
        s->cell[j] = (uint16_t)((bits & SIGN) | (bits & mask));
    }
}

int64_t sketch_bytes(int64_t n, int64_t width)
{
    return width ? n * (int64_t)sizeof(uint16_t) + SKETCH_SEGMENTS * (width + 1) * (int64_t)sizeof(double) : 0;
}

tare_status sketch_new(int64_t n, int64_t width, uint64_t seed, struct sketch *out, struct err *e)
{
    *out = (struct sketch){.n = n, .width = width ? width : n};
    if (width && (width < SKETCH_LEAST || width > SKETCH_MOST || (width & (width - 1))))
        FAIL(e, TARE_E_INVALID, "a sketch of %lld cells: must be a power of two from %d to %d, or 0 to keep gradients whole",
             (long long)width, SKETCH_LEAST, SKETCH_MOST);
    const int64_t cells = width ? width : 0;
    TRY(mem_new(SKETCH_SEGMENTS * (cells + 1) * (int64_t)sizeof *out->part, (void **)&out->part, e));
    if (!width) return TARE_OK;
    TRY(mem_new(n * (int64_t)sizeof *out->cell, (void **)&out->cell, e));
    draw_cells(out, seed);
    return TARE_OK;
}

void sketch_free(struct sketch *s)
{
    mem_free(s->cell);
    mem_free(s->part);
    *s = (struct sketch){0};
}

struct job {
    const struct sketch *s;
    const float *x;
};

/* Add up the cells of one segment, and after them its sum of squares. */
static void sketch_segment(void *arg, int64_t segment, int thread)
{
    const struct job *job = arg;
    const struct sketch *s = job->s;
    const int64_t cells = s->cell ? s->width : 0;
    const int64_t begin = segment * s->n / SKETCH_SEGMENTS, end = (segment + 1) * s->n / SKETCH_SEGMENTS;
    double *part = s->part + segment * (cells + 1), square = 0;
    (void)thread;
    memset(part, 0, (size_t)cells * sizeof *part);
    for (int64_t j = begin; j < end; j++) {
        const double x = (double)job->x[j];
        square += x * x;
        if (cells) part[s->cell[j] & ~SIGN] += s->cell[j] & SIGN ? -x : x;
    }
    part[cells] = square;
}

void sketch_of(const struct sketch *s, struct pool *pool, const float *x, float *out, double *square)
{
    struct job job = {s, x};
    const int64_t cells = s->cell ? s->width : 0;
    pool_run(pool, SKETCH_SEGMENTS, sketch_segment, &job);
    *square = 0;
    for (int64_t k = 0; k < SKETCH_SEGMENTS; k++) *square += s->part[k * (cells + 1) + cells];
    if (!cells) memcpy(out, x, (size_t)s->n * sizeof *out);
    for (int64_t c = 0; c < cells; c++) {
        double sum = 0;
        for (int64_t k = 0; k < SKETCH_SEGMENTS; k++) sum += s->part[k * (cells + 1) + c];
        out[c] = (float)sum;
    }
}
