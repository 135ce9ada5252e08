/* The engine's fp32 product with packed weights against oneDNN's matmul primitive (weights in its own layout), in the same run.
 *
 *   cc -O2 -Icore -Ikernels -Isdk/include bench/gemm_vs_onednn.c build/libtare_kernels.a build/libtare_base.a -ldnnl -ljansson -lm -lpthread -o /tmp/gemm
 *   OMP_NUM_THREADS=1 /tmp/gemm 1;  OMP_NUM_THREADS=2 /tmp/gemm 2          (oneDNN 2.x: libdnnl-dev)
 *
 * Both take turns in runs of about 1.5 ms; the best of each counts, so that a busy machine disturbs both alike.
 */
#define _GNU_SOURCE
#include "base/arena.h"
#include "base/clock.h"
#include "kernels.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(X)                                                                                                                   \
    do {                                                                                                                           \
        if ((X) != dnnl_success) {                                                                                                 \
            fprintf(stderr, "oneDNN: line %d failed\n", __LINE__);                                                                 \
            exit(1);                                                                                                               \
        }                                                                                                                          \
    } while (0)

struct theirs {
    dnnl_primitive_t primitive;
    dnnl_memory_t x, w, y;
};

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void fill(dnnl_memory_t m, const dnnl_memory_desc_t *d)
{
    float *p;
    CHECK(dnnl_memory_get_data_handle(m, (void **)&p));
    for (size_t i = 0; i < dnnl_memory_desc_get_size(d) / 4; i++) p[i] = (float)(i % 17) * 0.1f - 0.8f;
}

static struct theirs theirs_new(int64_t t, int64_t n, int64_t k)
{
    const dnnl_dims_t dx = {t, k}, dw = {k, n}, dy = {t, n};
    dnnl_memory_desc_t x, w, y;
    CHECK(dnnl_memory_desc_init_by_tag(&x, 2, dx, dnnl_f32, dnnl_ab));
    CHECK(dnnl_memory_desc_init_by_tag(&w, 2, dw, dnnl_f32, dnnl_format_tag_any));
    CHECK(dnnl_memory_desc_init_by_tag(&y, 2, dy, dnnl_f32, dnnl_ab));
    dnnl_matmul_desc_t d;
    CHECK(dnnl_matmul_desc_init(&d, &x, &w, NULL, &y));
    dnnl_primitive_desc_t pd;
    CHECK(dnnl_primitive_desc_create(&pd, &d, NULL, engine, NULL));
    struct theirs s;
    CHECK(dnnl_primitive_create(&s.primitive, pd));
    const dnnl_memory_desc_t *own = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    CHECK(dnnl_memory_create(&s.x, &x, engine, DNNL_MEMORY_ALLOCATE));
    CHECK(dnnl_memory_create(&s.w, own, engine, DNNL_MEMORY_ALLOCATE));
    CHECK(dnnl_memory_create(&s.y, &y, engine, DNNL_MEMORY_ALLOCATE));
    fill(s.x, &x);
    fill(s.w, own);
    CHECK(dnnl_primitive_desc_destroy(pd));
    return s;
}

static void theirs_run(const struct theirs *s)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, s->x}, {DNNL_ARG_WEIGHTS, s->w}, {DNNL_ARG_DST, s->y}};
    CHECK(dnnl_primitive_execute(s->primitive, stream, 3, args));
    CHECK(dnnl_stream_wait(stream));
}

static void compare(const struct kernels *k, const struct kctx *c, int64_t t, int64_t n, int64_t inner)
{
    struct theirs other = theirs_new(t, n, inner);
    float *x = k->alloc(c, t * inner * 4), *w = k->alloc(c, n * inner * 4), *y = k->alloc(c, t * n * 4);
    void *p = k->alloc(c, k->packed_bytes(n, inner, DTYPE_F32));
    for (int64_t i = 0; i < t * inner; i++) x[i] = (float)(i % 17) * 0.1f - 0.8f;
    for (int64_t i = 0; i < n * inner; i++) w[i] = (float)(i % 13) * 0.1f - 0.6f;
    k->pack(c, p, w, n, inner, DTYPE_F32);
    const double flops = 2.0 * (double)t * (double)n * (double)inner;
    const int runs = (int)(1.5e8 / flops) + 1;
    double own_best = 1e30, other_best = 1e30;
    for (int r = -1; r < 15; r++) {
        double start = clock_seconds();
        for (int i = 0; i < runs; i++) k->matmul(c, y, n, x, p, NULL, NULL, t, n, inner, DTYPE_F32);
        const double own = (clock_seconds() - start) / runs;
        start = clock_seconds();
        for (int i = 0; i < runs; i++) theirs_run(&other);
        const double took = (clock_seconds() - start) / runs;
        if (r >= 0 && own < own_best) own_best = own;
        if (r >= 0 && took < other_best) other_best = took;
    }
    printf("T=%-5lld N=%-6lld K=%-5lld tare %7.1f GFLOP/s   oneDNN %7.1f GFLOP/s   %.2fx\n", (long long)t, (long long)n,
           (long long)inner, flops / own_best * 1e-9, flops / other_best * 1e-9, other_best / own_best);
    fflush(stdout);
    k->release(c, x), k->release(c, w), k->release(c, y), k->release(c, p);
    dnnl_memory_destroy(other.x), dnnl_memory_destroy(other.w), dnnl_memory_destroy(other.y),
        dnnl_primitive_destroy(other.primitive);
}

int main(int argc, char **argv)
{
    static const int64_t layers[][2] = {{960, 576}, {3072, 576}, {576, 1536}, {49152, 576}}, rows[] = {1, 8, 32, 128, 1024};
    struct err e;
    struct arena scratch;
    struct kctx c = {.scratch = &scratch};
    const struct kernels *k;
    arena_init(&scratch, "scratch");
    if (kernels_cpu(NULL, &k, &e) || pool_new(argc > 1 ? atoi(argv[1]) : 1, &c.pool, &e)) {
        fprintf(stderr, "%s\n", e.message);
        return 1;
    }
    CHECK(dnnl_engine_create(&engine, dnnl_cpu, 0));
    CHECK(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    printf("# %s, %d threads; oneDNN %d.%d.%d\n", k->name, pool_threads(c.pool), dnnl_version()->major, dnnl_version()->minor,
           dnnl_version()->patch);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 5; j++)
            if (layers[i][0] * rows[j] <= 8 << 20) compare(k, &c, rows[j], layers[i][0], layers[i][1]);
    pool_free(c.pool);
    arena_free(&scratch);
    return 0;
}
