/* Confinement of a worker process and everything it starts (verifier.isolate = process): the kernel
 * denies system calls that no verifier needs, connections unless they are enabled, and memory,
 * files and core dumps above a limit. This limits the damage that a completion can do through a
 * faulty plugin. It does not stop a malicious plugin, because the engine loads the plugin too.
 *
 * The verifier `code` has a separate filter (plugins/verifiers/code/filter.c). That filter lists
 * the calls that a program under test may make; this one lists the calls that are always denied.
 * They share no code: plugins include only sdk/include, and the few common macros would become part
 * of the ABI. */
#ifndef TARE_CORE_CALL_CONFINE_H
#define TARE_CORE_CALL_CONFINE_H

#include "base/err.h"
#include "call/wire.h"
#include "config/choices.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

struct confine {
    enum confine_mode mode;
    bool network;                          /* internet sockets are allowed */
    bool namespaces;                       /* the verifier `code` builds its sandboxes from them */
    int64_t memory, open_files, file_size; /* MB, count, MB; 0: unchanged */
};

enum { CONFINE_STEPS = 256 };

/* Writes the BPF filter for this processor and returns its length, or 0 if this processor's system
 * call numbers are unknown. notify: connection attempts wait for the listener's answer (refused.h);
 * otherwise they fail with EACCES. */
unsigned short confine_filter(const struct confine *c, bool notify, struct sock_filter code[CONFINE_STEPS]);

struct confined {
    int refused;  /* errno of a kernel that rejects the filter; 0: installed, or not requested */
    int listener; /* reports connection attempts; -1: none */
};

/* Confines this process from now on. A kernel that rejects the filter is an error only with
 * CONFINE_REQUIRE. */
tare_status confine_here(const struct confine *c, struct confined *out, struct err *e);

/* Appends the settings to a request, and reads them back. */
tare_status confine_put(struct str *m, const struct confine *c, struct err *e);
struct confine confine_take(struct wire *in);

#endif
