/* Sampling for requests that come and go. A request joins the running batch as soon as there is
 * space, and leaves it after its last token.
 *
 *   session_open(sampler, options, e);
 *   session_add(sampler, &request, e);          any time between iterations
 *   while (session_remaining(sampler))
 *       session_iterate(sampler, e);            reports each token to the listener
 *   session_close(sampler);
 *
 * The tokens of a request are those that sampler_run draws for it with the same parameters and key,
 * whatever else is in the batch. A sampler has one session at a time, and no run meanwhile.
 * Threads: one owner; session_iterate calls the listener. */
#ifndef TARE_CORE_ROLLOUT_SESSION_H
#define TARE_CORE_ROLLOUT_SESSION_H

#include "rollout/rollout.h"

enum { SESSION_PROMPT = -1 };

struct session_token {
    /* sample SESSION_PROMPT: a token of the prompt; position in the completion, or in the prompt */
    int64_t sample, position;
    int32_t id;
    float logprob;
    /* [V] logits it was drawn from, before division by the temperature, if the request wants
     * them. */
    const float *logits;
    bool ends; /* the last token of this sample */
    enum finish finish;
};
/* Return false to end the sample here. The listener must not add or drop requests. */
typedef bool session_listener(void *owner, const struct session_token *token);

struct session_options {
    int64_t batch; /* sequences decoded together */
    int64_t share; /* number of sessions of this process, which share the memory for keys and values */
    session_listener *listener;
};

struct session_request {
    /* prompt, where and params stay owned by the caller until the request has ended. */
    struct sample_request sample;
    const struct sample_params *params;
    struct rng_key key; /* as for sampler_run */
    /* Report the prompt's tokens except the first, with logprobs and logits, before the drawn
     * tokens. */
    bool prompt_rows;
    bool token_rows; /* report drawn tokens with their logits */
    void *owner;     /* passed to the listener */
};

struct session_state {
    int64_t remaining, running;  /* unfinished sequences; those of them in the batch */
    int64_t blocks, blocks_used; /* of the cache: all; those in use */
};

/* Allocates the cache: rollout.kv_tokens as given to sampler_new, otherwise enough for the batch at
 * 2048 tokens each plus one whole context, within the available memory. */
tare_status session_open(struct sampler *s, const struct session_options *o, struct err *e);
/* TARE_E_RANGE, TARE_E_INVALID, TARE_E_CONFIG: the request cannot be sampled and has not joined. */
tare_status session_add(struct sampler *s, const struct session_request *r, struct err *e);
/* Ends the requests of an owner without reporting to the listener. */
void session_drop(struct sampler *s, const void *owner);
/* Runs an iteration: requests join, and each running sequence gets a token, or several on a device
 * and where drafts were right.
 * After an error the session must be closed. */
tare_status session_iterate(struct sampler *s, struct err *e);
int64_t session_remaining(const struct sampler *s);
struct session_state session_state(const struct sampler *s);
void session_close(struct sampler *s);

#endif
