/* Data files from anybody: load, and check. */
#define _GNU_SOURCE /* memfd_create */
#include "data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tare_status quiet(void *ctx, const char *where, const char *id, const char *reason, struct err *e)
{
    (void)ctx, (void)where, (void)id, (void)e;
    return *reason ? TARE_OK : TARE_E_GENERIC;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct dataset d;
    struct err e = {0}, unused = {0};
    struct dataset_check check = {.report = quiet};
    const int fd = memfd_create("rows", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const tare_status status = dataset_load(path, 0, &d, &e);
    if (dataset_check(path, &check, &unused) == TARE_E_GENERIC) abort();
    if (!status) {
        for (int64_t i = 0; i < d.n; i++)
            if (!d.rows[i].question.size || str_utf8_error(d.rows[i].question.data, d.rows[i].question.size)) abort();
        dataset_free(&d);
    }
    close(fd);
    return 0;
}
