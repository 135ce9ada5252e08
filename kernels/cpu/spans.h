/* Split items into runs of some size and divide them among the pool's threads; a small amount of
 * work stays on the calling thread. */
#ifndef TARE_KERNELS_CPU_SPANS_H
#define TARE_KERNELS_CPU_SPANS_H

#include "base/pool.h"

typedef void (*span_run)(const void *arg, int64_t begin, int64_t end, int thread);

struct spans {
    span_run run;
    const void *arg;
    int64_t n, size;
};

static inline void span_task(void *arg, int64_t task, int thread)
{
    const struct spans *s = arg;
    const int64_t begin = task * s->size;
    s->run(s->arg, begin, s->n - begin < s->size ? s->n : begin + s->size, thread);
}

/* n items of `work` elements each; a run is a multiple of `unit` items. */
static inline void spans(const struct kctx *c, int64_t n, int64_t work, int64_t unit, span_run run, const void *arg)
{
    enum { ALONE = 16384, RUN = 8192 }; /* elements: some microseconds */
    if (n <= 0) return;
    struct spans s = {run, arg, n, n};
    if (pool_threads(c->pool) > 1 && n * work > ALONE) {
        const int64_t least = (RUN + work - 1) / work, share = n / (pool_threads(c->pool) * 4);
        s.size = ((least > share ? least : share) + unit - 1) / unit * unit;
    }
    pool_run(c->pool, (n + s.size - 1) / s.size, span_task, &s);
}

#endif
