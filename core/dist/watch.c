#include "dist/watch.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "dist/watch_end.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK 0.25     /* seconds between heartbeats */
#define LAST_WORD 3.0 /* seconds that a failed rank waits for rank 0 to report */

static struct watch *watched; /* for the signal handler */
static atomic_int crashed;    /* set by the handler, read by the watching thread */

/* ---- the state that a rank reports */

static void fill_state(struct watch *w, uint32_t kind)
{
    w->mine.kind = kind;
    w->mine.since = clock_seconds() - w->left_at;
    w->mine.asked = *signals_flag() != 0;
}

/* Sends this rank's state to rank 0, or from rank 0 to all. Called under the lock. */
static void send_mine(struct watch *w, uint32_t kind)
{
    fill_state(w, kind);
    const int n = w->rank ? 1 : w->size;
    for (int r = w->rank ? 0 : 1; r < n; r++)
        if (w->peers[r].connection.fd >= 0 && !w->peers[r].gone) watch_net_send(w->peers[r].connection.fd, &w->mine);
}

static void wake_thread(struct watch *w)
{
    const char one = 1;
    if (write(w->wake[1], &one, 1) < 0) return; /* full: it is awake */
}

void watch_stage(struct watch *w, const char *stage, int64_t step)
{
    pthread_mutex_lock(&w->lock);
    snprintf(w->mine.stage, sizeof w->mine.stage, "%s", stage);
    w->mine.step = step;
    send_mine(w, PACKET_STATE);
    pthread_mutex_unlock(&w->lock);
}

void watch_enter(struct watch *w, const char *collective)
{
    pthread_mutex_lock(&w->lock);
    w->mine.inside = collective != NULL;
    w->mine.calls += collective != NULL;
    if (collective) snprintf(w->mine.what, sizeof w->mine.what, "%s", collective);
    w->left_at = clock_seconds();
    pthread_mutex_unlock(&w->lock);
}

void watch_fail(struct watch *w, const struct err *e)
{
    pthread_mutex_lock(&w->lock);
    w->failure = *e;
    w->failing = true;
    pthread_mutex_unlock(&w->lock);
    wake_thread(w);
    for (int i = 0; i < 80; i++) { /* the watching thread ends the process */
        const struct timespec t = {0, 100000000};
        nanosleep(&t, NULL);
    }
    log_error(e);
    _exit(err_exit_code(e->code));
}

/* Handles a packet of rank r at rank 0. */
static void handle_packet(struct watch *w, int r)
{
    struct peer *p = &w->peers[r];
    const struct packet *in = &p->connection.in;
    p->heard = clock_seconds();
    /* carries no state: the previous one remains valid */
    if (in->kind == PACKET_SIGNAL) watch_end_crashed(w, r, in->code);
    p->state = *in;
    switch (in->kind) {
    case PACKET_BYE:
        p->bye = true;
        break;
    case PACKET_DEAF:
    case PACKET_ERROR:
        p->failed = true;
        p->silent = in->kind == PACKET_DEAF;
        p->error.code = in->code;
        snprintf(p->error.message, sizeof p->error.message, "%s", in->text);
        if (w->first_error <= 0) w->first_error = clock_seconds();
        break;
    default:
        break;
    }
}

static void hear_peer(struct watch *w, int r)
{
    struct peer *p = &w->peers[r];
    int got;
    while ((got = watch_net_receive(&p->connection)) > 0) {
        if (w->rank == 0) {
            handle_packet(w, r);
        } else {
            p->heard = clock_seconds();
            if (p->connection.in.kind == PACKET_END) _exit(p->connection.in.code);
            if (p->connection.in.kind == PACKET_BYE) p->bye = true;
            p->state = p->connection.in;
        }
    }
    if (got == 0) return;
    pthread_mutex_lock(&w->lock);
    p->gone = true; /* nothing more is sent to it */
    pthread_mutex_unlock(&w->lock);
    if (p->bye || p->failed) return; /* a failed rank is named by its error */
    /* Rank 0 has ended, and may have reported: watch_decide waits for the launcher. */
    if (w->rank && w->missed_at > 0) return;
    if (w->rank || !p->state.asked) watch_end_lost(w, w->rank ? 0 : r);
    /* When one rank has died, mpirun asks all to end, then kills them: the first one must be
     * named. */
    if (!w->lost) {
        w->lost = r;
        w->lost_at = clock_seconds();
    }
}

/* ---- the watching thread */

