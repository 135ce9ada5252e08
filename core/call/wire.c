#include "call/wire.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

void wire_start(struct str *m)
{
    str_clear(m);
}

tare_status wire_put_int(struct str *m, int64_t x, struct err *e)
{
    return str_add(m, (const char *)&x, sizeof x, e);
}

tare_status wire_put_double(struct str *m, double x, struct err *e)
{
    return str_add(m, (const char *)&x, sizeof x, e);
}

tare_status wire_put_text(struct str *m, tare_text t, struct err *e)
{
    TRY(wire_put_int(m, t.size, e));
    return t.size ? str_add(m, t.data, t.size, e) : TARE_OK;
}

static const char *take_bytes(struct wire *w, int64_t n)
{
    if (w->bad || n < 0 || n > w->size - w->at) {
        w->bad = true;
        return NULL;
    }
    w->at += n;
    return w->data + w->at - n;
}

int64_t wire_int(struct wire *w)
{
    int64_t x = 0;
    const char *p = take_bytes(w, sizeof x);
    if (p) memcpy(&x, p, sizeof x);
    return x;
}

double wire_double(struct wire *w)
{
    double x = 0;
    const char *p = take_bytes(w, sizeof x);
    if (p) memcpy(&x, p, sizeof x);
    return x;
}

tare_text wire_text(struct wire *w)
{
    const int64_t n = wire_int(w);
    const char *p = take_bytes(w, n);
    return p ? (tare_text){p, n} : (tare_text){"", 0};
}

static enum wire_result send_all(int fd, const char *p, int64_t n)
{
    while (n) {
        const ssize_t k = send(fd, p, (size_t)n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return WIRE_CLOSED;
        p += k;
        n -= k;
    }
    return WIRE_OK;
}

enum wire_result wire_send(int fd, const struct str *m)
{
    const enum wire_result r = send_all(fd, (const char *)&m->size, sizeof m->size);
    return r ? r : send_all(fd, m->data, m->size);
}

static enum wire_result receive_all(int fd, char *p, int64_t n, int64_t deadline_ns)
{
    while (n) {
        if (deadline_ns) {
            const int64_t left = (deadline_ns - clock_ns() + 999999) / 1000000;
            struct pollfd poller = {.fd = fd, .events = POLLIN};
            if (left <= 0) return WIRE_LATE;
            const int got = poll(&poller, 1, (int)(left < 1000000 ? left : 1000000));
            if (got == 0 || (got < 0 && errno == EINTR)) continue;
        }
        const ssize_t k = recv(fd, p, (size_t)n, 0);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return WIRE_CLOSED;
        p += k;
        n -= k;
    }
    return WIRE_OK;
}

enum wire_result wire_receive(int fd, struct str *m, int64_t deadline_ns)
{
    int64_t n = 0;
    struct err e;
    const enum wire_result r = receive_all(fd, (char *)&n, sizeof n, deadline_ns);
    if (r) return r;
    str_clear(m);
    if (n < 0 || n > ((int64_t)1 << 32) || str_reserve(m, n, &e)) return WIRE_CLOSED;
    m->size = n;
    return receive_all(fd, m->data, n, deadline_ns);
}
