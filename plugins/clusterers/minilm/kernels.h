/* Row-major fp32 operations of the encoder, for AVX-512, AVX2 with FMA, NEON, or any CPU (chosen once).
 *
 * A product sums over its inner index in one chain acc = fma(x[k], w[k], acc) from 0 and adds the
 * bias last; row sums run in sixteen lanes, added in one fixed tree. So a row's result never depends
 * on the neighbouring rows, and AVX-512, AVX2 and NEON compute the same bits. (For any CPU, where
 * products and sums are rounded separately, the last bits differ.) */
#ifndef TARE_CLUSTERERS_MINILM_KERNELS_H
#define TARE_CLUSTERERS_MINILM_KERNELS_H

#include <stdint.h>

enum { PANEL = 16 }; /* outputs that are neighbours in packed weights */

/* y[t, n] = x[t, k] w^T + bias */
struct bert_product {
    float *y;
    int64_t ldy; /* a multiple of 16, at least n */
    const float *x;
    int64_t ldx;
    const float *packed, *bias; /* [ceil(n/16), k, 16]; [n] or NULL */
    int64_t t, n, k;
};

/* x = (x + y - mean) / sqrt(variance + eps) * gain + bias for t rows of n, n a multiple of 16 */
struct bert_norm {
    float *x;
    const float *y;           /* [t, n] or NULL */
    const float *gain, *bias; /* [n] */
    int64_t t, n;
    float eps;
};

struct bert_kernels {
    const char *name;
    void (*product)(const struct bert_product *o);
    /* x = gelu(x) = x (1 + erf(x / sqrt 2)) / 2, n a multiple of 16 */
    void (*gelu)(float *x, int64_t n);
    /* rows of x [t, n] with stride ld: exp(scale (x - max)) / sum; the columns after n up to ld
     * become 0 */
    void (*softmax)(float *x, int64_t ld, int64_t t, int64_t n, float scale);
    void (*norm)(const struct bert_norm *o);
};

extern const struct bert_kernels BERT_PLAIN;
#if defined(__x86_64__)
extern const struct bert_kernels BERT_AVX2, BERT_AVX512;
#elif defined(__aarch64__)
extern const struct bert_kernels BERT_NEON;
#endif
/* Returns the fastest table that runs here; TARE_CPU=ref or avx2 chooses a slower one. */
const struct bert_kernels *bert_kernels_best(void);

/* Packs w [n, k] -> [ceil(n/16), k, 16], zeros after n. transposed 1: w is [k, n]. ld: stride of w.
 */
void bert_pack(float *packed, const float *w, int64_t ld, int64_t n, int64_t k, int transposed);

#endif
