/* Evaluations on held-out rows during a run. */
#ifndef TARE_CORE_LOOP_EVALUATE_H
#define TARE_CORE_LOOP_EVALUATE_H

#include "base/err.h"
#include "tare/base.h"

#include <stdbool.h>

struct run;

/* Mean reward on the evaluation rows, over eval.samples completions each, and by subject. */
struct evaluation {
    double reward, length;
    int64_t rows, samples;
    struct evaluation_part {
        tare_text subject; /* valid as long as the data set */
        double reward;
        int64_t n;
    } parts[64];
    int64_t n_parts;
    bool more_parts; /* the rows have more subjects than `parts` has entries */
};

tare_status evaluate(struct run *r, struct evaluation *out, struct err *e);
/* Evaluates before the first step, every eval.every steps and after the last one, as configured,
 * and sets the metrics of `step`. */
tare_status evaluate_when_due(struct run *r, int64_t step, struct err *e);

#endif
