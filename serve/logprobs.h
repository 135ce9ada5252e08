/* The "logprobs" of a choice, in the form of completions or of chat. */
#ifndef TARE_SERVE_LOGPROBS_H
#define TARE_SERVE_LOGPROBS_H

#include "serve/job.h"

struct logprobs_span {
    bool prompt;      /* the tokens of an echoed prompt come first */
    int64_t from, to; /* tokens of the choice */
};

/* null where they are not asked for */
tare_status logprobs_add(const struct job *job, int64_t choice, const struct logprobs_span *span, struct str *out, struct err *e);

#endif
