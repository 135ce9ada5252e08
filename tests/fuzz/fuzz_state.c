/* libFuzzer target: any bytes as a file of sections (a checkpoint's training.state and
 * optimizer, an estimator's state). If the first byte is even, the rest is the file. If it is
 * odd, the text up to the first newline is the list of sections, whose checksum is corrected,
 * followed by the bytes of the sections. An accepted file is read. */
#include "base/fs.h"
#include "checkpoint/state.h"
#include "memory_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* head, bytes of the sections, their list, footer (position of the list, its size, its
 * checksum), tail. */
static void put_file(const struct memory_file *f, const uint8_t *data, size_t size)
{
    const uint8_t *newline = memchr(data, '\n', size);
    const size_t list = newline ? (size_t)(newline - data) : size, body = newline ? size - list - 1 : 0;
    uint64_t footer[4] = {8 + body, list, fs_hash(data, (int64_t)list, 0)};
    memcpy(&footer[3], "tareEND1", 8);
    memory_file_add(f, "tareSTA1", 8);
    memory_file_add(f, data + list + 1, body);
    memory_file_add(f, data, list);
    memory_file_add(f, footer, sizeof footer);
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
        /* Every byte of it is present. */
        if (!state_view(s, name, &view, &n, &e) && n) (void)fs_hash(view, n, 1);
        (void)state_read_int(s, name, &x, &e);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct state_reader *s;
    struct err e = {0};
    if (!size) return 0;
    struct memory_file file = memory_file();
    if (data[0] & 1)
        put_file(&file, data + 1, size - 1);
    else
        memory_file_add(&file, data + 1, size - 1);
    if (!state_open(file.path, &s, &e)) {
        read_all(s);
        state_close(s);
    }
    memory_file_close(&file);
    return 0;
}
