/* Transport of bytes between processes: a thin shared object around one library, loaded at run
 * time, so that one build serves machines with and without it. It has no collectives; comm_mpi.c
 * builds them from these messages. libtare_mpi.so exports `tare_transport`.
 *
 * One thread at a time calls it. A function that fails returns nonzero with the reason in error. */
#ifndef TARE_CORE_DIST_TRANSPORT_H
#define TARE_CORE_DIST_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#define TRANSPORT_ABI 3
#define TRANSPORT_SYMBOL "tare_transport"
enum { TRANSPORT_SLOTS = 8 };

struct transport_message {
    bool send; /* false: to receive */
    int peer, tag;
    void *data; /* read only if sent */
    int64_t n;
};

struct transport {
    int abi;         /* TRANSPORT_ABI of the header it was built with */
    char about[128]; /* the library and its version, after describe */
    char error[300];
    int rank, size; /* after start */

    void (*describe)(struct transport *t); /* before start or after */
    /* Joins the job that the launcher started. */
    int (*start)(struct transport *t);
    /* Starts sending or receiving n bytes; data must not be touched until the slot is done.
     * Messages between two ranks with one tag arrive in the order in which they were posted. tag in
     * [0, 32767]. */
    int (*post)(struct transport *t, int slot, const struct transport_message *m);
    /* Sets *done if everything posted in the slot is complete; the slot is then empty. Never
     * waits. */
    int (*poll)(struct transport *t, int slot, bool *done);
    /* Regular end; all ranks call it. */
    int (*finish)(struct transport *t);
};

#endif
