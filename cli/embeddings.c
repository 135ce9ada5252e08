#include "cli/embeddings.h"

#include "base/fs.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

tare_status embeddings_open(const char *path, const char *name, struct embeddings *out, struct err *e)
{
    *out = (struct embeddings){0};
    TRY(safetensors_open(path, &out->file, e));
    const struct st_tensor *t = safetensors_find(&out->file, name ? name : "embeddings");
    if (!t && !name) {
        int64_t matrices = 0;
        for (int64_t i = 0; i < out->file.n_tensors; i++) {
            if (out->file.tensors[i].rank != 2) continue;
            t = &out->file.tensors[i];
            matrices++;
        }
        if (matrices != 1) t = NULL;
    }
    tare_status s = TARE_OK;
    if (!t)
        s = err_set(e, TARE_E_NOT_FOUND, __FILE__, __LINE__, "%s: missing tensor \"%s\"; name one with --tensor", path,
                    name ? name : "embeddings");
    else if (t->rank != 2 || t->shape[0] < 1 || t->shape[1] < 1)
        s = err_set(e, TARE_E_SHAPE, __FILE__, __LINE__, "%s: tensor %s: must have the shape [rows, width]", path, t->name);
    else if (strcmp(t->dtype, "F32") && strcmp(t->dtype, "F16") && strcmp(t->dtype, "BF16"))
        s = err_set(e, TARE_E_UNSUPPORTED, __FILE__, __LINE__, "%s: tensor %s has type %s: must be F32, F16 or BF16", path, t->name,
                    t->dtype);
    if (s) {
        embeddings_close(out);
        return s;
    }
    out->tensor = t;
    out->n = t->shape[0];
    out->d = t->shape[1];
    return TARE_OK;
}

tare_status embeddings_read(const struct embeddings *x, int64_t first, int64_t n, float *out, struct err *e)
{
    const int64_t item = x->tensor->bytes / (x->n * x->d);
    struct st_tensor part = *x->tensor;
    part.shape[0] = n;
    part.bytes = n * x->d * item;
    part.data = x->tensor->data + first * x->d * item;
    TRY(safetensors_read_f32(&x->file, &part, out, e));
    for (int64_t i = 0; i < n * x->d; i++)
        if (!isfinite(out[i]))
            FAIL(e, TARE_E_NOT_FINITE, "tensor %s: row %lld has a NaN or an infinity", part.name, (long long)(first + i / x->d));
    return TARE_OK;
}

void embeddings_drop(const struct embeddings *x, int64_t first, int64_t n)
{
    const int64_t row = x->tensor->bytes / x->n;
    const uintptr_t page = 4096, begin = ((uintptr_t)x->tensor->data + (uintptr_t)(first * row) + page - 1) & ~(page - 1);
    const uintptr_t end = ((uintptr_t)x->tensor->data + (uintptr_t)((first + n) * row)) & ~(page - 1);
    if (end > begin) madvise((void *)begin, end - begin, MADV_DONTNEED);
}

uint64_t embeddings_hash(const struct embeddings *x)
{
    return fs_hash(x->tensor->data, x->tensor->bytes, 0);
}

void embeddings_close(struct embeddings *x)
{
    safetensors_close(&x->file);
    *x = (struct embeddings){0};
}
