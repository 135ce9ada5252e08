/* A program of the user's that answers lines with lines: one JSON object in, one JSON value out. It is started when it is first needed, stays
 * for the next question, is killed when it is late, and started again after that or after its death. One question at a time: program_ask
 * waits for its answer; program_begin and program_look do not. It and all that it starts are one process group, which ends with this process
 * however that ends; so does what has left the group (left.h).
 * Beside it what the verifiers that ask such a program have alike: parameters, the deadline, a verdict from a reward.
 */
#ifndef TARE_VERIFIERS_PROGRAM_H
#define TARE_VERIFIERS_PROGRAM_H

#include <tare/plugin.h>

#include <stdbool.h>

struct program;

struct program_options {
    const tare_host *host; /* asked whether the run is being stopped */
    char *const *argv;     /* ended by NULL; argv[0] is looked up in PATH; lives as long as the program */
    const char *name;      /* for messages; lives as long */
    bool says_ready;       /* it writes a line before the first question; that line is {"ready":true} or {"error":"..."} */
    double start;          /* seconds it may take to say so */
};

enum program_result {
    PROGRAM_ANSWERED,
    PROGRAM_LATE,   /* killed; the next question starts another */
    PROGRAM_DIED,   /* twice over this question; how is in the error */
    PROGRAM_FAILED, /* it cannot be started, is not ready in time, or the run is being stopped; why is in the error */
    PROGRAM_WORKS   /* no answer yet */
};

tare_status program_new(const struct program_options *options, struct program **out, tare_error *error);
void program_free(struct program *p); /* ends it; NULL: nothing */
/* Starts it unless it runs. */
enum program_result program_start(struct program *p, tare_error *error);
/* question: one line without its newline. The answer is a view without the newline, NUL-ended, that lives until the next call.
 * deadline_ns: CLOCK_MONOTONIC; 0: none. */
enum program_result program_ask(struct program *p, tare_text question, int64_t deadline_ns, tare_text *answer, tare_error *error);

/* The same without waiting. begin gives PROGRAM_WORKS or PROGRAM_FAILED; the question lives until look gives something else than PROGRAM_WORKS,
 * or stop. */
enum program_result program_begin(struct program *p, tare_text question, int64_t deadline_ns, tare_error *error);
enum program_result program_look(struct program *p, tare_text *answer, tare_error *error);
/* Waits until one of n programs has something to say or is late, at most wait_ns. */
void program_wait(struct program *const *programs, int64_t n, int64_t wait_ns);
/* Ends it; the next question starts another. */
void program_stop(struct program *p);

int64_t program_now(void); /* CLOCK_MONOTONIC in nanoseconds */
/* When n rows must be answered, for program_ask: the earliest of the host's deadlines and `timeout` seconds from now (0: the host's alone). */
int64_t program_deadline(double timeout, const tare_answer *const *answers, int64_t n);
/* What a reward without a verdict says: correct at correct_at or more, wrong at 0 or less, partial between. */
enum tare_verdict_code program_verdict(double reward, double correct_at);

/* Rows of the parameter tables. */
#define PROGRAM_TIMEOUT(WHAT)                                                                                                      \
    {                                                                                                                              \
        .key = "timeout", .fallback = "0", .type = TARE_FLOAT, .max = 86400, .unit = "s",                                          \
        .doc = "most seconds for one " WHAT ", within the deadline that the host gives; 0: the host's alone"                       \
    }
#define PROGRAM_START(DOC)                                                                                                         \
    {                                                                                                                              \
        .key = "start", .fallback = "50", .type = TARE_FLOAT, .max = 86400, .flags = TARE_ABOVE_MIN, .unit = "s", .doc = DOC       \
    }
#define PROGRAM_CORRECT_AT(DOC)                                                                                                    \
    {                                                                                                                              \
        .key = "correct_at", .fallback = "1", .type = TARE_FLOAT, .max = 1e300, .flags = TARE_ABOVE_MIN, .doc = DOC                \
    }

#endif
