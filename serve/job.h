/* A request on its way: made by the thread of the connections, computed by the batcher's, answered by the first again. It has an owner in each; the
 * last one to let go frees it. */
#ifndef TARE_SERVE_JOB_H
#define TARE_SERVE_JOB_H

#include "serve/choice.h"
#include "serve/metrics.h"
#include "serve/mhd.h"

#include <pthread.h>

struct job;
struct part { /* of one prompt; the owner that a session's listener is given */
    struct job *job;
    int64_t index;
    /* where echo asks for it */
    struct str text;
    struct token_list tokens;
};

struct job {
    struct server *server;
    struct request r;
    struct sample_params params;
    struct part *parts;     /* [n_prompts] */
    struct choice *choices; /* [n_prompts * n] */
    int64_t open;           /* choices that go on */
    char id[48];
    int64_t created;        /* seconds since 1970 */
    double arrived;         /* clock_seconds() */
    double first_token;     /* of the batcher; 0: none yet */
    struct refusal failure; /* http 0: none */
    /* under the server's lock from here on */
    bool joined, ended, gone;     /* in its session; computed, or failed; the client has left */
    struct str out;               /* a stream's events */
    int64_t sent;                 /* of them, what the connection took */
    bool streams;                 /* the answer has begun */
    struct MHD_Connection *waits; /* suspended until there is something to send */
    int owners;
    struct job *before, *after; /* the batcher's list, in order of arrival */
};

struct server {
    const struct serve_options *options;
    struct served_models models;
    const struct mhd *mhd;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock;
    pthread_cond_t work; /* for the batcher: a job, or the end */
    struct job *first, *last;
    int64_t n_exchanges, n_requests; /* requests that are open; ids given out */
    pthread_cond_t quiet;            /* an exchange has ended */
    bool stopping;                   /* nothing new is taken */
    bool finish;                     /* the batcher ends what runs, and itself */
    struct metrics metrics;
    int64_t began; /* seconds since 1970 */
};

/* ---- job.c */
/* Takes what is in r. TARE_OK: the job waits for the batcher, and *out is the connection's share of it. */
tare_status job_submit(struct server *s, struct request *r, struct job **out, struct refusal *no);
/* One owner less; under the server's lock. */
void job_release(struct job *job);
/* Lets the connection look again, if it waits; under the server's lock. */
void job_wake(struct job *job);

/* ---- batcher.c */
bool batcher_listen(void *part, const struct session_token *t);
void *batcher_run(void *server);

#endif
