/* sweep.json: the axes and cells of a sweep, written by `tare sweep` and read by reports.
 *
 * Results live in the given arena. Errors: TARE_E_NOT_FOUND, TARE_E_IO with the path,
 * TARE_E_CORRUPT. */
#ifndef TARE_CORE_OBSERVE_SWEEP_PLAN_H
#define TARE_CORE_OBSERVE_SWEEP_PLAN_H

#include "base/arena.h"

struct sweep_axis {
    const char *key; /* section.key */
    const char **values;
    int64_t n;
};

struct sweep_cell {
    const char *name; /* its folder below the sweep's */
    /* [n_axes]; NULL: the cell does not use the axis (a parameter of a plugin that it does not
     * run) */
    const char **value;
};

struct sweep_plan {
    const char *dir, *name, *metric, *baseline; /* baseline: "key=value[, key=value]" or "" */
    struct sweep_axis *axes;
    struct sweep_cell *cells;
    int64_t n_axes, n_cells;
};

tare_status sweep_plan_read(const char *dir, struct arena *a, struct sweep_plan *out, struct err *e);
tare_status sweep_plan_write(const struct sweep_plan *p, struct err *e);
/* Finds the axis called key, or by its last word if only one axis has it; -1: none. */
int64_t sweep_plan_axis(const struct sweep_plan *p, const char *key);

#endif
