/* A state that is a count K, of clusters or filters, and an array of fixed size after it.
 * Estimators of this form share save, load and describe; the bytes are K as int64_t, then the
 * array. */
#ifndef TARE_ESTIMATORS_STATE_H
#define TARE_ESTIMATORS_STATE_H

#include <tare/sdk.h>

tare_status state_write(const tare_stream *out, int64_t K, const void *data, int64_t bytes);
/* Reads the next n bytes of the state; fails when it is cut short. */
tare_status state_next(const tare_stream *in, void *data, int64_t n, tare_error *error);
/* Describes a state of K entries that are checked one by one. */
struct state_entries {
    int64_t K, size; /* K: this run's; size: bytes of an entry */
    /* its name in the plural ("clusters") */
    const char *what;
    /* TARE_E_CORRUPT: an invalid entry */
    tare_status (*check)(const void *entry, int64_t k, tare_error *error);
};
/* Reads `bytes` after the K into new memory, which the caller releases, so that a state that is
 * refused does not change the old one. A state of another K is TARE_E_VERSION. */
tare_status state_read(const tare_host *host, const tare_stream *in, const struct state_entries *of, int64_t bytes, void **fresh,
                       tare_error *error);
/* Reads into `into` [K * size], all of it or nothing. */
tare_status state_load(const tare_host *host, const tare_stream *in, const struct state_entries *of, void *into, tare_error *error);
/* Writes a member of a JSON object: before"name":[x[0],x[stride],...] with n numbers. */
tare_status state_numbers(const tare_stream *out, const char *before, const char *name, const double *x, int64_t n, int64_t stride);

#endif
