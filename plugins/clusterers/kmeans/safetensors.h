/* Reads a safetensors file: 8 bytes of header length (little-endian), a JSON header, then the
 * tensors' bytes.
 *
 * The file is mapped; tensors are views that live until safetensors_close. The whole header is
 * checked on opening: lengths against the file, offsets against shapes and types, and tensors that
 * overlap or leave gaps. Messages name the file and the tensor. */
#ifndef TARE_CLUSTERERS_SAFETENSORS_H
#define TARE_CLUSTERERS_SAFETENSORS_H

#include <tare/sdk.h>

#include <jansson.h>

enum tensor_type { TENSOR_OTHER, TENSOR_F32, TENSOR_F16, TENSOR_BF16, TENSOR_U8 };
enum { TENSOR_RANK = 8 };

struct tensor {
    const char *name, *type_name;
    enum tensor_type type;
    int64_t shape[TENSOR_RANK], rank, items;
    int64_t begin, end; /* bytes, from the first byte after the header */
    const unsigned char *data;
};

struct safetensors {
    const char *path; /* the caller's; lives as long as the struct */
    void *map;
    int64_t size;
    json_t *header;
    struct tensor *tensors; /* [n] in ascending order of begin */
    int64_t n;
};

tare_status safetensors_open(struct safetensors *s, const char *path, tare_error *error);
void safetensors_close(struct safetensors *s);
/* Returns NULL when no tensor has this name. */
const struct tensor *safetensors_find(const struct safetensors *s, const char *name);
/* Returns a string of __metadata__, or NULL. size may be NULL. */
const char *safetensors_metadata(const struct safetensors *s, const char *key, int64_t *size);
/* Widens f32, f16 or bf16 to out [items]; other types fail. */
tare_status tensor_floats(const struct safetensors *s, const struct tensor *t, float *out, tare_error *error);

#endif
