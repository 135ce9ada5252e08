#include "base/lost_page.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* Everything here runs in a signal handler: only system calls, no allocation, no stdio. */

struct text {
    char data[4500]; /* a path of 4,096 bytes and the text around it */
    size_t n;
};

static void append_text(struct text *t, const char *from, size_t n)
{
    /* file names are untrusted, so replace control characters */
    for (size_t i = 0; i < n && t->n < sizeof t->data; i++)
        t->data[t->n++] = (unsigned char)from[i] < ' ' || from[i] == 127 ? '?' : from[i];
}

/* A buffered reader; next_byte returns -1 at the end of the file. */
struct reader {
    int fd;
    char data[512];
    ssize_t n, at;
};

static int next_byte(struct reader *r)
{
    if (r->at == r->n) {
        r->n = read(r->fd, r->data, sizeof r->data);
        r->at = 0;
    }
    return r->n <= 0 ? -1 : (unsigned char)r->data[r->at++];
}

static int read_hex(struct reader *r, uintptr_t *value)
{
    int c;
    for (*value = 0; (c = next_byte(r)) >= 0; *value = *value * 16 + (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10))
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) break;
    return c;
}

/* Find the name of the file that is mapped at an address. A line of /proc/self/maps is "begin-end
 * rights offset device inode   name". */
static bool name_at(uintptr_t address, struct text *name)
{
    struct reader r = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    int c = r.fd < 0 ? -1 : 0;
    while (c >= 0 && !name->n) {
        uintptr_t begin, end;
        read_hex(&r, &begin);
        c = read_hex(&r, &end);
        const bool here = address >= begin && address < end;
        for (int field = 0; c >= 0 && c != '\n'; c = next_byte(&r)) {
            const char byte = (char)c;
            if (byte == '/' && field >= 4) field = 5;
            if (byte == ' ' && field < 4) field++;
            if (field == 5 && here) append_text(name, &byte, 1);
        }
    }
    if (r.fd >= 0) close(r.fd);
    return name->n > 0;
}

static void on_bus(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    struct text line = {.n = 0}, name = {.n = 0};
    if (info->si_code != BUS_ADRERR || !name_at((uintptr_t)info->si_addr, &name)) {
        signal(signal_number, SIG_DFL);
        /* re-raise a signal that was sent; a real fault happens again on return */
        if (info->si_code <= 0) raise(signal_number);
        return;
    }
    static const char BEGIN[] = "tare: ",
                      END[] = ": part of this file can no longer be read: another program has truncated it or its disk has failed";
    append_text(&line, BEGIN, sizeof BEGIN - 1);
    append_text(&line, name.data, name.n);
    append_text(&line, END, sizeof END - 1);
    if (line.n == sizeof line.data) line.n--;
    line.data[line.n++] = '\n';
    const ssize_t written = write(STDERR_FILENO, line.data, line.n);
    (void)written;
    _exit(1);
}

void lost_page_report(void)
{
    struct sigaction a = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigemptyset(&a.sa_mask);
    sigaction(SIGBUS, &a, NULL);
}
