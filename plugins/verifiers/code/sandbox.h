/* Runs a Python program that nobody trusts, and collects what it writes.
 *
 * With namespaces (SANDBOX_FULL) the program has a file system of its own (libraries and Python read-only, 1 writable folder in memory), no network, no
 * other process to see, and no user's rights; it is process 1 of its namespace, so when it is killed nothing of it is left. In both modes: a list of
 * system calls outside of which all fail (no new process, no socket), limits on CPU time, memory, files and output, a wall clock.
 */
#ifndef TARE_VERIFIERS_CODE_SANDBOX_H
#define TARE_VERIFIERS_CODE_SANDBOX_H

#include <stdbool.h>
#include <tare/sdk.h>

enum { SANDBOX_FULL, SANDBOX_LIMITS };

struct sandbox {
    const tare_host *host; /* asked whether the run is being stopped */
    int mode;
    double cpu, wall;              /* seconds */
    int64_t memory, output, files; /* bytes: address space, standard output, files */
    char python[1024], prefix[1024], base_prefix[1024];
};

enum sandbox_end { SANDBOX_EXITED, SANDBOX_LATE, SANDBOX_TOO_MUCH, SANDBOX_KILLED, SANDBOX_FAILED };

struct sandbox_result {
    enum sandbox_end end;
    int status;   /* the exit status of SANDBOX_EXITED */
    char *output; /* [size], the caller frees it */
    int64_t size;
};

/* Finds out what `python` is, by running it. */
tare_status sandbox_find(struct sandbox *s, const char *python, tare_error *error);
/* SANDBOX_FAILED, and a status: the sandbox itself could not be made; the program has not run, or was ended since the run is being stopped (TARE_E_CANCELLED). deadline_ns: CLOCK_MONOTONIC; 0: none. */
tare_status sandbox_run(const struct sandbox *s, tare_text program, tare_text input, int64_t deadline_ns,
                        struct sandbox_result *out, tare_error *error);

#endif
