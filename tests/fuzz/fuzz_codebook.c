/* libFuzzer target: any bytes as the file of a codebook, as the plugin kmeans and `tare cluster
 * train` read it. When the first byte is odd, the rest is the header up to the first newline,
 * whose length is corrected, followed by the bytes of the tensors. */
#include "cluster/codebook.h"

#include "base/fs.h"
#include "memory_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tare/sdk.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_file(const struct memory_file *f, const uint8_t *data, size_t size)
{
    const uint8_t *newline = memchr(data, '\n', size);
    const uint64_t header = newline ? (uint64_t)(newline - data) : size;
    memory_file_add(f, &header, sizeof header);
    memory_file_add(f, data, header);
    if (newline) memory_file_add(f, newline + 1, size - header - 1);
}

enum { ROWS = 3, MOST = 1 << 16 };

static tare_status hash_bytes(void *ctx, const void *data, int64_t size)
{
    uint64_t *hash = ctx;
    if (size < 0) abort();
    if (size) *hash = fs_hash(data, size, *hash); /* every byte of it is present */
    return TARE_OK;
}

static void use(const tare_codebook *f, void *self)
{
    tare_error error = {.struct_size = sizeof error};
    tare_sizes sizes = {.struct_size = sizeof sizes};
    uint64_t hash = 0;
    const tare_stream out = {.struct_size = sizeof out, .ctx = &hash, .write = hash_bytes};
    if (f->sizes(self, &sizes, &error) || sizes.clusters < 1 || sizes.dim < 1) abort();
    if (f->encoder_identity(self, &out, &error) || f->encoder_state(self, &out, &error)) abort();
    const int64_t d = sizes.dim;
    if (d > MOST) return;
    float *x = malloc((size_t)(ROWS * d) * sizeof *x);
    int32_t cluster[ROWS] = {-1, -1, -1};
    float distance[ROWS] = {NAN, NAN, NAN};
    if (!x) return;
    for (int64_t i = 0; i < ROWS * d; i++) x[i] = i < d ? 0 : i < 2 * d ? 1e30f : (float)(i % 7) - 3;
    const tare_prompts prompts = {.struct_size = sizeof prompts, .n = ROWS, .embedding = x};
    tare_assignment to = {.struct_size = sizeof to, .cluster = cluster, .distance = distance};
    if (!f->assign(self, &prompts, &to, &error))
        for (int i = 0; i < ROWS; i++)
            if (cluster[i] < 0 || cluster[i] >= sizes.clusters || isnan(distance[i])) abort();
    free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = {0};
    json_t *metadata = NULL;
    tare_error error = {.struct_size = sizeof error};
    if (!size) return 0;
    struct memory_file file = memory_file();
    if (data[0] & 1)
        put_file(&file, data + 1, size - 1);
    else
        memory_file_add(&file, data + 1, size - 1);
    if (!codebook_metadata(file.path, &metadata, &e)) {
        if (!json_is_object(metadata)) abort();
        json_decref(metadata);
    }
    const tare_plugin *plugin = tare_plugin_v1(NULL, &error);
    const tare_codebook *f = plugin->descriptors[0]->functions;
    const tare_value value = {.s = file.path};
    const tare_setup setup = {.struct_size = sizeof setup, .values = &value, .instance = "kmeans"};
    void *self = NULL;
    const tare_status status = f->create(&setup, &self, &error);
    if (!status) {
        use(f, self);
        f->destroy(self);
    } else if (!memchr(error.message, 0, sizeof error.message) || !*error.message) {
        abort();
    }
    memory_file_close(&file);
    return 0;
}
