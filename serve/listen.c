/* Opens the socket and libmicrohttpd's daemon on it. */
#include "base/log.h"
#include "serve/http.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void on_log(void *ctx, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
static void on_log(void *ctx, const char *format, va_list args)
{
    char text[500];
    (void)ctx;
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = 0;
    log_debug("libmicrohttpd: %s", text);
}

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static tare_status find_address(const struct serve_options *o, struct addrinfo **out, struct err *e)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    char port[16];
    snprintf(port, sizeof port, "%lld", (long long)o->port);
    const int failed = getaddrinfo(o->host, port, &hints, out);
    if (failed)
        FAIL(e, TARE_E_CONFIG, "--host %s: %s; use an address of this machine, such as 127.0.0.1 or 0.0.0.0", o->host,
             gai_strerror(failed));
    if (o->key || is_loopback((*out)->ai_addr)) return TARE_OK;
    freeaddrinfo(*out);
    FAIL(
        e, TARE_E_CONFIG,
        "--host %s can be reached from other machines and needs a key; set the environment variable TARE_SERVE_KEY or --key-file FILE",
        o->host);
}

/* Returns the port that the socket is bound to. */
static int bound_port(const struct server *s)
{
    const union MHD_DaemonInfo *info = s->mhd->get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

tare_status http_open(struct server *s, char where[HTTP_WHERE], struct err *e)
{
    const struct serve_options *o = s->options;
    struct addrinfo *address;
    TRY(find_address(o, &address, e));
    const bool v6 = address->ai_family == AF_INET6;
    /* poll instead of epoll: with epoll libmicrohttpd 0.9.75 does not notice that clients leave
     * once CONNECTION_LIMIT was reached, and answers no request until the idle timeout closes them.
     */
    const unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | (v6 ? MHD_USE_IPv6 : 0);
    errno = 0;
    s->daemon = s->mhd->start_daemon(flags, (uint16_t)o->port, NULL, NULL, http_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log,
                                     NULL, MHD_OPTION_SOCK_ADDR, address->ai_addr, MHD_OPTION_CONNECTION_LIMIT,
                                     (unsigned)o->max_connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)o->idle,
                                     MHD_OPTION_NOTIFY_COMPLETED, http_completed, s, MHD_OPTION_END);
    const int why = errno;
    freeaddrinfo(address);
    if (!s->daemon)
        FAIL(e, TARE_E_CONFIG, "cannot listen on %s, port %lld: %s; choose another port with --port", o->host, (long long)o->port,
             why ? strerror(why) : "libmicrohttpd refused");
    snprintf(where, HTTP_WHERE, v6 ? "[%.250s]:%d" : "%.250s:%d", o->host, bound_port(s));
    return TARE_OK;
}

int http_quiet(struct server *s)
{
    const int fd = s->mhd->quiesce_daemon(s->daemon);
    if (fd >= 0) shutdown(fd, SHUT_RDWR);
    return fd;
}

void http_close(struct server *s, int fd)
{
    s->mhd->stop_daemon(s->daemon);
    s->daemon = NULL;
    if (fd >= 0) close(fd);
}
