/* The body of POST /v1/completions and POST /v1/chat/completions. */
#ifndef TARE_SERVE_REQUEST_H
#define TARE_SERVE_REQUEST_H

#include "data/tokenizer.h"
#include "serve/models.h"

/* The refusal of a request: the HTTP status and the members of OpenAI's error object. */
struct refusal {
    int http;
    const char *type, *code; /* code NULL: null */
    char param[64];          /* the field; "": null */
    struct err e;
};

enum { MAX_STOPS = 16, MAX_TOP = 20, MAX_STOP_IDS = 64 };

struct request {
    struct served *model;
    bool chat, stream, usage, echo, logprobs, token_ids, ignore_eos, add_special;
    int64_t top, n;     /* likeliest tokens per token; completions per prompt */
    int64_t max_tokens; /* -1: up to the context's limit */
    double temperature, top_p, min_p;
    int64_t top_k, seed;
    struct str stop[MAX_STOPS];
    int64_t n_stop;
    int32_t stop_ids[MAX_STOP_IDS];
    int64_t n_stop_ids;
    struct token_ids ids;      /* of all prompts */
    int64_t n_prompts, *begin; /* [n_prompts + 1] */
    /* made into prompts after all fields are read; borrowed from the body */
    const json_t *prompt, *messages, *template_variables;
};

/* Fills out, which must be zeroed. Free it with request_free, also after a refusal. */
tare_status request_read(const struct str *body, bool chat, const struct served_models *models, const struct serve_options *o,
                         struct request *out, struct refusal *no);
void request_free(struct request *r);

/* Refuses with a message, as FAIL does. */
#define REFUSE(NO, HTTP, CODE, PARAM, STATUS, ...)                                                                                 \
    do {                                                                                                                           \
        request_refuse((NO), (HTTP), (CODE), (PARAM));                                                                             \
        FAIL(&(NO)->e, (STATUS), __VA_ARGS__);                                                                                     \
    } while (0)
void request_refuse(struct refusal *no, int http, const char *code, const char *param);

#endif
