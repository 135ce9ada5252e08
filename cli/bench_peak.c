#include "base/arena.h"
#include "bench.h"

#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { ROUNDS = 25, STEPS = 200000, CHAINS = 12 };
#define READ_BYTES ((int64_t)128 << 20)

struct peak {
    const float *memory;
    int64_t threads;
    volatile float sink[64]; /* keeps the loops from being optimised away */
    int wide;
};

#if defined(__x86_64__)
/* The result depends on every chain; otherwise the compiler drops it. */
#define LOOP(VECTOR, SET, FMA, ADD, STORE)                                                                                         \
    VECTOR c[CHAINS], sum = SET(0.0f);                                                                                             \
    const VECTOR a = SET(0.999f), b = SET(1e-3f);                                                                                  \
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) c[i] = SET((float)i);                                                \
    for (int64_t k = 0; k < STEPS; k++) {                                                                                          \
        _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) c[i] = FMA(c[i], a, b);                                          \
    }                                                                                                                              \
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sum = ADD(sum, c[i]);                                                \
    STORE(out, sum);

__attribute__((target("avx2,fma"))) static void fma_8(float *out)
{
    LOOP(__m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_storeu_ps)
}

__attribute__((target("avx512f"))) static void fma_16(float *out)
{
    LOOP(__m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_storeu_ps)
}

/* The register tile of gemm.c, ROWS x two vectors, with operands in the first-level cache: 2 loads
 * and ROWS broadcasts per step. Other work on the second hardware thread of a core slows this down
 * while it leaves plain multiply-adds at full speed. */
enum { TILE_STEPS = 192, TILE_RUNS = 150, TILE_TASKS = 16, TILE_FLOATS = TILE_STEPS * (14 + 32) };
#define TILE(VECTOR, ZERO, LOAD, SET, FMA, ADD, STORE, ROWS, LANES)                                                                \
    VECTOR c[ROWS][2], sum = ZERO();                                                                                               \
    _Pragma("GCC unroll 16") for (int r = 0; r < ROWS; r++) c[r][0] = c[r][1] = ZERO();                                            \
    for (int run = 0; run < TILE_RUNS; run++) {                                                                                    \
        const float *a = in, *b = in + ROWS * TILE_STEPS;                                                                          \
        __asm__ volatile("" : "+r"(a), "+r"(b)); /* forces the next run to load again */                                           \
        _Pragma("GCC unroll 4") for (int k = 0; k < TILE_STEPS; k++, a += ROWS, b += 2 * LANES)                                    \
        {                                                                                                                          \
            const VECTOR w0 = LOAD(b), w1 = LOAD(b + LANES);                                                                       \
            _Pragma("GCC unroll 16") for (int r = 0; r < ROWS; r++)                                                                \
            {                                                                                                                      \
                const VECTOR x = SET(a[r]);                                                                                        \
                c[r][0] = FMA(x, w0, c[r][0]), c[r][1] = FMA(x, w1, c[r][1]);                                                      \
            }                                                                                                                      \
        }                                                                                                                          \
    }                                                                                                                              \
    _Pragma("GCC unroll 16") for (int r = 0; r < ROWS; r++) sum = ADD(sum, ADD(c[r][0], c[r][1]));                                 \
    STORE(out, sum);

__attribute__((target("avx2,fma"))) static void tile_8(float *out, const float *in)
{
    TILE(__m256, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_storeu_ps, 6, 8)
}

__attribute__((target("avx512f"))) static void tile_16(float *out, const float *in)
{
    TILE(__m512, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_storeu_ps, 14, 16)
}

static void tile_task(void *arg, int64_t task, int thread)
{
    struct peak *p = arg;
    float out[16];
    (void)thread;
    if (p->wide)
        tile_16(out, p->memory);
    else
        tile_8(out, p->memory);
    p->sink[task % 64] = out[0];
}

static void flops_task(void *arg, int64_t task, int thread)
{
    struct peak *p = arg;
    float out[16];
    (void)thread;
    if (p->wide)
        fma_16(out);
    else
        fma_8(out);
    p->sink[task % 64] = out[0];
}
#endif

double bench_clock(struct pool *pool)
{
    struct timespec t;
    clock_gettime(pool_threads(pool) == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double best_seconds(struct pool *pool, pool_task task, struct peak *p)
{
    double best = 1e30;
    for (int r = 0; r < ROUNDS; r++) {
        const double start = bench_clock(pool);
        pool_run(pool, p->threads, task, p);
        const double took = bench_clock(pool) - start;
        best = took < best ? took : best;
    }
    return best;
}

#if defined(__x86_64__)
/* True if the table of this name computes with AVX-512. */
static int is_wide(const char *isa)
{
    return !strncmp(isa, "avx512", 6) || !strcmp(isa, "amx") || !strcmp(isa, "amx-avx512");
}
#endif

double bench_peak_flops(struct pool *pool, const char *isa)
{
#if defined(__x86_64__)
    struct peak p = {.threads = pool_threads(pool), .wide = is_wide(isa)};
    if (!__builtin_cpu_supports("fma") || (p.wide && !__builtin_cpu_supports("avx512f"))) return 0;
    return (double)p.threads * STEPS * CHAINS * (p.wide ? 32 : 16) / best_seconds(pool, flops_task, &p) * 1e-9;
#else
    (void)pool, (void)isa;
    return 0;
#endif
}

double bench_tile(struct pool *pool, const char *isa)
{
#if defined(__x86_64__)
    static const float in[TILE_FLOATS];
    struct peak p = {.threads = pool_threads(pool), .wide = is_wide(isa), .memory = in};
    if (!__builtin_cpu_supports("fma") || (p.wide && !__builtin_cpu_supports("avx512f"))) return 0;
    pool_run(pool, p.threads * TILE_TASKS, tile_task, &p);
    return (double)p.threads * TILE_TASKS * TILE_RUNS * TILE_STEPS * (p.wide ? 14 * 64 : 6 * 32);
#else
    (void)pool, (void)isa;
    return 0;
#endif
}

static void read_task(void *arg, int64_t task, int thread)
{
    struct peak *p = arg;
    const int64_t n = READ_BYTES / 4 / p->threads / 64 * 64;
    const float *at = p->memory + task * n;
    const uint64_t *word = (const uint64_t *)(const void *)at;
    uint64_t sum[4] = {0}; /* one word per cache line: memory transfers whole lines */
    (void)thread;
    for (int64_t i = 0; i < n / 2; i += 32)
        for (int j = 0; j < 4; j++) sum[j] += word[i + 8 * j];
    p->sink[task % 64] = (float)(sum[0] + sum[1] + sum[2] + sum[3]);
}

double bench_peak_read(struct pool *pool)
{
    struct peak p = {.threads = pool_threads(pool)};
    struct err e;
    void *memory;
    if (mem_new(READ_BYTES, &memory, &e)) return 0;
    /* untouched pages share one page of zeros, which stays in the cache */
    memset(memory, 1, (size_t)READ_BYTES);
    p.memory = memory;
    const double seconds = best_seconds(pool, read_task, &p);
    mem_free(memory);
    return (double)READ_BYTES / seconds * 1e-9;
}
