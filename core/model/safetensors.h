/* Reads and writes safetensors files.
 *
 * A file is: 8 bytes, length n of the header, little-endian; n bytes of JSON {"name": {"dtype",
 * "shape", "data_offsets": [begin, end]}, ..., "__metadata__": {...}}; then the tensors' bytes,
 * offsets counted from there. Every byte belongs to exactly one tensor. Source:
 * https://github.com/huggingface/safetensors (README, "Format").
 *
 * Reading maps the files; a tensor's data points into the map, at any alignment. Headers are
 * checked before anything is used: errors name file and tensor, TARE_E_CORRUPT for a damaged file,
 * TARE_E_NOT_FOUND for a missing file or tensor, TARE_E_SHAPE for an unexpected shape,
 * TARE_E_UNSUPPORTED for a type that cannot be converted. */
#ifndef TARE_CORE_MODEL_SAFETENSORS_H
#define TARE_CORE_MODEL_SAFETENSORS_H

#include "base/arena.h"
#include "base/fs.h"
#include "kernels.h"

enum { ST_MAX_RANK = 8 };

struct st_tensor {
    const char *name;
    char dtype[16]; /* as in the file: "F32", "BF16", "I64", ... */
    int64_t shape[ST_MAX_RANK], rank;
    const unsigned char *data;
    int64_t bytes;
    int64_t file; /* index into files */
};

struct st_file {
    const char *path;
    struct fs_map map;
};

struct safetensors { /* one file, or the shards of a model */
    struct st_file *files;
    int64_t n_files;
    struct st_tensor *tensors; /* sorted by name */
    int64_t n_tensors;
    struct arena arena; /* holds all of the above */
};

tare_status safetensors_open(const char *path, struct safetensors *out, struct err *e);
/* Opens model.safetensors of a folder, or the shards named in model.safetensors.index.json. */
tare_status safetensors_open_folder(const char *folder, struct safetensors *out, struct err *e);
/* Does the same for bytes in memory, which must outlive out; for the fuzzer and the tests of
 * damaged headers. name: for messages. */
tare_status safetensors_parse(const unsigned char *data, int64_t size, const char *name, struct safetensors *out, struct err *e);
void safetensors_close(struct safetensors *s);

/* Returns NULL if there is no such tensor. */
const struct st_tensor *safetensors_find(const struct safetensors *s, const char *name);
int64_t safetensors_count(const struct st_tensor *t); /* elements */
/* out[count] = the tensor as float. F32, F16 and BF16 only. */
tare_status safetensors_read_f32(const struct safetensors *s, const struct st_tensor *t, float *out, struct err *e);
/* Sets *out if both tensors have the same shape and weights. */
tare_status safetensors_equal(const struct safetensors *s, const struct st_tensor *a, const struct st_tensor *b, bool *out,
                              struct err *e);
struct st_extent {
    int64_t rank, rows, cols; /* rank 1: cols is ignored */
};
/* Finds a tensor of this shape (rank 1 or 2; cols ignored for rank 1) and reads it. A weight that
 * is NaN or infinite is TARE_E_NOT_FINITE, with file, tensor, row and column. */
tare_status safetensors_read(const struct safetensors *s, const char *name, struct st_extent x, float *out, struct err *e);

/* ---- writing */
struct st_source {
    const char *name;
    int64_t rank, shape[2];
    const float *data; /* NULL: fetched when it is written */
};
/* Fetches the floats of tensor i, valid until the next call. Tensors are fetched in order, once
 * each. */
typedef tare_status (*st_fetch)(void *ctx, int64_t i, const float **data, struct err *e);
/* Writes a file of these tensors, converted to dtype (F32, or BF16 to nearest even): to a temporary
 * file, which is synced and renamed. */
tare_status safetensors_write(const char *path, const struct st_source *tensors, int64_t n, enum dtype dtype, struct err *e);
struct st_writer {
    st_fetch fetch;
    void *ctx;
    enum dtype dtype;
    int64_t shard_bytes; /* larger models are sharded */
};
/* Writes model.safetensors, or shards of at most shard_bytes of tensor data each (one tensor may be
 * larger) and their index. fetch: for tensors without data; may be NULL. */
tare_status safetensors_write_folder(const char *folder, const struct st_source *tensors, int64_t n, const struct st_writer *how,
                                     struct err *e);

/* ---- conversions */
uint16_t safetensors_to_bf16(float x); /* rounds to nearest even; NaN stays NaN */
float safetensors_from_f16(uint16_t h);

#endif
