/* Preloaded into the ranks of a job (LD_PRELOAD): each TCP connection that one rank opens to
 * another goes through tests/faults/proxy.py, which listens on 127.0.0.1 at the port TARE_PROXY
 * and receives the destination first. Connections to the launcher (PMIX_SERVER_URI...) are not
 * changed. */
#define _GNU_SOURCE
#include "next.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* hidden functions do not replace those of the C library */
extern char **environ;

static int is_launcher(int port)
{
    for (char **e = environ; *e; e++) {
        const char *colon = strncmp(*e, "PMIX_SERVER_URI", 15) ? NULL : strrchr(*e, ':');
        if (colon && atoi(colon + 1) == port) return 1;
    }
    return 0;
}

DECLARE(connect);
int connect(int fd, const struct sockaddr *to, socklen_t n)
{
    const char *proxy = getenv("TARE_PROXY");
    struct sockaddr_in target, at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int type = 0;
    socklen_t size = sizeof type;
    if (!proxy || strcmp(program_invocation_short_name, "tare") || to->sa_family != AF_INET || n < sizeof target ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_STREAM)
        return NEXT(connect)(fd, to, n);
    memcpy(&target, to, sizeof target);
    if (is_launcher(ntohs(target.sin_port))) return NEXT(connect)(fd, to, n);
    at.sin_port = htons((unsigned short)atoi(proxy));
    const int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    int failed = NEXT(connect)(fd, (struct sockaddr *)&at, sizeof at);
    if (!failed) failed = send(fd, &target, sizeof target, MSG_NOSIGNAL) != (ssize_t)sizeof target ? -1 : 0;
    fcntl(fd, F_SETFL, flags);
    return failed;
}
