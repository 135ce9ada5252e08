#define _GNU_SOURCE
#include "base/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINS = 4000 };

struct pool {
    int threads;
    pthread_t *handles;
    pool_task task;
    void *arg;
    int64_t n;
    _Atomic int64_t next;
    _Atomic uint32_t round;   /* grows with every pool_run; workers wait for it to change */
    _Atomic uint32_t working; /* workers that have not finished this round */
    _Atomic int stop;
    _Atomic int started;
};

struct worker {
    struct pool *pool;
    int thread;
};

static void wait_while_equal(_Atomic uint32_t *word, uint32_t value)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != value) return;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    while (atomic_load_explicit(word, memory_order_acquire) == value)
        syscall(SYS_futex, (uint32_t *)word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, (uint32_t *)word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void run_tasks(struct pool *p, int thread)
{
    for (;;) {
        const int64_t task = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (task >= p->n) return;
        p->task(p->arg, task, thread);
    }
}

static void *worker_main(void *arg)
{
    const struct worker w = *(struct worker *)arg;
    free(arg);
    struct pool *p = w.pool;
    uint32_t seen = 0;
    for (;;) {
        wait_while_equal(&p->round, seen);
        seen = atomic_load_explicit(&p->round, memory_order_acquire);
        if (atomic_load(&p->stop)) return NULL;
        run_tasks(p, w.thread);
        if (atomic_fetch_sub_explicit(&p->working, 1, memory_order_acq_rel) == 1) wake(&p->working);
    }
}

tare_status pool_new(int threads, struct pool **out, struct err *e)
{
    *out = NULL;
    if (threads <= 0) {
        cpu_set_t set;
        threads = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    }
    struct pool *p = calloc(1, sizeof *p);
    if (p) p->handles = calloc((size_t)threads, sizeof *p->handles);
    if (!p || !p->handles) {
        free(p);
        FAIL(e, TARE_E_NOMEM, "no memory for a pool of %d threads", threads);
    }
    p->threads = 1;
    for (int i = 1; i < threads; i++) {
        struct worker *w = malloc(sizeof *w);
        if (w) *w = (struct worker){p, i};
        if (!w || pthread_create(&p->handles[i], NULL, worker_main, w)) {
            free(w);
            pool_free(p);
            FAIL(e, TARE_E_NOMEM, "cannot start thread %d of %d; lower run.threads", i + 1, threads);
        }
        p->threads++;
    }
    *out = p;
    return TARE_OK;
}

int pool_threads(const struct pool *p)
{
    return p ? p->threads : 1;
}

void pool_run(struct pool *p, int64_t n, pool_task task, void *arg)
{
    if (!p || p->threads == 1 || n <= 1) {
        for (int64_t i = 0; i < n; i++) task(arg, i, 0);
        return;
    }
    p->task = task;
    p->arg = arg;
    p->n = n;
    atomic_store(&p->next, 0);
    atomic_store(&p->working, (uint32_t)p->threads - 1);
    atomic_fetch_add_explicit(&p->round, 1, memory_order_acq_rel);
    wake(&p->round);
    run_tasks(p, 0);
    for (uint32_t left; (left = atomic_load_explicit(&p->working, memory_order_acquire));) wait_while_equal(&p->working, left);
}

void pool_free(struct pool *p)
{
    if (!p) return;
    atomic_store(&p->stop, 1);
    atomic_fetch_add_explicit(&p->round, 1, memory_order_acq_rel);
    wake(&p->round);
    for (int i = 1; i < p->threads; i++) pthread_join(p->handles[i], NULL);
    free(p->handles);
    free(p);
}
