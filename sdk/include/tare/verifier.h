/* tare plugin ABI, major 1: verifiers, which turn completions into verdicts. A verdict is not a
 * status: verify fails only when the call could not be served at all. */
#ifndef TARE_VERIFIER_H
#define TARE_VERIFIER_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tare_verdict_code {
    TARE_CORRECT = 1,
    TARE_WRONG,
    TARE_NO_ANSWER,  /* the completion contains no possible answer */
    TARE_UNPARSABLE, /* an answer was found but cannot be read */
    TARE_TIMED_OUT,
    TARE_CRASHED, /* set by the host, never by a plugin */
    TARE_PARTIAL  /* a reward between wrong and correct */
};

/* Flags of tare_verifier. */
enum {
    /* verify gets all completions that the host has in one call, in their order, from one thread:
     * for rewards that compare completions, and for programs that need them together. The deadline
     * of each completion is that of the call. Since 1.2; older hosts pass one completion at a time.
     */
    TARE_JUDGES_TOGETHER = 1,
    /* verify also rewards segments of a completion (process rewards): tare_verdict.segment. Since
     * 1.2; older hosts refuse the plugin. */
    TARE_GIVES_SEGMENTS = 2
};

/* The inputs that a verdict depends on in addition to the completion: bits that tare_verifier.uses
 * returns. Since minor 3. */
enum {
    TARE_USES_ANSWER = 1,    /* the row's answer: a row without an answer cannot be verified */
    TARE_MAY_USE_ANSWER = 2, /* possibly the row's answer; only a program of the user knows */
    /* Other fields of the row: verify fails, with a message, when it cannot read them. verify is
     * fast, so a host may try every row before a run. */
    TARE_REFUSES_ROWS = 4
};

/* A segment of a completion with a separate reward: from the end of the previous segment, or 0 for
 * the first, up to `end`. */
typedef struct tare_segment {
    /* bytes from the completion's start; above that of the previous segment, at most the
     * completion's size */
    int64_t end;
    double reward; /* finite */
} tare_segment;

/* One completion to verify. */
typedef struct tare_answer {
    uint32_t struct_size, flags;
    tare_text prompt, completion, answer;
    tare_text row; /* the data set's row as a JSON object; size 0: no row */
    /* CLOCK_MONOTONIC; 0: none. Long loops check it and return TARE_TIMED_OUT when it has passed.
     */
    int64_t deadline_ns;
    /* Since minor 2: facts about the rollout. */
    uint64_t prompt_uid; /* equal for a prompt in every epoch; 0: unknown */
    /* Answers of one call with the same number are rollouts of one prompt; they are neighbours. */
    int64_t group;
    int64_t sample;     /* index within the group, from 0 */
    int64_t n_tokens;   /* of the completion, stop token included; 0: unknown */
    int32_t finish;     /* tare_finish; -1: unknown */
    int32_t off_policy; /* 1: the row's own completion, not a sample */
} tare_answer;

/* The host's buffer for one verdict. code and reward must be set; reward must be finite. */
typedef struct tare_verdict {
    uint32_t struct_size;
    int32_t code;
    double reward;
    /* the text taken as the answer: at most capacity bytes, cut at a UTF-8 boundary */
    char *extracted;
    int64_t capacity, size;
    const char *reason; /* static text that names the deciding rule, or NULL */
    /* Since minor 2, with TARE_GIVES_SEGMENTS. The host gives each segment's reward to the token in
     * which it ends, and shows both to estimators (TARE_NEED_SEGMENTS). The reward above is that of
     * the whole completion; segments do not change it. */
    /* the host's buffer; NULL: the host does not collect segments */
    tare_segment *segment;
    int64_t segment_capacity, n_segments; /* n_segments: 0 on entry */
} tare_verdict;

/* Appends a segment. Returns 0 if the host does not collect segments (a host before 1.2, or a
 * caller that does not use them) or the buffer is full. */
__attribute__((unused)) static inline int tare_add_segment(tare_verdict *v, int64_t end, double reward)
{
    if (v->struct_size < sizeof *v || !v->segment || v->n_segments >= v->segment_capacity) return 0;
    v->segment[v->n_segments].end = end;
    v->segment[v->n_segments++].reward = reward;
    return 1;
}

/* Open tickets whose verdicts a host waits for, and the buffers for them. Since minor 2. */
typedef struct tare_waiting {
    uint32_t struct_size, flags;
    int64_t n;
    const int64_t *ticket;        /* [n] each was given to submit before */
    tare_verdict *const *verdict; /* [n] buffers as in verify */
    uint8_t *done;                /* [n] tare_ticket; TARE_TICKET_OPEN on entry */
    /* Return when a ticket is no longer open, and after this time at the latest; 0: at once. */
    int64_t wait_ns;
} tare_waiting;

/* The state of a ticket. The plugin forgets a ticket in either of the last two states. */
enum tare_ticket {
    TARE_TICKET_OPEN = 0,
    TARE_TICKET_JUDGED = 1, /* its verdict is written */
    TARE_TICKET_FAILED = 2  /* it cannot be verified: poll returns an error about it */
};

/* The function table of a verifier. verify: answers and verdicts are [n]; it writes every verdict.
 */
typedef struct tare_verifier {
    uint32_t struct_size, flags;
    tare_status (*create)(const tare_host *host, const tare_value *values, void **self, tare_error *error);
    void (*destroy)(void *self);
    tare_status (*verify)(void *self, const tare_answer *const *answers, tare_verdict *const *verdicts, int64_t n,
                          tare_error *error);
    /* [const] Explains the verdict on one answer, as one JSON object; NULL: not offered. */
    tare_status (*explain)(void *self, const tare_answer *answer, const tare_stream *out, tare_error *error);
    /* Since minor 2, all three or none (NULL): for verifiers that wait for an external service,
     * such as a sandbox or a remote judge. A host may then have several answers verified while it
     * does other work. verify must give equal verdicts; hosts that do not wait call it. One thread
     * at a time calls the three, the one that created the instance. Not together with
     * TARE_JUDGES_TOGETHER.
     *
     * submit begins to verify one answer and returns without waiting for the verdict; it copies the
     * parts of the answer that it needs later. ticket: a number chosen by the host, unique among
     * the open tickets of this instance. The host cancels a ticket whose deadline (deadline_ns) has
     * passed. */
    tare_status (*submit)(void *self, const tare_answer *answer, int64_t ticket, tare_error *error);
    /* Reports the states of some or all of the open tickets. */
    tare_status (*poll)(void *self, const tare_waiting *waiting, tare_error *error);
    /* Ends the work for a ticket, whose verdict is no longer needed. Every open ticket is polled to
     * its end or cancelled before destroy. */
    void (*cancel)(void *self, int64_t ticket);
    /* Since minor 3. Returns the inputs that the verdicts depend on, from the parameters alone:
     * called before create, and equal values give equal bits. 0: the completion, and fields that
     * verify reads without refusing any row. NULL: TARE_USES_ANSWER. With that bit, a host refuses
     * rows without an answer before a run; hosts before 1.3 always do. */
    uint32_t (*uses)(const tare_value *values);
} tare_verifier;

#ifdef __cplusplus
}
#endif
#endif
