/* What the files of core/verify share. */
#ifndef TARE_CORE_VERIFY_INTERNAL_H
#define TARE_CORE_VERIFY_INTERNAL_H

#include "base/pool.h"
#include "verify/verify.h"

#include <pthread.h>

enum {
    VERIFY_MAX = 16,      /* verifiers of one run */
    VERIFY_EXTRACT = 512, /* bytes kept of an extracted answer */
    VERIFY_SEGMENTS = 256 /* segments of a completion, at most */
};

struct worker;  /* call/worker.h */
struct waiting; /* waiting.c */

struct verifier {
    const struct plugin *plugin;
    const char *name; /* in verifier.plugins; in the arena of struct verify */
    double weight;
    const tare_value *values;          /* in the arena of struct verify */
    uint32_t uses;                     /* of a row: TARE_USES_ANSWER, ... */
    int64_t n_instances;               /* 1, or one for each worker */
    struct plugin_instance **instance; /* [n_instances] */
    struct waiting *waiting;           /* waiting.c; NULL: nothing was submitted yet */
};

struct verify {
    struct verify_options options;
    struct pool *pool;
    struct verifier verifiers[VERIFY_MAX];
    int64_t n_verifiers;
    int64_t segmenter;     /* the verifier that gives segments; -1: none */
    struct plugin_env env; /* the caller's: what plugins in worker processes report goes there too */
    struct arena arena;
    struct worker *workers; /* [threads]; NULL: plugins run in this process */
    pthread_mutex_t lock;   /* of the reasons */
    const char **reasons;   /* that came from workers, each once */
    int64_t n_reasons, reasons_capacity;
};

/* A walk through verifier.plugins, whose text it changes: next is the text before the first step. */
struct verify_list {
    char *next, *rest;
    bool begun;
};
tare_status verify_list_next(struct verify_list *l, struct verify_use *use, bool *more, struct err *e);

/* One call of a plugin: verifier c judges n items as worker `thread`. */
struct verify_call {
    int64_t c;
    int thread;
    const struct verify_item *items;
    int64_t n;
    tare_verdict *verdicts; /* [n] */
};
/* Whether the run is being stopped: what is not judged yet is not judged any more. Any thread. TARE_E_CANCELLED. */
bool verify_cancelled(const struct verify *v);
tare_status verify_go_on(const struct verify *v, struct err *e);
enum { VERIFY_POLL_NS = 100000000 }; /* the longest wait between two checks for cancellation */
/* What a plugin is told of an item. */
tare_answer verify_answer(const struct verify_item *item, int64_t deadline_ns);
/* Nanoseconds that the call may take: verifier.timeout for each item. 0: any. */
int64_t verify_call_time(const struct verify *v, const struct verify_call *call);
/* Whether verifier c gets all items in one call. */
bool verify_together(const struct verify *v, int64_t c);

/* waiting.c: whether verifier c's answers are submitted and waited for. waiting_judge: what was submitted before is waited for, the rest
 * submitted too; then the verdict of each, until waiting_end. */
bool verify_waits_for(const struct verify *v, int64_t c);
tare_status waiting_judge(struct verify *v, int64_t c, const struct verify_item *items, int64_t n, struct err *e);
void waiting_take(struct verify *v, int64_t c, int64_t at, struct verify_item *item, tare_verdict *out);
void waiting_end(struct verify *v, int64_t c);
void waiting_free(struct verify *v, int64_t c);

/* segments.c: the items' segments as columns of the batch's tokens. */
tare_status verify_place_segments(const struct verify *v, const struct verify_item *items, struct batch *b, struct arena *a,
                                  struct err *e);

/* The one copy of a reason that lives as long as v. Any thread. */
tare_status verify_intern(struct verify *v, tare_text reason, const char **out, struct err *e);

/* One worker process a thread; the first call of a thread starts its own. A worker that dies gives the verdict crashed, one that is late
 * timeout, to every item of the call; the next call starts another. An error: the worker cannot be started, its plugins refuse, or a plugin's call failed. */
tare_status worker_group_new(int n, struct worker **out, struct err *e);
void worker_group_free(struct worker *p, int n);
tare_status worker_group_start(const struct verify *v, int thread, struct err *e);
tare_status worker_group_call(const struct verify *v, const struct verify_call *call, struct err *e);
/* reply.c: the rest of a worker's answer to a call, after its status. w->bad: it breaks off, or says what no verifier may say (a plugin that writes over
 * its process's memory, say); the verdicts are then undefined. */
struct wire;
tare_status reply_take(const struct verify *v, struct wire *w, const struct verify_call *call, struct err *e);

#endif
