#include "dist/gpu_start.h"

#include "base/arena.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* START_SECONDS: NCCL takes a few seconds on a host and some tens on many. SMALL and LARGE: bytes
 * that a rank receives; NCCL chooses its protocol by the size. */
enum { START_SECONDS = 120, SMALL = 4 << 10, LARGE = 64 << 20 };

void gpu_start_settings(void)
{
    setenv("NCCL_NVLS_ENABLE", "0", 0);
    setenv("NCCL_MAX_P2P_NCHANNELS", "8", 0);
}

/* ---- the deadline */

static void end_late(struct gpu_deadline *d)
{
    struct err e = {0};
    err_set(&e, TARE_E_COMM, __FILE__, __LINE__,
            "NCCL: %s has not ended within %g s at the start of the job, before anything was computed; %s", d->what, d->seconds,
            GPU_START_ADVICE);
    d->host->abort(d->host, &e);
    /* It returns in a job of one process, whose main thread does not. */
    log_error(&e);
    _exit(err_exit_code(e.code));
}

static void *wait_for_end(void *arg)
{
    struct gpu_deadline *d = arg;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const double whole = (double)until.tv_sec + 1e-9 * (double)until.tv_nsec + d->seconds;
    until.tv_sec = (time_t)whole;
    until.tv_nsec = (long)(1e9 * (whole - (double)until.tv_sec));
    pthread_mutex_lock(&d->lock);
    int code = 0;
    while (!d->ended && !code) code = pthread_cond_timedwait(&d->over, &d->lock, &until);
    const bool late = !d->ended;
    pthread_mutex_unlock(&d->lock);
    if (late) end_late(d);
    return NULL;
}

tare_status gpu_deadline_begin(struct gpu_deadline *d, struct comm *host, double timeout_s, struct err *e)
{
    pthread_condattr_t monotonic;
    *d = (struct gpu_deadline){
        .host = host, .seconds = timeout_s > 0 && timeout_s < START_SECONDS ? timeout_s : START_SECONDS, .what = "its first call"};
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&d->over, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (!pthread_create(&d->thread, NULL, wait_for_end, d)) return TARE_OK;
    pthread_cond_destroy(&d->over);
    pthread_mutex_destroy(&d->lock);
    FAIL(e, TARE_E_NOMEM, "no thread to watch over NCCL's start");
}

void gpu_deadline_note(struct gpu_deadline *d, const char *what)
{
    pthread_mutex_lock(&d->lock);
    d->what = what;
    pthread_mutex_unlock(&d->lock);
}

void gpu_deadline_end(struct gpu_deadline *d)
{
    pthread_mutex_lock(&d->lock);
    d->ended = true;
    pthread_cond_signal(&d->over);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    pthread_cond_destroy(&d->over);
    pthread_mutex_destroy(&d->lock);
}

/* ---- the trial */

struct trial {
    struct comm *c;
    const struct kernels *k;
    const struct kctx *ctx;
    uint32_t *host; /* [words of the whole] */
    void *in, *out;
};

/* The word at i that one rank sends to another. */
static uint32_t word_of(int from, int to, int64_t i)
{
    return ((uint32_t)i + 1) * UINT32_C(2654435761) ^ (uint32_t)from * UINT32_C(0x9e3779b9) ^ (uint32_t)to * UINT32_C(0x85ebca6b);
}

/* Checks what was received against what rank r has sent to `to`. */
static tare_status compare(const struct trial *t, const char *what, int64_t words, bool exchanged, struct err *e)
{
    const struct comm *c = t->c;
    t->k->backend->download(t->ctx, t->host, t->out, c->size * words * 4);
    for (int r = 0; r < c->size; r++)
        for (int64_t i = 0; i < words; i++)
            if (t->host[r * words + i] != word_of(r, exchanged ? c->rank : 0, i))
                FAIL(e, TARE_E_COMM,
                     "NCCL: %s of %lld bytes at the start has delivered wrong bytes to rank %d (from rank %d, byte %lld); %s", what,
                     (long long)(c->size * words * 4), c->rank, r, (long long)(4 * i), GPU_START_ADVICE);
    return TARE_OK;
}

static tare_status try_once(const struct trial *t, bool exchanged, int64_t words, struct err *e)
{
    struct comm *c = t->c;
    const struct backend *b = t->k->backend;
    const int64_t piece = words * 4, whole = c->size * piece;
    memset(t->host, 0xa5, (size_t)whole);
    b->upload(t->ctx, t->out, t->host, whole);
    for (int q = 0; q < (exchanged ? c->size : 1); q++)
        for (int64_t i = 0; i < words; i++) t->host[q * words + i] = word_of(c->rank, q, i);
    b->upload(t->ctx, t->in, t->host, exchanged ? whole : piece);
    if (exchanged)
        TRY(c->all_to_all(c, t->in, piece, t->out, e));
    else
        TRY(c->all_gather(c, t->in, piece, t->out, e));
    return comm_agree(c, compare(t, exchanged ? "all_to_all" : "all_gather", words, exchanged, e), e);
}

tare_status gpu_start_try(struct comm *c, const struct kernels *k, const struct kctx *ctx, struct err *e)
{
    const int64_t sizes[] = {SMALL, LARGE}, whole = LARGE + 4 * c->size;
    struct trial t = {.c = c, .k = k, .ctx = ctx};
    tare_status status = mem_new(whole, (void **)&t.host, e);
    t.in = k->backend->alloc(ctx, whole);
    t.out = k->backend->alloc(ctx, whole);
    if (!status && !(t.in && t.out))
        status = err_set(e, TARE_E_NOMEM, __FILE__, __LINE__, "the device has no %d MB free to try NCCL with", 2 * (LARGE >> 20));
    status = comm_agree(c, status, e);
    for (int i = 0; !status && i < 4; i++) {
        const int64_t words = sizes[i / 2] / 4 / c->size;
        status = try_once(&t, i % 2, words ? words : 1, e);
    }
    if (t.in) k->backend->release(ctx, t.in);
    if (t.out) k->backend->release(ctx, t.out);
    mem_free(t.host);
    return status;
}
