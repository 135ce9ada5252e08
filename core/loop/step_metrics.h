/* The numbers of a step under the names users know. estimator/... come from the estimate folder, time/... from the stages. */
#ifndef TARE_CORE_LOOP_STEP_METRICS_H
#define TARE_CORE_LOOP_STEP_METRICS_H

#include "loop/run.h"

/* Adds to this rank's figure of that name: seconds of a stage, bytes of memory. The largest of all ranks is the metric. name: a literal,
 * one of at most FIGURES. */
tare_status figure_add(struct run *r, const char *name, double value, struct err *e);
/* All metrics of the step, and its record. Collective. */
tare_status step_record(struct run *r, double seconds, struct err *e);
/* cluster_metrics.c: cluster/NAME/..., after estimate_apply. */
tare_status cluster_metrics(struct run *r, struct err *e);

#endif
