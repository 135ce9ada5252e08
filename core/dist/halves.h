/* Counts collectives in two halves: each one begun takes a slot of the library below, and they are
 * waited for in the order of beginning (comm.h). */
#ifndef TARE_CORE_DIST_HALVES_H
#define TARE_CORE_DIST_HALVES_H

#include "base/err.h"

struct halves {
    const char *what; /* "gather": for messages */
    int first, most;  /* slots first .. first + most - 1 */
    int begun, waited;
};

/* Takes the slot for one that is begun now; it counts immediately. */
static inline tare_status halves_begin(struct halves *h, int *slot, struct err *e)
{
    *slot = h->first + h->begun % h->most;
    if (h->begun - h->waited >= h->most) FAIL(e, TARE_E_COMM, "more than %d %ss begun and not waited for", h->most, h->what);
    h->begun++;
    return TARE_OK;
}

/* Returns the slot of the oldest one in progress. */
static inline tare_status halves_wait(struct halves *h, int *slot, struct err *e)
{
    *slot = h->first + h->waited % h->most;
    if (h->begun == h->waited) FAIL(e, TARE_E_COMM, "no %s has been begun", h->what);
    h->waited++;
    return TARE_OK;
}

#endif
