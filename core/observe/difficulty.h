/* Accuracy and length by difficulty: what an evaluation of several checkpoints measures and a report draws. */
#ifndef TARE_CORE_OBSERVE_DIFFICULTY_H
#define TARE_CORE_OBSERVE_DIFFICULTY_H

#include "base/str.h"

struct difficulty_point {              /* one bucket of one subset at one checkpoint of one run */
    const char *run, *subset, *bucket; /* subset: "" or "standard" or "complex" */
    int64_t step, questions;
    double accuracy, low, high; /* share; its interval, NAN: none */
    double length;              /* mean tokens of a completion */
};
/* Draws points [n] as one self-contained page; those of a run, subset and bucket stand together, steps growing. */
typedef tare_status (*difficulty_figure)(const char *title, const struct difficulty_point *points, int64_t n, struct str *out,
                                         struct err *e);

#endif
