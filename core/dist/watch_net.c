#include "dist/watch_net.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

static void set_options(int fd)
{
    const int yes = 1;
    const struct timeval patience = {.tv_sec = 2};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Lists the IPv4 addresses of this host, the loopback last: on another host it is a different
 * machine. */
static void list_addresses(char *text, size_t capacity)
{
    struct ifaddrs *list = NULL;
    size_t at = strlen(text);
    if (!getifaddrs(&list))
        for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
            char ip[INET_ADDRSTRLEN];
            if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || !(a->ifa_flags & IFF_UP) || (a->ifa_flags & IFF_LOOPBACK))
                continue;
            const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a->ifa_addr;
            if (!inet_ntop(AF_INET, &in->sin_addr, ip, sizeof ip) || at + strlen(ip) + 12 > capacity) continue;
            at += (size_t)snprintf(text + at, capacity - at, " %s", ip);
        }
    if (list) freeifaddrs(list);
    snprintf(text + at, capacity - at, " 127.0.0.1");
}

tare_status watch_net_listen(char *address, uint64_t *token, int *fd, struct err *e)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t n = sizeof any;
    *fd = socket(AF_INET, SOCK_STREAM, 0);
    if (*fd < 0 || bind(*fd, (struct sockaddr *)&any, sizeof any) || listen(*fd, 1024) ||
        getsockname(*fd, (struct sockaddr *)&any, &n) || getrandom(token, sizeof *token, 0) != (ssize_t)sizeof *token) {
        if (*fd >= 0) close(*fd);
        *fd = -1;
        FAIL(e, TARE_E_COMM, "rank 0 cannot listen on a TCP port: %s", strerror(errno));
    }
    fcntl(*fd, F_SETFD, FD_CLOEXEC);
    snprintf(address, WATCH_ADDRESS, "%" PRIx64 " %d", *token, (int)ntohs(any.sin_port));
    list_addresses(address, WATCH_ADDRESS);
    return TARE_OK;
}

bool watch_net_send(int fd, const struct packet *p)
{
    const char *at = (const char *)p;
    size_t remaining = sizeof *p;
    while (remaining) {
        const ssize_t n = send(fd, at, remaining, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        remaining -= (size_t)n;
    }
    return true;
}

int watch_net_receive(struct connection *c)
{
    if (c->got == (int64_t)sizeof c->in) c->got = 0;
    while (c->got < (int64_t)sizeof c->in) {
        const ssize_t n = recv(c->fd, (char *)&c->in + c->got, sizeof c->in - (size_t)c->got, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
        if (n <= 0) return -1;
        c->got += n;
    }
    c->in.text[sizeof c->in.text - 1] = c->in.stage[sizeof c->in.stage - 1] = 0;
    c->in.what[sizeof c->in.what - 1] = c->in.host[sizeof c->in.host - 1] = 0;
    return c->in.magic == PACKET_MAGIC ? 1 : -1;
}

/* Waits up to two seconds for a whole packet. */
static bool wait_packet(int fd, struct connection *c)
{
    const double until = clock_seconds() + 2;
    *c = (struct connection){.fd = fd};
    for (;;) {
        const int got = watch_net_receive(c);
        if (got) return got > 0;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (clock_seconds() > until) return false;
        poll(&p, 1, 100);
    }
}

void watch_net_accept(int listener, uint64_t token, const struct packet *mine, int *fd, struct packet *hello)
{
    struct packet answer = *mine;
    struct connection c;
    *fd = accept(listener, NULL, NULL);
    if (*fd < 0) return;
    set_options(*fd);
    answer.kind = PACKET_HELLO;
    answer.calls = (int64_t)token;
    if (wait_packet(*fd, &c) && c.in.kind == PACKET_HELLO && (uint64_t)c.in.calls == token && watch_net_send(*fd, &answer)) {
        *hello = c.in;
        return;
    }
    close(*fd);
    *fd = -1;
}

/* Connects within a second, sends hello, and expects the token back: an unrelated service on that
 * port would not return it. */
static int try_address(const char *ip, int port, const struct packet *hello, struct packet *reply)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct connection c;
    int error = 0;
    socklen_t n = sizeof error;
    if (inet_pton(AF_INET, ip, &to.sin_addr) != 1) return -1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    bool good = !connect(fd, (struct sockaddr *)&to, sizeof to);
    if (!good && errno == EINPROGRESS) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        good = poll(&p, 1, 1000) == 1 && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) && !error;
    }
    if (good) {
        fcntl(fd, F_SETFL, 0);
        set_options(fd);
        if (watch_net_send(fd, hello) && wait_packet(fd, &c) && c.in.kind == PACKET_HELLO && c.in.calls == hello->calls) {
            *reply = c.in;
            return fd;
        }
    }
    close(fd);
    return -1;
}

tare_status watch_net_connect(const char *address, struct packet *hello, struct packet *reply, int *fd, struct err *e)
{
    char copy[WATCH_ADDRESS], *rest = copy;
    snprintf(copy, sizeof copy, "%s", address);
    const char *token = strtok_r(rest, " ", &rest), *port = strtok_r(rest, " ", &rest);
    *fd = -1;
    if (!token || !port) FAIL(e, TARE_E_COMM, "rank 0 sent an invalid address: '%s'", address);
    hello->kind = PACKET_HELLO;
    hello->calls = (int64_t)strtoull(token, NULL, 16);
    for (const char *ip; *fd < 0 && (ip = strtok_r(rest, " ", &rest));) *fd = try_address(ip, atoi(port), hello, reply);
    if (*fd >= 0) return TARE_OK;
    FAIL(e, TARE_E_COMM, "rank %d (%s) cannot reach rank 0 over TCP at port %s of %s; let the hosts of a job connect to each other",
         hello->rank, hello->host, port, strchr(address, '.') ? address + (port - copy) + strlen(port) + 1 : "no address");
}
