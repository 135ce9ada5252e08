/* Ranks as threads of one process. In a collective every rank publishes its arguments, all meet,
 * each one copies the data that it needs from the others' memory, and all meet again. */
#include "dist/threads.h"

#include "base/arena.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct call { /* the collective that the rank is in */
    const char *what;
    const void *in;
    int64_t n; /* equal on all ranks, except for gather */
    int root;
};

struct job {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int size, waiting; /* ranks in the current meeting */
    uint64_t meeting;  /* counts */
    bool failed;
    struct err error; /* of the first rank that failed */
    struct call *calls;
};

struct member {
    struct comm comm;
    struct job *job;
    pthread_t thread;
    tare_status (*fn)(struct comm *c, void *ctx, struct err *e);
    void *ctx;
};

static tare_status left(struct job *j, struct err *e)
{
    FAIL(e, TARE_E_COMM, "%s", j->error.message);
}

/* The first failure is the job's. Call with the lock held. */
static void fail_job(struct job *j, int rank, const struct err *e)
{
    if (j->failed) return;
    j->failed = true;
    j->error = *e;
    err_prefix(&j->error, "rank %d", rank);
    pthread_cond_broadcast(&j->moved);
}

static tare_status time_out(struct comm *c, struct job *j, struct err *e)
{
    char missing[200];
    int at = 0;
    for (int r = 0; r < j->size && at < 180; r++)
        if (!j->calls[r].what) at += snprintf(missing + at, sizeof missing - (size_t)at, " %d", r);
    err_set(e, TARE_E_COMM, __FILE__, __LINE__, "waited %g s in %s for rank%s; dist.timeout_s", c->timeout_s,
            j->calls[c->rank].what, at ? missing : "s that have left");
    fail_job(j, c->rank, e);
    return left(j, e);
}

/* All ranks arrive before any rank leaves. what != NULL enters a collective; NULL leaves it. */
static tare_status meet(struct comm *c, const struct call *call, struct err *e)
{
    struct job *j = ((struct member *)c->self)->job;
    struct timespec until;
    tare_status status = TARE_OK;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)c->timeout_s;
    until.tv_nsec += (long)((c->timeout_s - (double)(time_t)c->timeout_s) * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }

    pthread_mutex_lock(&j->lock);
    if (call) j->calls[c->rank] = *call;
    const uint64_t meeting = j->meeting;
    if (j->failed) {
        status = left(j, e);
    } else if (++j->waiting == j->size) {
        j->waiting = 0;
        j->meeting++;
        if (!call)
            for (int r = 0; r < j->size; r++) j->calls[r].what = NULL;
        pthread_cond_broadcast(&j->moved);
    } else {
        while (j->meeting == meeting && !j->failed && !status) {
            if (c->timeout_s <= 0)
                pthread_cond_wait(&j->moved, &j->lock);
            else if (pthread_cond_timedwait(&j->moved, &j->lock, &until) == ETIMEDOUT && j->meeting == meeting)
                status = time_out(c, j, e);
        }
        if (!status && j->meeting == meeting) status = left(j, e);
    }
    pthread_mutex_unlock(&j->lock);
    return status;
}

/* Enters a collective and checks that all ranks are in the same one. */
static tare_status enter(struct comm *c, struct call mine, bool equal, struct err *e)
{
    struct job *j = ((struct member *)c->self)->job;
    TRY(meet(c, &mine, e));
    for (int r = 0; r < j->size; r++) {
        const struct call *other = &j->calls[r];
        if (!strcmp(other->what, mine.what) && other->root == mine.root && (!equal || other->n == mine.n)) continue;
        FAIL(e, TARE_E_COMM, "rank %d is in %s of %lld (root %d) while rank %d is in %s of %lld (root %d)", c->rank, mine.what,
             (long long)mine.n, mine.root, r, other->what, (long long)other->n, other->root);
    }
    return TARE_OK;
}

static tare_status thread_gather(struct comm *c, const void *in, int64_t n, void *out, const int64_t *out_bytes, struct err *e)
{
    struct job *j = ((struct member *)c->self)->job;
    char *to = out;
    TRY(enter(c, (struct call){"gather", in, n, 0}, false, e));
    for (int r = 0; r < j->size; to += out_bytes[r++]) {
        if (j->calls[r].n != out_bytes[r])
            FAIL(e, TARE_E_COMM, "gather: rank %d gives %lld bytes where %lld were announced", r, (long long)j->calls[r].n,
                 (long long)out_bytes[r]);
        if (out_bytes[r] && j->calls[r].in != to) memcpy(to, j->calls[r].in, (size_t)out_bytes[r]);
    }
    return meet(c, NULL, e);
}

