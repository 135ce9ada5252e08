/* `tare serve`: an OpenAI-compatible HTTP server over the sampler.
 *
 *   http.c       connections: routes, keys, bodies, answers           one thread of libmicrohttpd
 *   request.c    parses a body of JSON into a request or a refusal
 *   batcher.c    requests join and leave the models' sessions         one thread, which computes
 *   choice.c     a growing completion: text, stop strings, logprobs
 *   answer.c     JSON of completions and chunks of a stream
 *   metrics.c    Prometheus' text format
 *
 * The two threads share jobs (job.h) under one lock. */
#ifndef TARE_SERVE_SERVE_H
#define TARE_SERVE_SERVE_H

#include "config/config.h"

/* field, option, default, minimum, maximum, description */
#define SERVE_OPTIONS(X)                                                                                                           \
    X(port, "port", 8000, 0, 65535, "port; 0: a free one, printed in the first line of output")                                    \
    X(queue, "queue", 256, 0, 1 << 20, "completions that may wait for a slot in the batch; more are refused with 429")             \
    X(max_n, "max-n", 128, 1, 1 << 16, "maximum completions per request: prompts times n")                                         \
    X(max_body, "max-body", 8388608, 64, 1 << 30, "maximum bytes of a request's body; more are refused with 413")                  \
    X(max_connections, "max-connections", 512, 1, 1 << 16, "maximum open connections")                                             \
    X(timeout, "timeout", 600, 1, 1 << 20, "maximum seconds from a request's arrival to its end; then it ends with 504")           \
    X(idle, "idle", 60, 1, 1 << 20, "seconds without a byte after which the connection of a slow client is closed")                \
    X(drain, "drain", 60, 0, 1 << 20, "seconds that running requests may take to finish after SIGTERM or SIGINT")

struct serve_options {
    const char *host, *key; /* key NULL: no key is required */
    /* names separated by commas that requests may have in Host, in addition to addresses, localhost
     * and `host`; NULL: none */
    const char *allowed_hosts;
#define SERVE_FIELD(NAME, OPTION, DEFAULT, LEAST, MOST, WHAT) int64_t NAME;
    SERVE_OPTIONS(SERVE_FIELD)
#undef SERVE_FIELD
};

struct serve_model {
    char name[128];
    struct config config; /* model.path is its folder */
};

/* Opens the models, prints its address on standard output, and serves until SIGTERM or SIGINT. */
tare_status serve_run(const struct serve_options *o, const struct serve_model *models, int64_t n, struct err *e);

#endif
