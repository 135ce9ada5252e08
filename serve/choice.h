/* A completion as it grows: tokens, text up to a stop string, logprobs. */
#ifndef TARE_SERVE_CHOICE_H
#define TARE_SERVE_CHOICE_H

#include "serve/request.h"

struct likely { /* one of the likeliest tokens */
    int32_t id;
    float logprob;
};

struct token_info {
    int32_t id;
    float logprob;
    bool known;     /* the first token of a prompt has no logprob */
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
    int64_t ready;             /* bytes of text that no stop string can take back */
    int64_t told, told_tokens; /* of them, and of the tokens, what a stream has sent */
    bool begun;                /* a stream has sent its first chunk */
    bool done;
    enum finish finish;
};

void choice_init(struct choice *c, const struct request *r);
void choice_free(struct choice *c);
/* A token that was drawn; *more: the choice goes on. */
tare_status choice_add(struct choice *c, const struct request *r, const struct session_token *t, bool *more, struct err *e);

/* A token, without a logprob yet. */
tare_status choice_list_add(struct token_list *list, int32_t id, int64_t offset, struct err *e);
/* Its logprob and the r->top likeliest alternatives. */
tare_status choice_info_set(struct token_info *info, const struct request *r, const struct session_token *t, struct err *e);
void choice_list_free(struct token_list *list);

#endif
