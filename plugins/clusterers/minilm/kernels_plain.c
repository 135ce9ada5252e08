/* For any CPU: vectors of four, which the compiler maps to the available instructions; products and
 * sums are rounded separately. */
typedef float plain_vec __attribute__((vector_size(16)));
typedef int plain_ivec __attribute__((vector_size(16)));

static inline plain_vec plain_max(plain_vec a, plain_vec b)
{
    for (int i = 0; i < 4; i++) a[i] = a[i] > b[i] ? a[i] : b[i];
    return a;
}

#define TARGET
#define VEC plain_vec
#define IVEC plain_ivec
#define WIDTH 4
#define FMA(A, B, C) ((A) * (B) + (C))
#define MAX(A, B) plain_max((A), (B))
#define ROWS 2
#define TABLE BERT_PLAIN
#define KERNELS_NAME "plain"
#include "kernels_body.h"

#include <stdlib.h>

void bert_pack(float *packed, const float *w, int64_t ld, int64_t n, int64_t k, int transposed)
{
    for (int64_t n0 = 0; n0 < n; n0 += PANEL, packed += k * PANEL) {
        const int64_t columns = n - n0 < PANEL ? n - n0 : PANEL;
        if (columns < PANEL) memset(packed, 0, (size_t)(k * PANEL) * sizeof *packed);
        if (transposed)
            for (int64_t i = 0; i < k; i++) memcpy(packed + i * PANEL, w + i * ld + n0, (size_t)columns * sizeof *packed);
        else if (columns == PANEL)
            for (int64_t i = 0; i < k; i++)
                for (int64_t l = 0; l < PANEL; l++) packed[i * PANEL + l] = w[(n0 + l) * ld + i];
        else
            for (int64_t l = 0; l < columns; l++)
                for (int64_t i = 0; i < k; i++) packed[i * PANEL + l] = w[(n0 + l) * ld + i];
    }
}

const struct bert_kernels *bert_kernels_best(void)
{
    const char *mask = getenv("TARE_CPU");
    if (mask && !strcmp(mask, "ref")) return &BERT_PLAIN;
#if defined(__x86_64__)
    if (!(mask && !strcmp(mask, "avx2")) && __builtin_cpu_supports("avx512f")) return &BERT_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &BERT_AVX2;
    return &BERT_PLAIN;
#elif defined(__aarch64__)
    return &BERT_NEON;
#else
    return &BERT_PLAIN;
#endif
}
