/* Sampling for requests that come and go. A request joins the running batch as soon as a place is free, and leaves it with its last token.
 *
 *   session_open(sampler, options, e);
 *   session_add(sampler, &request, e);          any time between turns
 *   while (session_left(sampler)) session_turn(sampler, e);      the listener is told each token
 *   session_close(sampler);
 *
 * The tokens of a request are those that sampler_run draws for it with the same parameters and key, whatever else is in the batch.
 * A sampler has one session, and makes no run meanwhile. Threads: one owner; the listener is called by session_turn. */
#ifndef TARE_CORE_ROLLOUT_SESSION_H
#define TARE_CORE_ROLLOUT_SESSION_H

#include "rollout/rollout.h"

enum { SESSION_PROMPT = -1 };

struct session_token {
    int64_t sample, position; /* sample SESSION_PROMPT: a token of the prompt; position in the completion, or in the prompt */
    int32_t id;
    float logprob;
    const float *logits; /* [V] that it comes from, where the request asked for them; before division by the temperature */
    bool ends;           /* the last token of this sample */
    enum finish finish;
};
/* false: the sample ends here in any case. It may not add or drop requests. */
typedef bool session_listener(void *owner, const struct session_token *token);

struct session_options {
    int64_t batch; /* sequences decoded together */
    int64_t share; /* sessions of this process, which share the memory for keys and values */
    session_listener *listener;
};

struct session_request {
    struct sample_request sample; /* prompt and where stay the caller's until the request has ended; so does params */
    const struct sample_params *params;
    struct rng_key key; /* as sampler_run's */
    bool prompt_rows;   /* the tokens of the prompt but the first are told, with logprobs and logits, before those that are drawn */
    bool token_rows;    /* drawn tokens come with their logits */
    void *owner;        /* handed to the listener */
};

struct session_state { /* sequences: asked for and not finished, running; blocks of the cache, in use */
    int64_t left, running, blocks, blocks_used;
};

/* Makes the cache: rollout.kv_tokens as given to sampler_new, else room for the batch at 2048 tokens each and one whole context, as far as the
 * memory allows. */
tare_status session_open(struct sampler *s, const struct session_options *o, struct err *e);
/* TARE_E_RANGE, TARE_E_INVALID, TARE_E_CONFIG: the request cannot be sampled; nothing of it has joined. */
tare_status session_add(struct sampler *s, const struct session_request *r, struct err *e);
/* The requests of an owner end; the listener is not told. */
void session_drop(struct sampler *s, const void *owner);
/* A turn: requests join, each running sequence gets a token, or several on a device. After an error the session is to be closed. */
tare_status session_turn(struct sampler *s, struct err *e);
int64_t session_left(const struct sampler *s);
struct session_state session_state(const struct sampler *s);
void session_close(struct sampler *s);

#endif
