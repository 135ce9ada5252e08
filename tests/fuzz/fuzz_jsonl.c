/* Data files from anybody: load, and check. */
#include "data/dataset.h"
#include "memory_file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tare_status quiet(void *ctx, const char *where, const char *id, const char *reason, struct err *e)
{
    (void)ctx, (void)where, (void)id, (void)e;
    return *reason ? TARE_OK : TARE_E_GENERIC;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dataset d;
    struct err e = {0}, unused = {0};
    struct dataset_check check = {.report = quiet};
    struct memory_file file = memory_file();
    memory_file_add(&file, data, size);
    const tare_status status = dataset_load(file.path, 0, &d, &e);
    if (dataset_check(file.path, &check, &unused) == TARE_E_GENERIC) abort();
    if (!status) {
        for (int64_t i = 0; i < d.n; i++)
            if (!d.rows[i].question.size || str_utf8_error(d.rows[i].question.data, d.rows[i].question.size)) abort();
        dataset_free(&d);
    }
    memory_file_close(&file);
    return 0;
}
