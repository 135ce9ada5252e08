/* tare plugin ABI, major 1: verifiers, which turn completions into verdicts. A verdict is not a
 * status: verify fails only when the call could not be served at all. */
#ifndef TARE_VERIFIER_H
#define TARE_VERIFIER_H

#include "batch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of tare_verifier. */
enum {
    /* verify gets all completions that the host has in one call, in their order, from one thread:
     * for rewards that compare completions, and for programs that need them together. The deadline
     * of each completion is that of the call. */
    TARE_VERIFIER_TOGETHER = 1,
    /* verify also rewards segments of a completion (process rewards): tare_verdict.segment */
    TARE_VERIFIER_GIVES_SEGMENTS = 2,
    /* the same completion always gets the same verdict, so that a replay of the run compares them;
     * without it the recorded verdict counts (a model as a judge, for example) */
    TARE_VERIFIER_REPEATS = 4
};

/* What a verdict depends on beside the completion: bits that tare_verifier.uses returns. */
enum {
    TARE_USES_ANSWER = 1,       /* the row's answer: a row without an answer cannot be verified */
    TARE_USES_MAYBE_ANSWER = 2, /* possibly the row's answer; only a program of the user knows */
    /* Other fields of the row: verify fails, with a message, when it cannot read them. verify is
     * fast, so a host may try every row before a run. */
    TARE_USES_ROW = 4
};

/* A segment of a completion with a separate reward: from the end of the previous segment, or 0 for
 * the first, up to `end`. Never grows. */
typedef struct tare_segment {
    int64_t end;   /* bytes from the text's start; above that of the previous segment, at most its size */
    double reward; /* finite */
} tare_segment;

/* One completion to verify. */
typedef struct tare_completion {
    uint32_t struct_size, flags;
    tare_text prompt;
    tare_text text;      /* the completion, without the stop token; of an episode, the last turn */
    tare_text answer;    /* the row's answer; size 0: none */
    tare_text row;       /* the data set's row as a JSON object; size 0: no row */
    tare_text messages;  /* the episode as a JSON list of messages; size 0: one turn */
    uint64_t prompt_uid; /* equal for a prompt in every epoch; 0: unknown */
    /* Completions of one call with the same number are rollouts of one prompt; they are neighbours. */
    int64_t group;
    int64_t index;    /* within the group, from 0 */
    int64_t n_turns;  /* 0: unknown */
    int64_t n_tokens; /* sampled ones, stop token included; 0: unknown */
    /* on the clock of host->now_ns; 0: none. Long loops check it and give TARE_VERDICT_TIMED_OUT
     * when it has passed. */
    int64_t deadline_ns;
    int32_t finish;     /* TARE_FINISH_... */
    int32_t off_policy; /* 1: the row's own completion, not a sample */
} tare_completion;

/* The host's buffer for one verdict. code and reward must be set; reward must be finite. */
typedef struct tare_verdict {
    uint32_t struct_size;
    int32_t code; /* TARE_VERDICT_..., never NONE or CRASHED */
    double reward;
    const tare_stream *extracted; /* the text taken as the answer; NULL: not wanted */
    const tare_stream *note;      /* the rule or the reason that decided, for people; NULL: not wanted */
    /* With TARE_VERIFIER_GIVES_SEGMENTS. The host gives each segment's reward to the token in which
     * it ends, and shows both to estimators ("segment", "segment_reward"). The reward above is that
     * of the whole completion; segments do not change it. NULL: not wanted. */
    tare_segment *segment;
    int64_t segment_capacity, n_segments; /* n_segments: 0 on entry */
} tare_verdict;

/* The state of a ticket. The host refuses an unknown number. */
enum { TARE_TICKET_OPEN = 0, TARE_TICKET_DONE = 1 };

/* Open tickets whose results a host waits for. */
typedef struct tare_waiting {
    uint32_t struct_size, flags;
    int64_t n;
    const int64_t *ticket; /* [n] each was given to submit before */
    uint8_t *state;        /* [n] TARE_TICKET_...; OPEN on entry */
    /* Return when a ticket is done, and after this time at the latest; 0: at once. */
    int64_t wait_ns;
} tare_waiting;

/* The function table of a verifier. Required beside the head's: verify. */
typedef struct tare_verifier {
    TARE_HEAD;
    /* [any] [const] Returns the TARE_USES_... bits for these parameters; called before create. NULL:
     * TARE_USES_ANSWER. 0: only the completion, and fields that verify reads without refusing any
     * row. The host refuses rows without an answer before a run where the answer is used. */
    uint32_t (*uses)(const tare_value *values);
    /* [worker] Writes every verdict: completion and out are [n], n is 1 without
     * TARE_VERIFIER_TOGETHER. */
    tare_status (*verify)(void *self, const tare_completion *const *completion, tare_verdict *const *out, int64_t n,
                          tare_error *error);
    /* [worker] Explains the verdict on one completion, as one JSON object. NULL: not offered. */
    tare_status (*explain)(void *self, const tare_completion *completion, const tare_stream *out, tare_error *error);
    /* All four or none, and not together with TARE_VERIFIER_TOGETHER: for verifiers that wait for an
     * external service, such as a sandbox or a remote judge. A host may then have several completions
     * verified while it does other work. verify must give equal verdicts; hosts that do not wait call
     * it. One thread at a time calls the four, the one that created the instance.
     *
     * [serial] Begins to verify one completion and returns without waiting; copies what it needs
     * later. ticket: a number chosen by the host, unique among the open tickets of this instance. */
    tare_status (*submit)(void *self, const tare_completion *completion, int64_t ticket, tare_error *error);
    /* [serial] Sets the state of tickets whose verdict, or failure, is known. */
    tare_status (*poll)(void *self, const tare_waiting *waiting, tare_error *error);
    /* [serial] Gives the verdict of a ticket that is done, or returns its error. The plugin forgets
     * the ticket. Tickets are taken in any order. */
    tare_status (*take)(void *self, int64_t ticket, tare_verdict *out, tare_error *error);
    /* [serial] Ends the work for a ticket, whose verdict is no longer needed: its deadline has passed
     * or the run is stopping. Every ticket is taken or cancelled before destroy. */
    void (*cancel)(void *self, int64_t ticket);
} tare_verifier;

#ifdef __cplusplus
}
#endif
#endif
