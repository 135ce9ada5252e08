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
    TARE_JUDGES_TOGETHER = 1,
    /* verify also rewards parts of a completion (process rewards): tare_verdict.segment. Since 1.2; hosts before it refuse the plugin. */
    TARE_GIVES_SEGMENTS = 2
};

/* A part of a completion with a reward of its own: from the end of the segment before it, 0 for the first, up to `end`. */
typedef struct tare_segment {
    int64_t end;   /* bytes from the completion's start; above that of the segment before, at most the completion's size */
    double reward; /* finite */
} tare_segment;

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
    /* Since minor 2, with TARE_GIVES_SEGMENTS. The host gives each segment's reward to the token in which it ends, and shows both to
     * estimators (TARE_NEED_SEGMENTS). The reward above is that of the whole completion; segments do not change it. */
    tare_segment *segment;                /* the host's buffer; NULL: none are wanted */
    int64_t segment_capacity, n_segments; /* n_segments: 0 on entry */
} tare_verdict;

/* Adds a segment. 0: the host wants none (it is of before 1.2, or a caller has no use for them), or has no more room. */
__attribute__((unused)) static inline int tare_add_segment(tare_verdict *v, int64_t end, double reward)
{
    if (v->struct_size < sizeof *v || !v->segment || v->n_segments >= v->segment_capacity) return 0;
    v->segment[v->n_segments].end = end;
    v->segment[v->n_segments++].reward = reward;
    return 1;
}

/* Tickets whose verdicts a host waits for, and room for them. Since minor 2. */
typedef struct tare_waiting {
    uint32_t struct_size, flags;
    int64_t n;
    const int64_t *ticket;        /* [n] each given to submit before */
    tare_verdict *const *verdict; /* [n] as verify gets them */
    uint8_t *done;                /* [n] tare_ticket; TARE_TICKET_OPEN on entry */
    int64_t wait_ns;              /* return when a ticket is not open any more, and after this at the latest; 0: at once */
} tare_waiting;

/* What became of a ticket. The plugin forgets it with either of the last two. */
enum tare_ticket {
    TARE_TICKET_OPEN = 0,
    TARE_TICKET_JUDGED = 1, /* its verdict is written */
    TARE_TICKET_FAILED = 2  /* it cannot be judged: poll returns an error about it */
};

typedef struct tare_verifier {
    uint32_t struct_size, flags;
    tare_status (*create)(const tare_host *host, const tare_value *values, void **self, tare_error *error);
    void (*destroy)(void *self);
    tare_status (*verify)(void *self, const tare_answer *const *answers, tare_verdict *const *verdicts, int64_t n,
                          tare_error *error);
    /* [const] explains the verdict on one answer, as one JSON object; NULL: not offered */
    tare_status (*explain)(void *self, const tare_answer *answer, const tare_stream *out, tare_error *error);
    /* Since minor 2, all three or none (NULL): for verifiers that wait for something else, such as a sandbox or a remote judge. A host may
     * then have several answers judged while it does other work. verify has to give the same verdicts; hosts that do not wait call it.
     * The three are called by one thread at a time, the one that created the instance. Not together with TARE_JUDGES_TOGETHER.
     *
     * submit begins to judge one answer and returns without waiting for it; it copies what it needs of the answer. ticket: a number of the
     * host's choice that no other open ticket of this instance has. The host forgets a ticket that is late (deadline_ns) by cancel. */
    tare_status (*submit)(void *self, const tare_answer *answer, int64_t ticket, tare_error *error);
    /* Tells what became of some or all of the open tickets. */
    tare_status (*poll)(void *self, const tare_waiting *waiting, tare_error *error);
    /* Nobody waits for this ticket any more; what was begun for it ends. Every open ticket is polled to its end or cancelled before
     * destroy. */
    void (*cancel)(void *self, int64_t ticket);
} tare_verifier;

#ifdef __cplusplus
}
#endif
#endif
