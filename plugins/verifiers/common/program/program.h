/* A user's program that answers lines with lines: one JSON object in, one JSON value out. It is
 * started when first needed, kept for the next question, killed if it is late, and restarted after
 * that or after it died. One question at a time: program_ask waits for the answer; program_begin
 * and program_look do not. The program and everything it starts form a process group, which ends
 * when this process ends in any way, as do processes that left the group (left.h). Also has the
 * common parts of the verifiers that use such a program: parameters, the deadline, and the verdict
 * for a reward.
 */
#ifndef TARE_VERIFIERS_PROGRAM_H
#define TARE_VERIFIERS_PROGRAM_H

#include <stdbool.h>
#include <tare/sdk.h>

struct program;

struct program_options {
    const tare_host *host; /* polled for cancellation */
    /* ends with NULL; argv[0] is searched in PATH; must outlive the program */
    char *const *argv;
    const char *name; /* for messages; must outlive the program */
    /* it writes a line before the first question: {"ready":true} or {"error":"..."} */
    bool says_ready;
    double start; /* time limit for that line in seconds */
};

enum program_result {
    PROGRAM_ANSWERED,
    PROGRAM_LATE, /* killed; the next question restarts it */
    PROGRAM_DIED, /* died twice on this question; the error describes how */
    /* cannot be started, is not ready in time, or the run is being cancelled; see the error */
    PROGRAM_FAILED,
    PROGRAM_WORKS /* no answer yet */
};

tare_status program_new(const struct program_options *options, struct program **out, tare_error *error);
void program_free(struct program *p); /* Ends the program; no-op for NULL. */
/* Starts the program unless it runs. */
enum program_result program_start(struct program *p, tare_error *error);
/* Asks a question and waits for the answer. question: one line without its newline. The answer is a
 * NUL-terminated view without the newline, valid until the next call. deadline_ns: CLOCK_MONOTONIC;
 * 0: none. */
enum program_result program_ask(struct program *p, tare_text question, int64_t deadline_ns, tare_text *answer, tare_error *error);

/* Asks without waiting. program_begin returns PROGRAM_WORKS or PROGRAM_FAILED. The question must
 * live until program_look returns something other than PROGRAM_WORKS, or until program_stop. */
enum program_result program_begin(struct program *p, tare_text question, int64_t deadline_ns, tare_error *error);
enum program_result program_look(struct program *p, tare_text *answer, tare_error *error);
/* Waits until one of n programs has output or is late, at most wait_ns. */
void program_wait(struct program *const *programs, int64_t n, int64_t wait_ns);
/* Ends the program; the next question restarts it. */
void program_stop(struct program *p);

int64_t program_now(void); /* CLOCK_MONOTONIC in nanoseconds */
/* Returns the deadline of n rows for program_ask: the earliest of the host's deadlines and
 * `timeout` seconds from now (0: only the host's). */
int64_t program_deadline(double timeout, const tare_completion *const *completions, int64_t n);
/* Returns the verdict for a reward: correct at correct_at or more, wrong at 0 or less, partial
 * between. */
int32_t program_verdict(double reward, double correct_at);

/* Rows of parameter tables. */
#define PROGRAM_TIMEOUT(WHAT)                                                                                                      \
    {                                                                                                                              \
        .key = "timeout", .fallback = "0", .type = TARE_PARAM_FLOAT, .max = 86400, .flags = TARE_PARAM_MIN | TARE_PARAM_MAX,       \
        .unit = "s", .doc = "most seconds for one " WHAT ", within the deadline that the host gives; 0: the host's alone"          \
    }
#define PROGRAM_START(DOC)                                                                                                         \
    {                                                                                                                              \
        .key = "start", .fallback = "50", .type = TARE_PARAM_FLOAT, .max = 86400,                                                  \
        .flags = TARE_PARAM_MIN | TARE_PARAM_MAX | TARE_PARAM_ABOVE_MIN, .unit = "s", .doc = DOC                                   \
    }
#define PROGRAM_CORRECT_AT(DOC) TARE_FLOAT_PARAM("correct_at", "1", DOC, 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN)

#endif
