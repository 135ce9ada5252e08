/* Embeddings from a safetensors file: a tensor [n, d] of type F32, F16 or BF16, mapped. */
#ifndef TARE_CLI_EMBEDDINGS_H
#define TARE_CLI_EMBEDDINGS_H

#include "model/safetensors.h"

struct embeddings {
    struct safetensors file;
    const struct st_tensor *tensor;
    int64_t n, d;
};

/* tensor NULL: the tensor "embeddings", else the only two-dimensional one. On failure there is
 * nothing to close. */
tare_status embeddings_open(const char *path, const char *tensor, struct embeddings *out, struct err *e);
/* Reads rows first .. first + n - 1 as floats: out [n, d]. */
tare_status embeddings_read(const struct embeddings *x, int64_t first, int64_t n, float *out, struct err *e);
/* Releases the memory of rows that have been read. */
void embeddings_drop(const struct embeddings *x, int64_t first, int64_t n);
/* XXH3 of the tensor's bytes. */
uint64_t embeddings_hash(const struct embeddings *x);
void embeddings_close(struct embeddings *x);

#endif
