/* Counters of /metrics in Prometheus' text format. Used under the server's lock. */
#ifndef TARE_SERVE_METRICS_H
#define TARE_SERVE_METRICS_H

#include "serve/models.h"

enum { METRIC_BUCKETS = 12, METRIC_STATUSES = 16 };

struct histogram {
    int64_t count[METRIC_BUCKETS + 1]; /* the last bucket is unbounded */
    double sum;
};

struct metrics {
    struct {
        int http;
        int64_t n;
    } answers[METRIC_STATUSES];          /* by status, in order of first occurrence */
    struct histogram first_token, whole; /* seconds */
    int64_t cancelled, timed_out;
};

void metrics_answer(struct metrics *m, int http);
void metrics_seconds(struct histogram *h, double seconds);
tare_status metrics_print(const struct metrics *m, const struct served_models *models, struct str *out, struct err *e);

#endif
