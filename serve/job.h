/* A request in progress. The connection thread creates it, the batcher thread computes it, and the
 * connection thread answers it. Each thread owns a reference; the last release frees it. */
#ifndef TARE_SERVE_JOB_H
#define TARE_SERVE_JOB_H

#include "serve/choice.h"
#include "serve/metrics.h"
#include "serve/mhd.h"

#include <pthread.h>

struct job;
/* The part of a job for one prompt, passed to the session's listener as its owner. */
struct part {
    struct job *job;
    int64_t index;
    /* with echo only */
    struct str text;
    struct token_list tokens;
};

struct job {
    struct server *server;
    struct request r;
    struct sample_params params;
    struct part *parts;     /* [n_prompts] */
    struct choice *choices; /* [n_prompts * n] */
    int64_t open;           /* unfinished choices */
    char id[48];
    int64_t created;        /* seconds since 1970 */
    double arrived;         /* clock_seconds() */
    double first_token;     /* time of the first token; 0: none yet */
    struct refusal failure; /* http 0: none */
    /* under the server's lock from here on */
    bool joined, ended, cancelled; /* in its session; computed or failed; client has left */
    struct str out;                /* a stream's events */
    int64_t sent;                  /* bytes of out that the connection has read */
    bool streams;                  /* the answer has begun */
    struct MHD_Connection *waits;  /* suspended until there is something to send */
    int owners;
    struct job *before, *after; /* the batcher's list, in order of arrival */
};

struct server {
    const struct serve_options *options;
    struct served_models models;
    const struct mhd *mhd;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock;
    pthread_cond_t work; /* wakes the batcher: a job, or the end */
    struct job *first, *last;
    int64_t n_exchanges, n_requests; /* open requests; assigned ids */
    pthread_cond_t quiet;            /* an exchange has ended */
    bool stopping;                   /* no new requests are accepted */
    bool finish;                     /* the batcher ends running jobs and returns */
    struct metrics metrics;
    int64_t began; /* seconds since 1970 */
};

/* ---- job.c */
/* Takes ownership of the contents of r. TARE_OK: the job is queued, and *out is the connection's
 * reference. */
tare_status job_submit(struct server *s, struct request *r, struct job **out, struct refusal *no);
/* Releases a reference. Under the server's lock. */
void job_release(struct job *job);
/* Resumes the connection if it is suspended. Under the server's lock. */
void job_wake(struct job *job);

/* ---- batcher.c */
bool batcher_listen(void *part, const struct session_token *t);
void *batcher_run(void *server);

#endif