static void wait_for_news(struct watch *w)
{
    struct pollfd fds[1 + 64], *list = fds;
    const int n = w->rank ? 1 : w->size;
    if (n > 64 && !(list = calloc((size_t)n + 1, sizeof *list))) return;
    list[0] = (struct pollfd){.fd = w->wake[0], .events = POLLIN};
    for (int r = 0; r < n; r++) /* poll skips -1 */
        list[1 + r] = (struct pollfd){.fd = w->peers[r].gone ? -1 : w->peers[r].connection.fd, .events = POLLIN};
    poll(list, (nfds_t)n + 1, (int)(TICK * 1000));
    if (list[0].revents) {
        char junk[64];
        if (read(w->wake[0], junk, sizeof junk) < 0) junk[0] = 0;
    }
    for (int r = 0; r < n; r++)
        if (list[1 + r].revents) hear_peer(w, r);
    if (list != fds) free(list);
}

/* Checks for trouble of this rank: an error of the main thread, a crash in rank 0, a vanished
 * launcher. */
static void check_self(struct watch *w)
{
    pthread_mutex_lock(&w->lock);
    const double now = clock_seconds();
    if (!w->rank) {
        fill_state(w, PACKET_STATE);
        w->peers[0].state = w->mine;
        w->peers[0].heard = now;
    }
    if (getppid() != w->parent && !w->failing && !w->farewell) {
        err_set(&w->failure, TARE_E_COMM, __FILE__, __LINE__, "the process that started the ranks (mpirun, srun) has ended");
        w->failing = w->orphan = true;
    }
    if (w->failing && w->leave_at <= 0) {
        w->leave_at = now + LAST_WORD;
        if (w->rank) {
            w->mine.code = w->failure.code;
            snprintf(w->mine.text, sizeof w->mine.text, "%.*s", (int)sizeof w->mine.text - 1, w->failure.message);
            send_mine(w, PACKET_ERROR);
        } else {
            w->peers[0].failed = true;
            w->peers[0].error = w->failure;
            if (w->first_error <= 0) w->first_error = now;
        }
    }
    pthread_mutex_unlock(&w->lock);
    if (w->rank == 0 && crashed) watch_end_crashed(w, 0, crashed);
    if (w->rank && w->leave_at > 0 && now > w->leave_at) _exit(err_exit_code(w->failure.code));
}

/* Checks rank 0. A rank that has lost rank 0 tries to notify it, because rank 0 may still receive
 * (a network that is down in one direction). */
static void check_hub(struct watch *w)
{
    if (!w->rank || w->missed_at > 0 || !watch_misses_hub(w)) return;
    w->missed_at = clock_seconds();
    w->asked_before = *signals_flag() != 0;
    pthread_mutex_lock(&w->lock);
    w->mine.code = TARE_E_COMM;
    watch_hub_is_missing(w->mine.text, sizeof w->mine.text);
    send_mine(w, PACKET_DEAF);
    pthread_mutex_unlock(&w->lock);
}

static void *watch_main(void *arg)
{
    struct watch *w = arg;
    double sent = 0;
    for (;;) {
        wait_for_news(w);
        pthread_mutex_lock(&w->lock);
        const bool stop = w->stop;
        if (!stop && clock_seconds() - sent > TICK) {
            send_mine(w, PACKET_STATE);
            sent = clock_seconds();
        }
        pthread_mutex_unlock(&w->lock);
        if (stop) return NULL;
        check_self(w);
        check_hub(w);
        pthread_mutex_lock(&w->lock);
        const bool farewell = w->farewell;
        pthread_mutex_unlock(&w->lock);
        watch_decide(w, farewell);
    }
}

/* ---- crashes */

static struct sigaction before[NSIG];

/* Reports a crash, then restores the previous handler of the signal: a fault recurs on return, a
 * signal that was sent is sent again.
 * Of *w it reads only fields that are constant while the watching thread runs: any thread may hold
 * the lock, including this one. */
static void on_crash(int signal_number, siginfo_t *info, void *context)
{
    struct watch *w = watched;
    (void)context;
    sigaction(signal_number, &before[signal_number], NULL);
    if (w && getpid() == w->self) { /* not in a forked child */
        if (w->rank) {
            const struct packet p = {.magic = PACKET_MAGIC, .kind = PACKET_SIGNAL, .rank = w->rank, .code = signal_number};
            watch_net_send(w->peers[0].connection.fd, &p);
        } else if (!pthread_equal(pthread_self(), w->thread)) {
            const struct timespec t = {3, 0};
            crashed = signal_number;
            wake_thread(w);
            nanosleep(&t, NULL); /* the watching thread ends the process */
        }
    }
    if (info->si_code <= 0) raise(signal_number);
}

static void catch_crashes(void)
{
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction a = {.sa_sigaction = on_crash, .sa_flags = SA_NODEFER | SA_SIGINFO};
        sigemptyset(&a.sa_mask);
        sigaction(signals[i], &a, &before[signals[i]]);
    }
}

