/* Ends a watched job: finds the rank at fault, reports to the user, and ends every process. Called
 * by the watching thread. */
#ifndef TARE_CORE_DIST_WATCH_END_H
#define TARE_CORE_DIST_WATCH_END_H

#include "dist/watch_net.h"

#include <pthread.h>

/* State of a rank; at rank 0 also its own. Owned by the watching thread, except for `gone` and
 * sending. */
struct peer {
    struct connection connection;
    struct packet state;
    double heard;
    bool bye, failed, gone, silent; /* silent: no longer waited for */
    struct err error;
};

struct watch {
    int rank, size, listener, wake[2];
    uint64_t token;
    pid_t parent, self;
    double timeout_s, left_at; /* left_at: when the last collective was left or entered */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* protects self, `mine` and sending */
    struct packet mine;
    struct peer *peers; /* [size]; ranks other than 0 use only [0] */
    bool stop, farewell, failing, orphan;
    struct err failure; /* of this rank */
    double first_error, leave_at;
    int lost; /* on rank 0: a rank that ended after it had been asked to; 0: none */
    double lost_at;
    double missed_at;  /* on another rank: time since which rank 0 is missed; 0: it is not */
    bool asked_before; /* the lost rank had been asked to end before it ended */
};

/* Ends the job if a rank has failed, waits too long or is silent. farewell: a regular end has
 * begun. */
void watch_decide(struct watch *w, bool farewell);
/* watch_misses_hub, on a rank other than 0, returns true if rank 0 has been silent for too long.
 * watch_hub_is_missing composes the message for rank 0, in case it still receives. */
bool watch_misses_hub(const struct watch *w);
void watch_hub_is_missing(char *text, size_t capacity);
/* Reports that rank r's process has gone without a message; on a rank other than 0, that of rank
 * 0. */
void watch_end_lost(struct watch *w, int r) __attribute__((noreturn));
/* On rank 0: reports that a signal ended rank r. */
void watch_end_crashed(struct watch *w, int r, int signal_number) __attribute__((noreturn));

#endif
