/* Measures how fast products of few rows read their weights, compared with a loop that only reads:
 * SmolLM2's products, in the order in which a token uses them, from memory.
 *
 *   cc -O2 -Icore -Ikernels -Isdk/include bench/few_rows.c build/libtare_kernels.a \
 *      build/libtare_base.a -ljansson -lm -lpthread -o /tmp/few_rows
 *   /tmp/few_rows [ISA [THREADS [ROWS [f32|bf16|int8]]]]
 *
 * Both alternate for 25 rounds. Prints the median rates in GB/s and the median of the rounds'
 * ratios. The loop reads the same bytes, split into as many tasks. Weights are on huge pages, as in
 * the engine. */
#define _GNU_SOURCE
#include "base/arena.h"
#include "base/clock.h"
#include "base/pool.h"
#include "kernels.h"
#include "kernels_cpu.h"
#include "median.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* TASKS: per thread */
enum { ROUNDS = 25, LAYERS = 30, PRODUCTS = 4, MOST_ROWS = 64, TASKS = 8, PAGE = 2 << 20 };

static const int64_t SHAPE[PRODUCTS + 1][2] = {
    {960, 576}, {576, 576}, {3072, 576}, {576, 1536}, {49152, 576}}; /* the last one is the head */

struct bench {
    const struct kernels *k;
    struct kctx c;
    enum dtype dtype;
    int int8;
    int64_t rows;
    char *weights;
    float *x, *y;
};

struct reading {
    const char *at;
    int64_t bytes, tasks;
    volatile uint64_t sink[64];
};

static int64_t bytes_of(const struct bench *b, int i)
{
    const int64_t n = SHAPE[i][0], k = SHAPE[i][1];
    return (b->int8 ? b->k->int8_bytes(n, k, b->dtype) : b->k->packed_bytes(n, k, b->dtype)) / 64 * 64;
}

static void read_task(void *arg, int64_t task, int thread)
{
    typedef uint64_t vector __attribute__((vector_size(64)));
    struct reading *r = arg;
    const int64_t n = r->bytes / r->tasks / 256;
    const vector *p = (const vector *)(const void *)(r->at + task * n * 256);
    vector a = {0}, b = {0}, c = {0}, d = {0};
    (void)thread;
    for (int64_t i = 0; i < n; i++, p += 4) {
        a ^= p[0];
        b ^= p[1];
        c ^= p[2];
        d ^= p[3];
    }
    a ^= b ^ c ^ d;
    r->sink[task % 64] = a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
}

static void one(const struct bench *b, int product, const char *at, int only_read)
{
    static struct reading r;
    if (only_read) {
        r.at = at;
        r.bytes = bytes_of(b, product);
        r.tasks = TASKS * pool_threads(b->c.pool);
        pool_run(b->c.pool, r.tasks, read_task, &r);
        return;
    }
    KERNEL(b->k, &b->c, matmul, .y = b->y, .x = b->x, .packed = at, .t = b->rows, .n = SHAPE[product][0], .k = SHAPE[product][1],
           .dtype = b->dtype, .int8 = b->int8);
}

enum { LAYERS_RATE, HEAD_RATE, RATES };

/* Bytes per second of a token's layers, and then of its head. The head therefore comes from memory,
 * like the layers, and not from the last cache. */
static void token(const struct bench *b, int only_read, double rates[RATES])
{
    const char *at = b->weights;
    double begin = clock_seconds();
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < PRODUCTS; i++) {
            one(b, i, at, only_read);
            at += bytes_of(b, i);
        }
    rates[LAYERS_RATE] = (double)(at - b->weights) / (clock_seconds() - begin);
    begin = clock_seconds();
    one(b, PRODUCTS, at, only_read);
    rates[HEAD_RATE] = (double)bytes_of(b, PRODUCTS) / (clock_seconds() - begin);
}

static void compare(const struct bench *b)
{
    static const char *const names[RATES] = {"layers", "head"};
    double ours[RATES][ROUNDS], reading[RATES][ROUNDS], ratio[RATES][ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double first[RATES], second[RATES];
        token(b, 1, first);
        token(b, 0, second);
        for (int part = 0; part < RATES; part++) {
            reading[part][i] = first[part];
            ours[part][i] = second[part];
            ratio[part][i] = second[part] / first[part];
        }
    }
    for (int part = 0; part < RATES; part++)
        printf("%-6s %5.1f GB/s, reading %5.1f, %.2fx\n", names[part], median(ours[part], ROUNDS) * 1e-9,
               median(reading[part], ROUNDS) * 1e-9, median(ratio[part], ROUNDS));
}

static int fail(const char *text)
{
    fprintf(stderr, "few_rows: %s\n", text);
    return 1;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct arena scratch;
    struct pool *pool = NULL;
    const int threads = argc > 2 ? atoi(argv[2]) : 1;
    const char *kind = argc > 4 ? argv[4] : "bf16";
    struct bench b = {.rows = argc > 3 ? atoi(argv[3]) : 1, .int8 = !strcmp(kind, "int8")};
    int64_t all = 0;
    b.dtype = strcmp(kind, "f32") ? DTYPE_BF16 : DTYPE_F32;
    if (b.rows < 1 || b.rows > MOST_ROWS || threads < 1) return fail("1 to 64 rows, at least one thread");
    if (kernels_cpu(argc > 1 ? argv[1] : NULL, &b.k, &e) || (threads > 1 && pool_new(threads, &pool, &e)))
        return fail("no such kernels here, or no threads");
    arena_init(&scratch, "few rows");
    b.c = (struct kctx){.pool = pool, .scratch = &scratch};
    for (int i = 0; i <= PRODUCTS; i++) all += bytes_of(&b, i) * (i < PRODUCTS ? LAYERS : 1);
    b.weights = mmap(NULL, (size_t)all + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    b.x = calloc(MOST_ROWS * 1536, sizeof *b.x);
    b.y = calloc(MOST_ROWS * 49152, sizeof *b.y);
    if (b.weights == MAP_FAILED || !b.x || !b.y) return fail("no memory");
    b.weights += PAGE - (int64_t)(uintptr_t)b.weights % PAGE;
    madvise(b.weights, (size_t)all, MADV_HUGEPAGE);
    memset(b.weights, 0, (size_t)all);
    printf("# %s, %d threads, %d rows, %s\n", b.k->name, threads, (int)b.rows, kind);
    compare(&b);
    pool_free(pool);
    return 0;
}
