/* Arithmetic that every backend performs in the same order, so that all give bit-identical results:
 * exp and log as polynomials, bf16 rounding, and the fixed point in which sampling adds
 * probabilities. The vector versions (cpu/simd.h) repeat these operations lane by lane.
 *
 * exp: x = n ln2 + r, |r| <= ln2/2; e^r = 1 + r + r^2 P(r), P from Cephes (Moshier) expf; at most
 *      1.1 ulp (tests measure it). 0 below -87.33 (no denormals); above 88.37 the value at 88.37;
 *      NaN stays NaN.
 * log: x = 2^n m, m in [sqrt(1/2), sqrt 2); P from Cephes logf; for x > 0, normal. */
#ifndef TARE_KERNELS_EXACT_H
#define TARE_KERNELS_EXACT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define EXP_LOW (-87.33f)
#define EXP_HIGH 88.37f
#define EXP_LOG2E 1.44269504088896341f
#define EXP_LN2_HIGH 0.693359375f
#define EXP_LN2_LOW (-2.12194440e-4f)
#define EXP_P0 1.9875691500e-4f
#define EXP_P1 1.3981999507e-3f
#define EXP_P2 8.3334519073e-3f
#define EXP_P3 4.1665795894e-2f
#define EXP_P4 1.6666665459e-1f
#define EXP_P5 5.0000001201e-1f

/* The CUDA backend compiles the same functions for the device. */
#ifndef EXACT_FUNCTION
#define EXACT_FUNCTION static inline
#endif

/* exp is 0 below this bound. Logits this far below the maximum are all treated as this value, so
 * that 0 * -inf never occurs. */
#define SOFTMAX_FLOOR (-200.0f)

EXACT_FUNCTION uint32_t f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

EXACT_FUNCTION float f32_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

EXACT_FUNCTION float exact_exp(float x)
{
    if (!(x >= EXP_LOW)) return x < EXP_LOW ? 0.0f : x;
    x = x < EXP_HIGH ? x : EXP_HIGH;
    const float n = nearbyintf(x * EXP_LOG2E);
    float r = fmaf(n, -EXP_LN2_HIGH, x);
    r = fmaf(n, -EXP_LN2_LOW, r);
    float p = EXP_P0;
    p = fmaf(p, r, EXP_P1);
    p = fmaf(p, r, EXP_P2);
    p = fmaf(p, r, EXP_P3);
    p = fmaf(p, r, EXP_P4);
    p = fmaf(p, r, EXP_P5);
    const float y = fmaf(p, r * r, r) + 1.0f;
    return y * f32_from_bits((uint32_t)((int32_t)n + 127) << 23);
}

EXACT_FUNCTION float exact_log(float x)
{
    const uint32_t u = f32_bits(x);
    int32_t n = (int32_t)(u >> 23) - 126;
    float m = f32_from_bits((u & 0x007fffffu) | 0x3f000000u); /* in [1/2, 1) */
    if (m < 0.707106781186547524f) {
        n--;
        m = m + m;
    }
    m -= 1.0f;
    const float z = m * m, e = (float)n;
    float p = 7.0376836292e-2f;
    p = fmaf(p, m, -1.1514610310e-1f);
    p = fmaf(p, m, 1.1676998740e-1f);
    p = fmaf(p, m, -1.2420140846e-1f);
    p = fmaf(p, m, 1.4249322787e-1f);
    p = fmaf(p, m, -1.6668057665e-1f);
    p = fmaf(p, m, 2.0000714765e-1f);
    p = fmaf(p, m, -2.4999993993e-1f);
    p = fmaf(p, m, 3.3333331174e-1f);
    p = p * m * z;
    p = fmaf(e, EXP_LN2_LOW, p);
    p = fmaf(z, -0.5f, p);
    return fmaf(e, EXP_LN2_HIGH, m + p);
}

/* Add sixteen lanes in the fixed tree 8+8, 4+4, 2+2, 1+1. */
EXACT_FUNCTION float lanes_sum(const float lane[16])
{
    float a[8];
    for (int i = 0; i < 8; i++) a[i] = lane[i] + lane[i + 8];
    for (int i = 0; i < 4; i++) a[i] += a[i + 4];
    for (int i = 0; i < 2; i++) a[i] += a[i + 2];
    return a[0] + a[1];
}

/* Round to nearest even; NaN stays NaN. */
EXACT_FUNCTION uint16_t bf16_from_f32(float x)
{
    const uint32_t u = f32_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

EXACT_FUNCTION float bf16_to_f32(uint16_t h)
{
    return f32_from_bits((uint32_t)h << 16);
}

EXACT_FUNCTION float bf16_round(float x)
{
    return bf16_to_f32(bf16_from_f32(x));
}

/* Weights in int8. Every INT8_BLOCK numbers of a row of W (the last block may be shorter) share one
 * scale s = max|w| / 127, rounded to bf16. Each number is stored as q = w / s, rounded to nearest,
 * ties to even. Every product uses the number s q, rounded to bf16 if the product is in bf16; in
 * fp32 it is exact. s is 0 where it would not be a normal number, and at most 2^112, so that
 * neither s q nor s (2^15 + 128), with which kernels compute it (cpu/gemm_int8.c), is denormal or
 * infinite. */
enum { INT8_BLOCK = 32 };

EXACT_FUNCTION uint16_t int8_scale(const float *w, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++) most = fabsf(w[i]) > most ? fabsf(w[i]) : most;
    const float s = bf16_round(most / 127.0f);
    return s < 0x1p-126f ? 0 : bf16_from_f32(s < 0x1p112f ? s : 0x1p112f);
}

EXACT_FUNCTION int8_t int8_from_f32(float w, uint16_t scale)
{
    const float q = scale ? w / bf16_to_f32(scale) : 0;
    /* NaN gives 0; packing has already refused it (kernels_ops.h) */
    if (!(q > -127.0f)) return q <= -127.0f ? -127 : 0;
    return (int8_t)nearbyintf(q < 127.0f ? q : 127.0f);
}

EXACT_FUNCTION float int8_to_f32(int8_t q, uint16_t scale, int bf16)
{
    const float w = bf16_to_f32(scale) * (float)q;
    return bf16 ? bf16_round(w) : w;
}

/* Index of the i-th term of a chain over n products of bf16 numbers: pairs, the odd one first, as
 * vdpbf16ps adds them. */
EXACT_FUNCTION int64_t bf16_place(int64_t i, int64_t n)
{
    return (i ^ 1) < n ? i ^ 1 : i;
}

/* The term that 32-bit word i adds to a digest (kernels_ops.h): the finalizer of splitmix64
 * (Steele, Lea and Flood 2014) of word and index. It is a bijection, so changing one word always
 * changes the digest. */
EXACT_FUNCTION uint64_t digest_word(uint32_t word, uint64_t i)
{
    uint64_t x = i * UINT64_C(0x9e3779b97f4a7c15) + word;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* A probability relative to the row's largest, in [0, 1], as a multiple of 2^-44. Sums of these are
 * exact in any order. NaN gives 0. */
EXACT_FUNCTION uint64_t mass_of(float e)
{
    return e > 0 ? (uint64_t)(e * 0x1p44f) : 0;
}

#endif
