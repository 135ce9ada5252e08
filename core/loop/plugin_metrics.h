/* Metrics that plugins record in a step, from any thread and rank. The values of a name become one
 * number as TARE_METRIC_... says; a sum and a mean do not depend on the order of threads. */
#ifndef TARE_CORE_LOOP_PLUGIN_METRICS_H
#define TARE_CORE_LOOP_PLUGIN_METRICS_H

#include "base/arena.h"
#include "dist/comm.h"
#include "observe/observe.h"

#include <pthread.h>

struct plugin_metric {
    char *name;
    int32_t how;
    int64_t n, capacity;
    double *value; /* [n] in the order of the calls */
};

struct plugin_metrics {
    pthread_mutex_t lock;
    struct plugin_metric *all;
    int64_t n, capacity;
    bool lost; /* out of memory; reported by plugin_metrics_settle */
};

void plugin_metrics_init(struct plugin_metrics *m);
void plugin_metrics_free(struct plugin_metrics *m);
/* Adds a value. Any thread. */
void plugin_metrics_add(struct plugin_metrics *m, const char *name, double value, int32_t how);
/* Puts the values of all ranks together, sets the metrics of the step, and forgets the values. */
tare_status plugin_metrics_settle(struct plugin_metrics *m, struct comm *comm, struct observe *o, struct arena *a, struct err *e);

#endif
