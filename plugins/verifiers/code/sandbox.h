/* Runs an untrusted Python program and collects its output.
 *
 * With namespaces (SANDBOX_FULL) the program has a private file system (libraries and Python
 * read-only, one writable folder in memory), no network, no other visible process and no user
 * rights. It is process 1 of its namespace, so killing it ends everything it started. In both
 * modes: a list of allowed system calls (no new process, no socket); limits on CPU time, memory,
 * files and output; a wall clock.
 */
#ifndef TARE_VERIFIERS_CODE_SANDBOX_H
#define TARE_VERIFIERS_CODE_SANDBOX_H

#include <stdbool.h>
#include <tare/sdk.h>

enum { SANDBOX_FULL, SANDBOX_LIMITS };

struct sandbox {
    const tare_host *host; /* polled for cancellation */
    int mode;
    double cpu, wall;              /* seconds */
    int64_t memory, output, files; /* bytes: address space, standard output, files */
    char python[1024], prefix[1024], base_prefix[1024];
};

enum sandbox_end { SANDBOX_EXITED, SANDBOX_LATE, SANDBOX_TOO_MUCH, SANDBOX_KILLED, SANDBOX_FAILED };

struct sandbox_result {
    enum sandbox_end end;
    int status;   /* the exit status if SANDBOX_EXITED */
    char *output; /* [size], freed by the caller */
    int64_t size;
};

/* Locates and identifies `python` by running it. */
tare_status sandbox_find(struct sandbox *s, const char *python, tare_error *error);
/* Runs the program. SANDBOX_FAILED and an error status: the sandbox could not be set up and the
 * program did not run, or it was killed because the run is being cancelled (TARE_E_CANCELLED).
 * deadline_ns: CLOCK_MONOTONIC; 0: none. */
tare_status sandbox_run(const struct sandbox *s, tare_text program, tare_text input, int64_t deadline_ns,
                        struct sandbox_result *out, tare_error *error);

#endif