static tare_status thread_broadcast(struct comm *c, void *data, int64_t n, int root, struct err *e)
{
    struct job *j = ((struct member *)c->self)->job;
    if (root < 0 || root >= c->size) FAIL(e, TARE_E_COMM, "broadcast from rank %d in a job of %d ranks", root, c->size);
    TRY(enter(c, (struct call){"broadcast", data, n, root}, true, e));
    if (n && c->rank != root) memcpy(data, j->calls[root].in, (size_t)n);
    return meet(c, NULL, e);
}

static tare_status thread_barrier(struct comm *c, struct err *e)
{
    TRY(enter(c, (struct call){"barrier", NULL, 0, 0}, true, e));
    return meet(c, NULL, e);
}

static tare_status thread_all_gather(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    struct job *j = ((struct member *)c->self)->job;
    TRY(enter(c, (struct call){"all_gather", in, bytes, 0}, true, e));
    if (bytes)
        for (int r = 0; r < j->size; r++) {
            char *to = (char *)out + r * bytes;
            if (j->calls[r].in != to) memcpy(to, j->calls[r].in, (size_t)bytes);
        }
    return meet(c, NULL, e);
}

static tare_status thread_all_to_all(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    struct job *j = ((struct member *)c->self)->job;
    TRY(enter(c, (struct call){"all_to_all", in, bytes, 0}, true, e));
    if (bytes)
        for (int r = 0; r < j->size; r++)
            memcpy((char *)out + r * bytes, (const char *)j->calls[r].in + c->rank * bytes, (size_t)bytes);
    return meet(c, NULL, e);
}

static tare_status thread_wait(struct comm *c, struct err *e)
{
    (void)c, (void)e; /* done by begin */
    return TARE_OK;
}

static void thread_abort(struct comm *c, const struct err *e)
{
    struct job *j = ((struct member *)c->self)->job;
    pthread_mutex_lock(&j->lock);
    fail_job(j, c->rank, e);
    pthread_mutex_unlock(&j->lock);
}

static void thread_free(struct comm *c)
{
    (void)c; /* owned by comm_threads */
}

static void *member_main(void *arg)
{
    struct member *m = arg;
    struct err e = {0};
    if (m->fn(&m->comm, m->ctx, &e)) thread_abort(&m->comm, &e);
    return NULL;
}

static struct comm thread_comm(struct member *m, int rank, int size, double timeout_s)
{
    return (struct comm){.rank = rank,
                         .size = size,
                         .kind = "thread",
                         .self = m,
                         .gather = thread_gather,
                         .broadcast = thread_broadcast,
                         .barrier = thread_barrier,
                         .all_gather = thread_all_gather,
                         .all_to_all = thread_all_to_all,
                         .gather_begin = thread_all_gather,
                         .gather_wait = thread_wait,
                         .exchange_begin = thread_all_to_all,
                         .exchange_wait = thread_wait,
                         .timeout_s = timeout_s,
                         .abort = thread_abort,
                         .free = thread_free};
}

static tare_status start(struct job *j, struct member *members, double timeout_s,
                         tare_status (*fn)(struct comm *c, void *ctx, struct err *e), void *ctx, struct err *e)
{
    tare_status status = TARE_OK;
    int started = 0;
    for (; started < j->size && !status; started += !status) {
        struct member *m = &members[started];
        m->comm = thread_comm(m, started, j->size, timeout_s);
        m->job = j;
        m->fn = fn;
        m->ctx = ctx;
        if (pthread_create(&m->thread, NULL, member_main, m))
            status = err_set(e, TARE_E_NOMEM, __FILE__, __LINE__, "no thread for rank %d", started);
    }
    if (status) thread_abort(&members[0].comm, e);
    for (int r = 0; r < started; r++) pthread_join(members[r].thread, NULL);
    return status;
}

static void job_free(struct job *j)
{
    mem_free(j->calls);
    pthread_cond_destroy(&j->moved);
    pthread_mutex_destroy(&j->lock);
}

tare_status comm_threads(int ranks, double timeout_s, tare_status (*fn)(struct comm *c, void *ctx, struct err *e), void *ctx,
                         struct err *e)
{
    if (ranks < 1) FAIL(e, TARE_E_RANGE, "%d ranks; at least 1", ranks);
    OWNED(job_free) struct job j = {.size = ranks, .lock = PTHREAD_MUTEX_INITIALIZER};
    OWNED(mem_free_at) struct member *members = NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&j.moved, &attributes);
    pthread_condattr_destroy(&attributes);
    TRY(mem_new(ranks * (int64_t)sizeof *members, (void **)&members, e));
    TRY(mem_new(ranks * (int64_t)sizeof *j.calls, (void **)&j.calls, e));
    TRY(start(&j, members, timeout_s, fn, ctx, e));
    if (j.failed) {
        if (e) *e = j.error;
        return j.error.code;
    }
    return TARE_OK;
}
