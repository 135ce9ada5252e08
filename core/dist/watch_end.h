/* How a watched job ends: which rank is at fault, what the user is told, how every process leaves. Called by the watching thread. */
#ifndef TARE_CORE_DIST_WATCH_END_H
#define TARE_CORE_DIST_WATCH_END_H

#include "dist/watch_net.h"

#include <pthread.h>

struct peer { /* what is known of a rank; at rank 0 also of itself. The watching thread's, but for `gone` and sending */
    struct connection connection;
    struct packet state;
    double heard;
    bool bye, failed, gone, silent; /* silent: nobody waits for it any more */
    struct err error;
};

struct watch {
    int rank, size, listener, wake[2];
    uint64_t token;
    pid_t parent, self;
    double timeout_s, left_at; /* left_at: of the last collective, or entered */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* of self, of `mine`, of sending */
    struct packet mine;
    struct peer *peers; /* [size]; other ranks than 0 use only [0] */
    bool stop, farewell, failing, orphan;
    struct err failure; /* of this rank */
    double first_error, leave_at;
    int lost; /* rank 0: a rank that ended after it had been asked to; 0: none */
    double lost_at;
    double missed_at;  /* another rank: since when it misses rank 0; 0: it does not */
    bool asked_before; /* that rank had been asked to end before it */
};

/* Ends the job where a rank has failed, waits too long or is silent. farewell: a regular end has begun. */
void watch_decide(struct watch *w, bool farewell);
/* At another rank: whether it has heard nothing from rank 0 for too long; and the sentence for rank 0, if that still hears. */
bool watch_misses_hub(const struct watch *w);
void watch_hub_is_missing(char *text, size_t room);
/* Rank r's process has gone without a word; at another rank than 0, rank 0's. */
void watch_end_lost(struct watch *w, int r) __attribute__((noreturn));
/* At rank 0: rank r was ended by a signal. */
void watch_end_crashed(struct watch *w, int r, int signal_number) __attribute__((noreturn));

#endif
