#define _GNU_SOURCE
#include "base/pool.h"

#include "base/limits.h"

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

/* A word that threads wait on: they spin for a while, then sleep. The thread that changes the word
 * makes a system call only if a thread sleeps. */
struct gate {
    _Atomic uint32_t word;
    _Atomic uint32_t sleepers;
};

/* A round is one pool_run. It ends when its tasks are done, not when every worker has seen it: on a
 * busy machine a worker may be without a core for milliseconds, and the caller then runs its tasks
 * as well. So a worker may reach a round that is over while the caller sets up the next one. `left`
 * holds the round in its upper half and the number of tasks not yet taken in its lower half; a task
 * is taken by a compare-and-swap of both. If the swap succeeds, the round was not over, and so
 * task, arg and n, read before it, belong to this round. */
struct pool {
    int threads;
    pthread_t *handles;
    _Atomic(pool_task) task;
    _Atomic(void *) arg;
    _Atomic uint32_t n;
    _Atomic int stop;
    _Alignas(64) _Atomic uint64_t left;
    /* tasks of this round that have finished; the caller waits for n */
    _Alignas(64) struct gate done;
    /* incremented by every pool_run; workers wait for it to change */
    _Alignas(64) struct gate round;
};

struct worker {
    struct pool *pool;
    int thread;
};

static void gate_wait_while(struct gate *g, uint32_t value)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&g->word, memory_order_acquire) != value) return;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    /* must precede the second read of word: gate_add accesses them in the opposite order */
    atomic_fetch_add(&g->sleepers, 1);
    while (atomic_load(&g->word) == value) syscall(SYS_futex, (uint32_t *)&g->word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    atomic_fetch_sub(&g->sleepers, 1);
}

/* Add value, wake sleepers and return the new value. */
static uint32_t gate_add(struct gate *g, uint32_t value)
{
    const uint32_t sum = atomic_fetch_add(&g->word, value) + value;
    if (atomic_load(&g->sleepers)) syscall(SYS_futex, (uint32_t *)&g->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    return sum;
}

static void run_tasks(struct pool *p, int thread)
{
    uint32_t ended = 0;
    uint64_t left = atomic_load_explicit(&p->left, memory_order_acquire);
    while ((uint32_t)left) {
        const pool_task task = atomic_load_explicit(&p->task, memory_order_relaxed);
        void *arg = atomic_load_explicit(&p->arg, memory_order_relaxed);
        const uint32_t n = atomic_load_explicit(&p->n, memory_order_relaxed);
        if (!atomic_compare_exchange_weak_explicit(&p->left, &left, left - 1, memory_order_acq_rel, memory_order_acquire)) continue;
        task(arg, (int64_t)(n - (uint32_t)left), thread);
        ended++;
        left = atomic_load_explicit(&p->left, memory_order_acquire);
    }
    if (ended) gate_add(&p->done, ended);
}

static void *worker_main(void *arg)
{
    const struct worker w = *(struct worker *)arg;
    free(arg);
    struct pool *p = w.pool;
    uint32_t seen = 0;
    for (;;) {
        gate_wait_while(&p->round, seen);
        seen = atomic_load_explicit(&p->round.word, memory_order_acquire);
        if (atomic_load(&p->stop)) return NULL;
        run_tasks(p, w.thread);
    }
}

tare_status pool_new(int threads, struct pool **out, struct err *e)
{
    *out = NULL;
    if (threads <= 0) threads = limits_cores();
    struct pool *p = aligned_alloc(_Alignof(struct pool), sizeof *p);
    if (p) *p = (struct pool){0};
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
            FAIL(e, TARE_E_NOMEM, "cannot start thread %d of %d; lower the number of threads", i + 1, threads);
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
    if (!p || p->threads == 1 || n <= 1 || n > UINT32_MAX) {
        for (int64_t i = 0; i < n; i++) task(arg, i, 0);
        return;
    }
    const uint32_t tasks = (uint32_t)n;
    atomic_store_explicit(&p->task, task, memory_order_relaxed);
    atomic_store_explicit(&p->arg, arg, memory_order_relaxed);
    atomic_store_explicit(&p->n, tasks, memory_order_relaxed);
    atomic_store_explicit(&p->done.word, 0, memory_order_relaxed);
    atomic_store_explicit(&p->left, ((atomic_load(&p->left) >> 32) + 1) << 32 | tasks, memory_order_release);
    gate_add(&p->round, 1);
    run_tasks(p, 0);
    for (uint32_t ended; (ended = atomic_load_explicit(&p->done.word, memory_order_acquire)) != tasks;)
        gate_wait_while(&p->done, ended);
}

void pool_free(struct pool *p)
{
    if (!p) return;
    atomic_store(&p->stop, 1);
    gate_add(&p->round, 1);
    for (int i = 1; i < p->threads; i++) pthread_join(p->handles[i], NULL);
    free(p->handles);
    free(p);
}
