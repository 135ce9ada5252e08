/* The numbers of a step under the names users know. estimator/... come from the estimate folder, time/... from the stages. */
#ifndef TARE_CORE_STEP_METRICS_H
#define TARE_CORE_STEP_METRICS_H

#include "loop/run.h"

void step_metrics(struct run *r, double seconds);
/* cluster/NAME/...: after estimate_apply. */
tare_status cluster_metrics(struct run *r, struct err *e);

#endif
