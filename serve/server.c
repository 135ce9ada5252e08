#include "base/log.h"
#include "base/signals.h"
#include "serve/http.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LAST_SECONDS = 5 }; /* for clients to read their answers after everything has ended */

static tare_status say_where(const struct server *s, const char *where, struct err *e)
{
    printf("tare serves");
    for (int64_t i = 0; i < s->models.n; i++) printf("%s %s", i ? "," : "", s->models.list[i].name);
    printf(" at http://%s/v1\n", where);
    if (fflush(stdout)) FAIL(e, TARE_E_IO, "standard output cannot be written: %s", strerror(errno));
    return TARE_OK;
}

/* Waits until no request is open, or the seconds are over. */
static void wait_quiet(struct server *s, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds;
    pthread_mutex_lock(&s->lock);
    while (s->n_exchanges && !pthread_cond_timedwait(&s->quiet, &s->lock, &until)) continue;
    pthread_mutex_unlock(&s->lock);
}

static void our_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGUSR1); /* sent by mpirun */
}

/* Ends running requests and accepts no new ones. */
static void stop_server(struct server *s, pthread_t batcher)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_mutex_unlock(&s->lock);
    const int fd = http_quiet(s);
    log_info("stopping: running requests have %lld seconds to finish", (long long)s->options->drain);
    wait_quiet(s, (double)s->options->drain);
    pthread_mutex_lock(&s->lock);
    s->finish = true;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
    pthread_join(batcher, NULL);
    wait_quiet(s, LAST_SECONDS);
    http_close(s, fd);
}

/* Serves until a signal of `ours` arrives. They are blocked in all threads, and this thread
 * receives the first one, also if it arrived while the models were opened. */
static tare_status serve_requests(struct server *s, const sigset_t *ours, const sigset_t *open, struct err *e)
{
    char where[HTTP_WHERE];
    pthread_t batcher;
    int first;
    TRY(http_open(s, where, e));
    tare_status status = TARE_OK;
    if (pthread_create(&batcher, NULL, batcher_run, s)) {
        http_close(s, -1);
        FAIL(e, TARE_E_NOMEM, "cannot create the sampling thread");
    }
    status = say_where(s, where, e);
    if (!status && !sigwait(ours, &first)) {
        pthread_sigmask(SIG_SETMASK, open, NULL);
        raise(first); /* base/signals.h records it, and a second one ends the process at once */
    }
    stop_server(s, batcher);
    return status;
}

tare_status serve_run(const struct serve_options *o, const struct serve_model *models, int64_t n, struct err *e)
{
    struct server s = {.options = o, .began = (int64_t)time(NULL)};
    pthread_condattr_t monotonic;
    sigset_t ours, open;
    TRY(mhd_open(&s.mhd, e));
    our_signals(&ours);
    /* before any thread is created, because threads inherit it */
    pthread_sigmask(SIG_BLOCK, &ours, &open);
    signals_catch();
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.work, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s.quiet, &monotonic);
    pthread_condattr_destroy(&monotonic);
    tare_status status = models_open(models, n, batcher_listen, &s.models, e);
    if (!status) status = serve_requests(&s, &ours, &open, e);
    models_close(&s.models);
    pthread_cond_destroy(&s.quiet);
    pthread_cond_destroy(&s.work);
    pthread_mutex_destroy(&s.lock);
    return status;
}
