/* Accuracy and length by difficulty: measured by an evaluation of several checkpoints and drawn by
 * a report. */
#ifndef TARE_CORE_OBSERVE_DIFFICULTY_H
#define TARE_CORE_OBSERVE_DIFFICULTY_H

#include "base/str.h"

struct difficulty_point {              /* one bucket of one subset at one checkpoint of one run */
    const char *run, *subset, *bucket; /* subset: "" or "standard" or "complex" */
    int64_t step, questions;
    double accuracy, low, high; /* share of correct answers, and its interval (NAN: none) */
    double length;              /* mean tokens per completion */
};
/* Draws points [n] as one self-contained page. Points of a run, subset and bucket are adjacent, in
 * order of increasing step. */
typedef tare_status (*difficulty_figure)(const char *title, const struct difficulty_point *points, int64_t n, struct str *out,
                                         struct err *e);

#endif
