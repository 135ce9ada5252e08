/* Shared by the kernel checks: random buffers between guard zones, and every backend of this
 * machine at 1, 2 and 3 threads compared with ref. */
#ifndef KERNEL_CHECK_H
#define KERNEL_CHECK_H

#include "base/arena.h"
#include "base/rng.h"
#include "check.h"
#include "exact.h"
#include "kernels.h"

#include <math.h>
#include <string.h>

enum { GUARD = 64, POOLS = 3, MOST_BUFFERS = 256 };

/* Floats with 64 bytes of a pattern on both sides, starting `shift` floats after a 64-byte line.
 * All are freed by buffers_end, which checks the guards. */
struct buffer {
    char *base;
    int64_t n, shift;
};
static struct buffer buffers[MOST_BUFFERS];
static int n_buffers;
static uint64_t draws;

static inline float *floats(int64_t n, int64_t shift)
{
    const int64_t bytes = (2 * GUARD + 4 * (n + shift) + 63) / 64 * 64 + 64;
    char *base = aligned_alloc(64, (size_t)bytes);
    assert_non_null(base);
    assert_true(n_buffers < MOST_BUFFERS);
    memset(base, 0xA5, (size_t)bytes);
    buffers[n_buffers++] = (struct buffer){base, n, shift};
    return (float *)(void *)(base + GUARD) + shift;
}

/* Uniform in [-size, size). */
static inline float *randoms(int64_t n, int64_t shift, float size)
{
    float *p = floats(n, shift);
    for (int64_t i = 0; i < n; i++) p[i] = size * (float)(2 * rng_uniform((struct rng_key){{1, 2}}, draws++, 0) - 1);
    return p;
}

static inline float *copied(const float *from, int64_t n, int64_t shift)
{
    float *p = floats(n, shift);
    memcpy(p, from, (size_t)n * sizeof *p);
    return p;
}

static inline void buffers_end(void)
{
    for (int i = 0; i < n_buffers; i++) {
        const struct buffer *b = &buffers[i];
        const unsigned char *at = (const unsigned char *)b->base, *end = at + GUARD + 4 * (b->shift + b->n);
        for (int64_t j = 0; j < GUARD + 4 * b->shift; j++)
            if (at[j] != 0xA5) fail_msg("a byte before a buffer of %lld floats was written", (long long)b->n);
        for (int j = 0; j < GUARD; j++)
            if (end[j] != 0xA5) fail_msg("byte %d after a buffer of %lld floats was written", j, (long long)b->n);
        free(b->base);
    }
    n_buffers = 0;
}

static inline void assert_bits(const char *what, const float *got, const float *expected, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&got[i], &expected[i], 4))
            fail_msg("%s: element %lld of %lld is %.9g, not %.9g", what, (long long)i, (long long)n, (double)got[i],
                     (double)expected[i]);
}

/* got - expected| <= tolerance * scale, where scale is the magnitude of the summed terms. */
static inline void assert_near(const char *what, const float *got, const float *expected, int64_t n, double tolerance)
{
    double scale = 1e-30;
    for (int64_t i = 0; i < n; i++) scale = fabs((double)expected[i]) > scale ? fabs((double)expected[i]) : scale;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)expected[i]) <= tolerance * scale))
            fail_msg("%s: element %lld is %.9g, not %.9g (allowed %.3g)", what, (long long)i, (double)got[i], (double)expected[i],
                     tolerance * scale);
}

/* ---- backends */
/* AMX's order of sums has a separate reference; ref is the one for the backend being checked. */
static const struct kernels *ref, *ref_in_order, *ref_amx;
static struct arena arenas[POOLS];
static struct kctx contexts[POOLS];

static inline int kernel_setup(void **state)
{
    struct err e;
    (void)state;
    if (kernels_cpu("ref", &ref, &e) || kernels_cpu("ref-amx", &ref_amx, &e)) return -1;
    ref_in_order = ref;
    for (int i = 0; i < POOLS; i++) {
        arena_init(&arenas[i], "kernel scratch");
        contexts[i] = (struct kctx){.scratch = &arenas[i]};
        if (i && pool_new(i + 1, &contexts[i].pool, &e)) return -1;
    }
    return 0;
}

static inline int kernel_teardown(void **state)
{
    (void)state;
    for (int i = 0; i < POOLS; i++) {
        pool_free(contexts[i].pool);
        arena_free(&arenas[i]);
    }
    return 0;
}

typedef void (*kernel_test)(const struct kernels *k, const struct kctx *c, const char *where);

/* Run the test for every backend except ref and every pool; print those that this machine lacks. */
static inline void each_backend(kernel_test test)
{
    static const char *const names[] = {"avx2",     "emu512",     "emu512bf16", "avx512", "avx512bf16",
                                        "amx-avx2", "amx-avx512", "amx-native", "neon",   "amx-neon"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        const struct kernels *k;
        struct err e;
        ref = strncmp(names[i], "amx", 3) ? ref_in_order : ref_amx;
        if (kernels_cpu(names[i], &k, &e)) {
            printf("not here: %s: %s\n", names[i], e.message);
            continue;
        }
        for (int j = 0; j < POOLS; j++) {
            char where[64];
            snprintf(where, sizeof where, "%s, %d threads", names[i], j + 1);
            test(k, &contexts[j], where);
            buffers_end();
        }
    }
    ref = ref_in_order;
}

static inline double sum_of_squares(const struct kernels *k, const struct kctx *c, const float *x, int64_t n)
{
    double sum = 0, *there = k->backend->alloc(c, sizeof sum);
    assert_non_null(there);
    KERNEL(k, c, sum_squares, .out = there, .x = x, .n = n, .block = n);
    k->backend->download(c, &sum, there, sizeof sum);
    k->backend->release(c, there);
    return sum;
}

#endif
