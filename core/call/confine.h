/* What a worker process and all that it starts are kept from by the kernel (verifier.isolate = process): system calls that no verifier needs, connections
 * unless they are asked for, memory, files and core dumps above a limit. What a completion makes of a faulty plugin is stopped there; a plugin that
 * means harm is not: the engine loads it, too.
 *
 * The verifier `code` has a filter of its own (plugins/verifiers/code/filter.c). The two share no code: that one is the list of what a judged program may
 * call, this one of what nobody may, and plugins include nothing but sdk/include, where the few macros that both have would become part of the ABI.
 */
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
    bool network;                          /* sockets of the internet may be opened */
    bool namespaces;                       /* the verifier `code` makes its sandboxes of them */
    int64_t memory, open_files, file_size; /* MB, number, MB; 0: as they are */
};

enum { CONFINE_STEPS = 256 };

/* The filter as a program of BPF for this processor. tells: who asks for a connection waits for an answer (refused.h), else it gets EACCES. Its length; 0: the
 * numbers of this processor's system calls are not known here. */
unsigned short confine_filter(const struct confine *c, bool tells, struct sock_filter code[CONFINE_STEPS]);

struct confined {
    int refused;  /* errno of a kernel that takes no filter; 0: it holds, or none was asked for */
    int listener; /* where the kernel tells who asks for a connection; -1: nowhere */
};

/* This process, from here on. A kernel that takes no filter is an error only with CONFINE_REQUIRE. */
tare_status confine_here(const struct confine *c, struct confined *out, struct err *e);

/* Appends the settings to a request, and reads them back. */
tare_status confine_put(struct str *m, const struct confine *c, struct err *e);
struct confine confine_take(struct wire *in);

#endif
