/* tare plugin ABI, major 1: verifiers. A verdict is not a status: verify fails only when the call could not be served at all. */
#ifndef TARE_VERIFIER_H
#define TARE_VERIFIER_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tare_verdict_code {
    TARE_CORRECT = 1,
    TARE_WRONG,
    TARE_NO_ANSWER,  /* the completion contains nothing that could be an answer */
    TARE_UNPARSABLE, /* an answer was found but could not be read */
    TARE_TIMED_OUT,
    TARE_CRASHED, /* set by the host, never by a plugin */
    TARE_PARTIAL  /* a reward between wrong and correct */
};

/* Flags of tare_verifier. */
enum {
    /* verify gets all completions that the host has at a time in one call, in their order, from one thread: for rewards that compare
     * completions, and for programs that want them at once. The deadline of each is that of the call. Since 1.2; hosts before it hand
     * over one at a time. */
    TARE_JUDGES_TOGETHER = 1
};

/* One completion to judge. */
typedef struct tare_answer {
    uint32_t struct_size, flags;
    tare_text prompt, completion, answer;
    tare_text row;       /* the data set's row as a JSON object; size 0 when there is none */
    int64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none. check it in long loops, and then return TARE_TIMED_OUT */
    /* Since minor 2, of the rollout. */
    uint64_t prompt_uid; /* the same for a prompt in every epoch; 0: not known */
    int64_t group;       /* answers of one call with the same number are rollouts of one prompt; they stand side by side */
    int64_t sample;      /* which of them, from 0 */
    int64_t n_tokens;    /* of the completion, stop token included; 0: not known */
    int32_t finish;      /* tare_finish; -1: not known */
    int32_t off_policy;  /* 1: the row's own completion, not a sample */
} tare_answer;

/* The host's buffer for one verdict. code and reward must be set; reward must be finite. */
typedef struct tare_verdict {
    uint32_t struct_size;
    int32_t code;
    double reward;
    char *extracted; /* what was taken as the answer: at most capacity bytes, cut at a UTF-8 boundary */
    int64_t capacity, size;
    const char *reason; /* static text: the rule that decided; or NULL */
} tare_verdict;

typedef struct tare_verifier {
    uint32_t struct_size, flags;
    tare_status (*create)(const tare_host *host, const tare_value *values, void **self, tare_error *error);
    void (*destroy)(void *self);
    tare_status (*verify)(void *self, const tare_answer *const *answers, tare_verdict *const *verdicts, int64_t n,
                          tare_error *error);
    /* [const] explains the verdict on one answer, as one JSON object; NULL: not offered */
    tare_status (*explain)(void *self, const tare_answer *answer, const tare_stream *out, tare_error *error);
} tare_verifier;

#ifdef __cplusplus
}
#endif
#endif
