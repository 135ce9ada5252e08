/* Count-sketch (Charikar, Chen, Farach-Colton 2002) of gradients: coordinate j is added with a sign
 * to one of `width` cells; Philox draws both from (seed, j). The sketch is linear, so a combination
 * of sketches is the sketch of the combination, and inner products are unbiased:
 *
 *   E <Sx, Sy> = <x, y>,     Var <Sx, Sy> <= (|x|^2 |y|^2 + <x, y>^2) / width
 *
 * width 0 keeps the gradient itself. Sums are in double, over fixed segments: results are
 * bit-identical for any number of threads. */
#ifndef TARE_LAB_VARIANCE_SKETCH_H
#define TARE_LAB_VARIANCE_SKETCH_H

#include "base/arena.h"
#include "base/pool.h"

enum { SKETCH_LEAST = 64, SKETCH_MOST = 32768, SKETCH_SEGMENTS = 16 };

struct sketch {
    int64_t n, width; /* coordinates; cells, or n if gradients are kept whole */
    /* [n] cell index, with the sign in the highest bit; NULL: gradients are kept whole */
    uint16_t *cell;
    double *part; /* [SKETCH_SEGMENTS, width + 1] */
};

/* width: a power of two from SKETCH_LEAST to SKETCH_MOST, or 0; else TARE_E_INVALID. */
tare_status sketch_new(int64_t n, int64_t width, uint64_t seed, struct sketch *out, struct err *e);
void sketch_free(struct sketch *s);
/* Returns the bytes of such a sketch's tables. */
int64_t sketch_bytes(int64_t n, int64_t width);
/* Sketches x [n] -> out [width]. The squared length of out has a relative error of sqrt(2 / width),
 * one standard deviation. *square: |x|^2, exact. */
void sketch_of(const struct sketch *s, struct pool *pool, const float *x, float *out, double *square);

#endif
