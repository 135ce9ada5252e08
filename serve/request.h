/* The body of POST /v1/completions and POST /v1/chat/completions. */
#ifndef TARE_SERVE_REQUEST_H
#define TARE_SERVE_REQUEST_H

#include "data/tokenizer.h"
#include "serve/models.h"

/* Why a request is not answered: the HTTP status and the parts of OpenAI's error object. */
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
    int64_t top, n;     /* likeliest tokens beside each; completions of a prompt */
    int64_t max_tokens; /* -1: as many as the context leaves */
    double temperature, top_p, min_p;
    int64_t top_k, seed;
    struct str stop[MAX_STOPS];
    int64_t n_stop;
    int32_t stop_ids[MAX_STOP_IDS];
    int64_t n_stop_ids;
    struct token_ids ids;      /* of all prompts */
    int64_t n_prompts, *begin; /* [n_prompts + 1] */
    /* what is made into prompts once all fields are read; borrowed from the body */
    const json_t *prompt, *messages, *template_variables;
};

/* Fills out, which comes zeroed; request_free gives it back, after a refusal too. */
tare_status request_read(const struct str *body, bool chat, const struct served_models *models, const struct serve_options *o,
                         struct request *out, struct refusal *no);
void request_free(struct request *r);

/* A refusal with a message as FAIL's. */
#define REFUSE(NO, HTTP, CODE, PARAM, STATUS, ...)                                                                                 \
    do {                                                                                                                           \
        refuse((NO), (HTTP), (CODE), (PARAM));                                                                                     \
        FAIL(&(NO)->e, (STATUS), __VA_ARGS__);                                                                                     \
    } while (0)
void refuse(struct refusal *no, int http, const char *code, const char *param);

#endif
