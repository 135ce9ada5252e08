/* Declarations shared by the files of core/verify. */
#ifndef TARE_CORE_VERIFY_INTERNAL_H
#define TARE_CORE_VERIFY_INTERNAL_H

#include "base/pool.h"
#include "verify/verify.h"

struct worker;  /* call/worker.h */
struct waiting; /* waiting.c */

struct verifier {
    const struct plugin *plugin;
    const char *name; /* its name in verifier.plugins; in the arena of struct verify */
    double weight;
    const tare_value *values;          /* in the arena of struct verify */
    uint32_t uses;                     /* fields of the row: TARE_USES_ANSWER, ... */
    int64_t n_instances;               /* 1, or one per worker */
    struct plugin_instance **instance; /* [n_instances] */
    struct waiting *waiting;           /* NULL until the first submission */
    const char *identity;              /* as a worker process told it; NULL: none, or no worker processes */
};

struct verify {
    struct verify_options options;
    struct pool *pool;
    struct verifier verifiers[TARE_LIMIT_VERIFIERS];
    int64_t n_verifiers;
    int64_t segmenter; /* index of the verifier that gives segments; -1: none */
    /* the caller's; also receives the metrics of plugins in worker processes */
    struct plugin_env env;
    struct arena arena;
    struct worker *workers; /* [threads]; NULL: plugins run in this process */
};

/* Iterates over the entries of verifier.plugins and modifies the text. `next` is the text before
 * the first step. */
struct verify_list {
    char *next, *rest;
    bool begun;
};
tare_status verify_list_next(struct verify_list *l, struct verify_use *use, bool *more, struct err *e);

/* A verdict and the streams to which the plugin writes its texts. It is not moved between open and
 * the last use. */
struct verify_output {
    tare_verdict verdict;
    tare_stream extracted, note;
};
/* Makes an empty verdict. extracted, note: NULL: not wanted. */
void verify_output_open(struct verify_output *o, struct verify_text *extracted, struct verify_text *note);
/* Overwrites the plugin's secrets in the texts of a verdict, which are recorded with the run. v: that
 * of an opened output. */
void verify_output_hide(const tare_verdict *v, const struct plugin_instance *i);
/* Replaces what was written by a verdict of the host: reward 0, no extracted text, this note. */
void verify_output_lose(struct verify_output *o, int32_t code, const char *note);
/* Writes to a stream of an output; no-op for NULL. */
void verify_put(const tare_stream *out, tare_text text);

/* One plugin call: verifier c verifies n items on worker `thread`. */
struct verify_call {
    int64_t c;
    int thread;
    const struct verify_item *items;
    int64_t n;
    struct verify_output *outputs; /* [n] */
};
/* Return true, or TARE_E_CANCELLED, if the run is being cancelled; the remaining items are then not
 * verified. Any thread. */
bool verify_cancelled(const struct verify *v);
tare_status verify_go_on(const struct verify *v, struct err *e);
enum { VERIFY_POLL_NS = 100000000 }; /* the longest wait between two checks for cancellation */
/* Builds the plugin's view of an item. */
tare_completion verify_completion(const struct verify_item *item, int64_t deadline_ns);
/* Returns the time limit of a call in nanoseconds, verifier.timeout per item; 0: unlimited. */
int64_t verify_call_time(const struct verify *v, const struct verify_call *call);
/* Returns whether verifier c receives all items in one call. */
bool verify_together(const struct verify *v, int64_t c);

/* waiting.c: verifiers with submit, poll and take. waiting_collect submits the items that were not
 * submitted before and waits for all of them; waiting_take then returns each verdict until
 * waiting_end. */
bool verify_waits_for(const struct verify *v, int64_t c);
tare_status waiting_collect(struct verify *v, int64_t c, const struct verify_item *items, int64_t n, struct err *e);
void waiting_take(const struct verify *v, int64_t c, int64_t at, struct verify_output *out);
void waiting_end(struct verify *v, int64_t c);
void waiting_free(struct verify *v, int64_t c);

/* segments.c: writes the items' segments to the token columns of the batch. */
tare_status verify_place_segments(const struct verify *v, const struct verify_item *items, struct batch *b, struct arena *a,
                                  struct err *e);

/* One worker process per thread, started by the thread's first call. If a worker dies or is late,
 * every item of the call gets the verdict crashed or timed out, and the next call starts a new
 * worker. Errors: the worker cannot be started, its plugins refuse to open, or a plugin's call
 * failed. */
tare_status worker_group_new(int n, struct worker **out, struct err *e);
void worker_group_free(struct worker *p, int n);
tare_status worker_group_start(const struct verify *v, int thread, struct err *e);
/* Takes the verifiers' identities from the first worker's answer, right after it was started. */
tare_status worker_group_identities(struct verify *v, struct err *e);
tare_status worker_group_call(const struct verify *v, const struct verify_call *call, struct err *e);
/* reply.c: reads the rest of a worker's reply to a call, after its status. w->bad: the reply is
 * truncated or has values that a verifier must not return, for instance because a plugin overwrote
 * its process's memory; the verdicts are then undefined. */
struct wire;
void reply_take(const struct verify *v, struct wire *w, const struct verify_call *call);

#endif
