/* Includes FLINT, Arb, Antic and Calcium: Debian 12 has them as four libraries, FLINT 3 as one. */
#ifndef TARE_MATH_FLINT_H
#define TARE_MATH_FLINT_H

#if __has_include(<flint/ca.h>) /* FLINT 3 */
#include <flint/acb.h>
#include <flint/arb.h>
#include <flint/ca.h>
#include <flint/fmpq.h>
#include <flint/fmpz.h>
#include <flint/nmod_vec.h>
#include <flint/qqbar.h>
#else
#include <acb.h>
#include <arb.h>
#include <calcium/ca.h>
#include <calcium/qqbar.h>
#include <flint/fmpq.h>
#include <flint/fmpz.h>
#include <flint/nmod_vec.h>
#endif

#include "math.h"

enum { PRECISIONS = 5, HIGH = 3333 };

/* Caches of one pair's evaluations, by node. */
struct values {
    fmpq *rational;    /* [MAX_NODES] */
    uint8_t *state;    /* [MAX_NODES] 1 + enum value; 0: not evaluated */
    acb_ptr ball;      /* [MAX_NODES] */
    uint32_t *stamp;   /* [MAX_NODES] evaluation to which the ball belongs */
    uint64_t *residue; /* [MAX_NODES] */
    uint32_t *residue_stamp;
    uint32_t epoch;
    bool large;     /* some ball has a long mantissa */
    acb_ptr symbol; /* [MAX_SYMBOLS] values at a sample point */
    uint64_t symbol_residue[MAX_SYMBOLS];
    bool bound[MAX_SYMBOLS]; /* bound to an integer, in bound_value */
    int64_t bound_value[MAX_SYMBOLS];
};

enum value rational_value(struct math *m, int x, const fmpq **out);
/* Evaluates x at prec; false: not finite, undefined, or over the budget. The ball is valid until
 * the next evaluation. */
bool ball_value(struct math *m, int x, slong prec, acb_srcptr *out);
void balls_forget(struct math *m); /* call after the symbols' values change */
bool spend(struct math *m, int64_t steps);
/* computes the floor or ceiling of a closed real value that is not rational */
bool ball_floor(struct math *m, int x, bool ceiling, fmpz_t out);

#endif
