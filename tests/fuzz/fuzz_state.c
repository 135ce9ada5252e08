/* libFuzzer target: any bytes as a file of sections (a checkpoint's training.state and optimizer, an estimator's state). The first byte tells how: even: the
 * rest is the file; odd: up to the first newline it is the list of sections, whose sum is made right, after it the sections' bytes. What is accepted is read. */
#define _GNU_SOURCE
#include "base/fs.h"
#include "checkpoint/state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int fd, const void *data, size_t n)
{
    if (n && write(fd, data, n) != (ssize_t)n) abort();
}

/* head, bytes of the sections, their list, footer: where the list is, its size, its sum, tail */
static void put_file(int fd, const uint8_t *data, size_t size)
{
    const uint8_t *newline = memchr(data, '\n', size);
    const size_t list = newline ? (size_t)(newline - data) : size, body = newline ? size - list - 1 : 0;
    uint64_t footer[4] = {8 + body, list, fs_hash(data, (int64_t)list, 0)};
    memcpy(&footer[3], "tareEND1", 8);
    put(fd, "tareSTA1", 8);
    put(fd, data + list + 1, body);
    put(fd, data, list);
    put(fd, footer, sizeof footer);
}

static void read_all(const struct state_reader *s)
{
    struct err e = {0};
    for (int64_t i = 0; i < state_count(s); i++) {
        const char *name = state_name(s, i);
        const void *view;
        int64_t n, x;
        if (!state_has(s, name) && *name) abort();
        if (!state_view(s, name, &view, &n, &e) && (n < 0 || n != state_size(s, name))) abort();
        if (!state_view(s, name, &view, &n, &e) && n) (void)fs_hash(view, n, 1); /* every byte of it is there */
        (void)state_read_int(s, name, &x, &e);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[40];
    struct state_reader *s;
    struct err e = {0};
    const int fd = memfd_create("state", MFD_CLOEXEC);
    if (!size || fd < 0) {
        if (fd >= 0) close(fd);
        return 0;
    }
    if (data[0] & 1)
        put_file(fd, data + 1, size - 1);
    else
        put(fd, data + 1, size - 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!state_open(path, &s, &e)) {
        read_all(s);
        state_close(s);
    }
    close(fd);
    return 0;
}
