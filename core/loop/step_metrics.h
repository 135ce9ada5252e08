/* Metrics of a step, under the names users know. estimator/... come from core/estimate, time/...
 * from the stages. */
#ifndef TARE_CORE_LOOP_STEP_METRICS_H
#define TARE_CORE_LOOP_STEP_METRICS_H

#include "loop/run.h"

/* Adds value to this rank's figure of that name: seconds of a stage, bytes of memory, tokens. The largest
 * over all ranks is the metric. name: a literal; at most FIGURES different ones a step. */
tare_status figure_add(struct run *r, const char *name, double value, struct err *e);
/* Sets all metrics of the step and writes its record. Collective. */
tare_status step_record(struct run *r, double seconds, struct err *e);
/* Sets cluster/NAME/..., after estimate_apply (cluster_metrics.c). */
tare_status cluster_metrics(struct run *r, struct err *e);

#endif
