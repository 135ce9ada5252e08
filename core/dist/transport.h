/* What carries bytes between processes: a thin shared object around one library, loaded at run time, so that one build serves machines
 * with and without it. It knows no collectives; comm_mpi.c makes them from these messages. libtare_mpi.so exports `tare_transport`.
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
    void *data; /* sent: only read */
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
    /* Begins to send or receive n bytes; data is left alone until the slot is done. Messages between two ranks with one tag arrive in the
     * order in which they were posted. tag in [0, 32767]. */
    int (*post)(struct transport *t, int slot, const struct transport_message *m);
    /* Whether all that was posted in the slot is done; the slot is then empty. Never waits. */
    int (*poll)(struct transport *t, int slot, bool *done);
    /* The regular end, by all ranks. */
    int (*finish)(struct transport *t);
};

#endif
