/* A growing completion: tokens, text up to a stop string, logprobs. */
#ifndef TARE_SERVE_CHOICE_H
#define TARE_SERVE_CHOICE_H

#include "serve/request.h"

/* One of the likeliest tokens. */
struct likely {
    int32_t id;
    float logprob;
};

struct token_info {
    int32_t id;
    float logprob;
    bool known;     /* false for the first token of a prompt, which has no logprob */
    int64_t offset; /* bytes of text before it */
    int64_t n_top;
    struct likely *top; /* [n_top] likeliest first */
};

struct token_list {
    struct token_info *list;
    int64_t n, capacity;
};

struct choice {
    struct token_list tokens;
    struct token_stream stream;
    struct str text;
    int64_t ready;             /* bytes of text that cannot be part of a stop string */
    int64_t sent, sent_tokens; /* bytes and tokens that a stream has sent */
    bool begun;                /* the stream has sent its first chunk */
    bool done;
    enum finish finish;
};

void choice_init(struct choice *c, const struct request *r);
void choice_free(struct choice *c);
/* Adds a sampled token; *more: the choice continues. */
tare_status choice_add(struct choice *c, const struct request *r, const struct session_token *t, bool *more, struct err *e);

/* Adds a token without a logprob. */
tare_status choice_list_add(struct token_list *list, int32_t id, int64_t offset, struct err *e);
/* Sets a token's logprob and its r->top likeliest alternatives. */
tare_status choice_info_set(struct token_info *info, const struct request *r, const struct session_token *t, struct err *e);
void choice_list_free(struct token_list *list);

#endif