/* ---- life */

static tare_status new_watch(int rank, int size, struct watch **out, struct err *e)
{
    struct watch *w;
    TRY(mem_new((int64_t)sizeof *w, (void **)out, e));
    w = *out;
    w->rank = rank;
    w->size = size;
    w->listener = w->wake[0] = w->wake[1] = -1;
    w->parent = getppid();
    w->self = getpid();
    w->left_at = clock_seconds();
    pthread_mutex_init(&w->lock, NULL);
    w->mine = (struct packet){.magic = PACKET_MAGIC, .rank = rank, .pid = (int32_t)w->self};
    gethostname(w->mine.host, sizeof w->mine.host - 1);
    TRY(mem_new((rank ? 1 : size) * (int64_t)sizeof *w->peers, (void **)&w->peers, e));
    for (int r = 0; r < (rank ? 1 : size); r++) {
        w->peers[r].connection.fd = -1;
        w->peers[r].state = (struct packet){.rank = r};
    }
    if (pipe(w->wake)) FAIL(e, TARE_E_COMM, "no pipe for the watching thread");
    for (int i = 0; i < 2; i++) {
        fcntl(w->wake[i], F_SETFD, FD_CLOEXEC);
        fcntl(w->wake[i], F_SETFL, O_NONBLOCK);
    }
    return TARE_OK;
}

tare_status watch_listen(int size, char *address, struct watch **out, struct err *e)
{
    *out = NULL;
    tare_status status = new_watch(0, size, out, e);
    if (!status) status = watch_net_listen(address, &(*out)->token, &(*out)->listener, e);
    if (status) {
        watch_free(*out);
        *out = NULL;
    }
    return status;
}

tare_status watch_connect(int rank, int size, const char *address, struct watch **out, struct err *e)
{
    *out = NULL;
    tare_status status = new_watch(rank, size, out, e);
    if (!status) status = watch_net_connect(address, &(*out)->mine, &(*out)->peers[0].state, &(*out)->peers[0].connection.fd, e);
    if (status) {
        watch_free(*out);
        *out = NULL;
    } else {
        (*out)->mine.calls = 0;
    }
    return status;
}

static tare_status accept_all(struct watch *w, struct err *e)
{
    const double until = clock_seconds() + WATCH_JOIN;
    for (int missing = w->size - 1; missing > 0;) {
        struct pollfd p = {.fd = w->listener, .events = POLLIN};
        struct packet hello = {0};
        int fd = -1;
        if (clock_seconds() > until)
            FAIL(e, TARE_E_COMM, "%d rank%s could not reach rank 0 over TCP; let the hosts of a job connect to each other", missing,
                 missing > 1 ? "s" : "");
        if (poll(&p, 1, 200) == 1) watch_net_accept(w->listener, w->token, &w->mine, &fd, &hello);
        if (fd < 0) continue;
        if (hello.rank < 1 || hello.rank >= w->size || w->peers[hello.rank].connection.fd >= 0) {
            close(fd);
            continue;
        }
        hello.calls = 0;
        w->peers[hello.rank].connection.fd = fd;
        w->peers[hello.rank].state = hello;
        missing--;
    }
    close(w->listener);
    w->listener = -1;
    return TARE_OK;
}

tare_status watch_start(struct watch *w, double timeout_s, struct err *e)
{
    w->timeout_s = timeout_s;
    if (w->rank == 0) TRY(accept_all(w, e));
    for (int r = 0; r < (w->rank ? 1 : w->size); r++) w->peers[r].heard = clock_seconds();
    sigset_t all, old;
    sigfillset(&all); /* the main thread handles signals */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int code = pthread_create(&w->thread, NULL, watch_main, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code) FAIL(e, TARE_E_NOMEM, "no thread to watch over the ranks");
    w->running = true;
    watched = w;
    catch_crashes();
    return TARE_OK;
}

void watch_farewell(struct watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->farewell = true;
    send_mine(w, PACKET_BYE);
    pthread_mutex_unlock(&w->lock);
}

void watch_free(struct watch *w)
{
    if (!w) return;
    if (w->running) {
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        pthread_mutex_unlock(&w->lock);
        wake_thread(w);
        pthread_join(w->thread, NULL);
    }
    watched = NULL;
    if (w->peers)
        for (int r = 0; r < (w->rank ? 1 : w->size); r++)
            if (w->peers[r].connection.fd >= 0) close(w->peers[r].connection.fd);
    if (w->listener >= 0) close(w->listener);
    for (int i = 0; i < 2; i++)
        if (w->wake[i] >= 0) close(w->wake[i]);
    pthread_mutex_destroy(&w->lock);
    mem_free(w->peers);
    mem_free(w);
}
