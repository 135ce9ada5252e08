/* The "logprobs" of a choice in the format of completions or chat. */
#ifndef TARE_SERVE_LOGPROBS_H
#define TARE_SERVE_LOGPROBS_H

#include "serve/job.h"

struct logprobs_span {
    bool prompt;      /* starts with the tokens of the echoed prompt */
    int64_t from, to; /* tokens of the choice */
};

/* Adds null if the request does not ask for logprobs. */
tare_status logprobs_add(const struct job *job, int64_t choice, const struct logprobs_span *span, struct str *out, struct err *e);

#endif
