/* libFuzzer target: any bytes as a safetensors file. Whatever is accepted is read. Build with clang -fsanitize=fuzzer,address,undefined
 * together with core/model/safetensors.c and core/base; corpus: tests/fuzz/corpus/safetensors. */
#include "model/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors s;
    struct err e = {0};
    if (safetensors_parse(data, (int64_t)size, "fuzz", &s, &e)) return 0;
    for (int64_t i = 0; i < s.n_tensors; i++) {
        const struct st_tensor *t = &s.tensors[i];
        if (t->data < data || t->bytes < 0 || (size_t)(t->data - data) + (size_t)t->bytes > size) abort();
        if (safetensors_find(&s, t->name) != t) abort();
        float *x = malloc((size_t)t->bytes * 2 + 4); /* at least two bytes an element wherever it is read */
        if (x && t->bytes < 1 << 20) (void)st_read_f32(&s, t, x, &e);
        free(x);
    }
    safetensors_close(&s);
    return 0;
}
