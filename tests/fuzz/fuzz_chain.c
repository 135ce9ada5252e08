/* libFuzzer target: any bytes as a run's chain.jsonl, which `tare reproduce` must be able to
 * read from an untrusted run. When the first byte is odd, each line gets its correct checksum,
 * so that the code after that check is reached. */
#define _GNU_SOURCE
#include "base/json.h"
#include "observe/chain.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[FS_PATH];
static void remove_folder(void)
{
    rmdir(folder);
}

static tare_status look(void *ctx, const struct chain_link *l, struct err *e)
{
    int64_t *lines = ctx;
    const char *name;
    json_t *sum;
    (void)e;
    if (l->step < 0 || strlen(l->chain) != CHAIN_SUM - 1 || l->line != ++*lines) abort();
    json_object_foreach((json_t *)(uintptr_t)l->files, name, sum)
    {
        if (!name || !sum) abort();
    }
    return TARE_OK;
}

/* Sets the checksum of each line of the input, and the end of the link. */
static void add_sums(const char *data, int64_t size, struct str *out)
{
    char before[CHAIN_SUM] = "";
    struct str summed = {0};
    for (const char *at = data, *end = data + size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const int64_t n = (newline ? newline : end) - at;
        str_clear(&summed);
        if (str_add(&summed, before, -1, NULL) || str_add(&summed, at, n, NULL)) abort();
        chain_sum(summed.data, summed.size, before);
        if (str_add(out, at, n, NULL) || str_addf(out, NULL, ",\"chain\":\"%s\"}\n", before)) abort();
        at += n + 1;
    }
    str_free(&summed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int made = -1;
    struct str text = {0};
    struct err e = {0};
    int64_t lines = 0, half = 0;
    if (made < 0 && !fs_temporary(folder, "tare-fuzz", &e) && mkdtemp(folder)) {
        made = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        atexit(remove_folder);
    }
    if (made < 0 || !size) return 0;
    if (data[0] & 1)
        add_sums((const char *)data + 1, (int64_t)size - 1, &text);
    else if (str_add(&text, (const char *)data + 1, (int64_t)size - 1, &e))
        abort();
    const int fd = openat(made, "chain.jsonl", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || (text.size && write(fd, text.data, (size_t)text.size) != text.size)) abort();
    close(fd);
    if (!chain_each(folder, look, &lines, &half, &e) && (half < 0 || half > text.size)) abort();
    (void)chain_check(folder, (int64_t)(size % 8), &e);
    unlinkat(made, "chain.jsonl", 0);
    str_free(&text);
    return 0;
}
