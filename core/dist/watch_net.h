/* Packets over TCP between a rank and rank 0. */
#ifndef TARE_CORE_DIST_WATCH_NET_H
#define TARE_CORE_DIST_WATCH_NET_H

#include "dist/watch.h"

#include <stdbool.h>
#include <stdint.h>

enum packet_kind {
    PACKET_HELLO = 1, /* the sender's rank; calls: the token */
    PACKET_STATE,     /* a heartbeat with the rank's state */
    PACKET_ERROR,     /* code and text: the reason why this rank fails */
    PACKET_SIGNAL,    /* code: the signal that ends this rank; otherwise only the rank is set */
    PACKET_DEAF,      /* like PACKET_STATE, from a rank that receives nothing from rank 0: it is not waited for */
    PACKET_BYE,       /* regular end */
    PACKET_END        /* from rank 0: exit with status `code` */
};

/* Sent in memory layout: all processes run the same binary on the same kind of machine. */
struct packet {
    uint32_t magic, kind;
    int32_t rank, code, pid, inside; /* inside: in a collective */
    int64_t calls, step;             /* number of collectives entered */
    int64_t asked;                   /* the rank has been asked to end (SIGTERM) */
    double since;                    /* seconds in this collective, or since the last one */
    char stage[32], what[24], host[64];
    char text[1400];
};

#define PACKET_MAGIC 0x74617265u

struct connection {
    int fd; /* -1: none */
    int64_t got;
    struct packet in;
};

/* Opens a listening socket on every interface; address: "token port ip ip ...". */
tare_status watch_net_listen(char *address, uint64_t *token, int *fd, struct err *e);
/* Connects to rank 0. reply: its answer */
tare_status watch_net_connect(const char *address, struct packet *hello, struct packet *reply, int *fd, struct err *e);
/* Accepts one connection that presents the token, and answers with `mine`; *fd is -1 if it was not
 * one of the job's ranks. */
void watch_net_accept(int listener, uint64_t token, const struct packet *mine, int *fd, struct packet *hello);
bool watch_net_send(int fd, const struct packet *p);
/* Reads available data. 1: a whole packet is in c->in (call again), 0: not yet, -1: the other side
 * has closed or sent invalid data. */
int watch_net_receive(struct connection *c);

#endif
