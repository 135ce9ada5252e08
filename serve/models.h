/* The served models by name. They share a thread pool, so one of them computes at a time. */
#ifndef TARE_SERVE_MODELS_H
#define TARE_SERVE_MODELS_H

#include "engine/engine.h"
#include "rollout/session.h"
#include "serve/serve.h"
#include "template/chat.h"

struct served {
    const char *name;
    struct engine engine;
    struct chat *chat;        /* NULL: no chat template */
    struct err no_chat;       /* the reason for chat NULL */
    int64_t batch;            /* sequences decoded together */
    int64_t pending;          /* requested and unfinished completions; under the server's lock */
    struct session_state now; /* after the last iteration; under the server's lock */
    struct sampler_stats stats;
};

struct served_models {
    struct served *list;
    int64_t n;
};

tare_status models_open(const struct serve_model *given, int64_t n, session_listener *listener, struct served_models *out,
                        struct err *e);
void models_close(struct served_models *m);
/* Returns NULL for an unknown name. */
struct served *models_find(const struct served_models *m, const char *name);
/* Restarts a session that has failed. */
tare_status models_restart(const struct served_models *m, struct served *s, session_listener *listener, struct err *e);

#endif
