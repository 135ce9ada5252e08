/* Compares the engine's products with oneDNN's matmul primitive (weights in its own layout) in the
 * same run: forward, dx and dw, in fp32 and bf16.
 *
 *   cc -O2 -Icore -Ikernels -Isdk/include bench/gemm_vs_onednn.c build/libtare_kernels.a \
 *      build/libtare_base.a -ldnnl -ljansson -lm -lpthread -o /tmp/gemm
 *   /tmp/gemm [THREADS [f32|bf16 [ROWS [ISA]]]]          (oneDNN 2.x: libdnnl-dev)
 *
 * Both alternate in runs of about 5 ms, for 21 rounds. Prints the medians of the rates and the
 * median of the rounds' ratios. libgomp's threads spin after a region and would disturb the other
 * program's run, so the program restarts itself with OMP_WAIT_POLICY=passive and
 * OMP_NUM_THREADS=THREADS. Inputs: our activations and gradients are fp32, and rounding them is
 * part of our time; oneDNN's are already bf16. Its weights have its preferred layout, for dx too,
 * where ours are packed in the call. Both add dw to the existing values. */
#define _GNU_SOURCE
#include "base/arena.h"
#include "base/clock.h"
#include "kernels.h"
#include "kernels_cpu.h"
#include "median.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(X)                                                                                                                   \
    do {                                                                                                                           \
        if ((X) != dnnl_success) {                                                                                                 \
            fprintf(stderr, "oneDNN: line %d failed\n", __LINE__);                                                                 \
            exit(1);                                                                                                               \
        }                                                                                                                          \
    } while (0)

enum kind { FORWARD, DX, DW };
static const char *const kinds[] = {"forward", "dx", "dw"};
enum { ROUNDS = 21 };

struct theirs {
    dnnl_primitive_t primitive;
    dnnl_memory_t a, b, c;
};

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static dnnl_memory_t memory_of(const dnnl_memory_desc_t *d)
{
    dnnl_memory_t m;
    unsigned char *p;
    CHECK(dnnl_memory_create(&m, d, engine, DNNL_MEMORY_ALLOCATE));
    CHECK(dnnl_memory_get_data_handle(m, (void **)&p));
    memset(p, 0, dnnl_memory_desc_get_size(d));
    for (size_t i = 1; i < dnnl_memory_desc_get_size(d); i += 2)
        p[i] = i % 4 == 1 ? 0x3d : 0x3c; /* small numbers in both formats */
    return m;
}

/* c[m, n] (+)= a[m, k] b[k, n]: forward y = x w', dx = dy w, dw += dy' x. */
static struct theirs theirs_new(enum kind kind, int bf16, int64_t t, int64_t n, int64_t k)
{
    const int64_t rows = kind == DW ? n : t, inner = kind == FORWARD ? k : kind == DX ? n : t, columns = kind == FORWARD ? n : k;
    const dnnl_dims_t da = {rows, inner}, db = {inner, columns}, dc = {rows, columns};
    const dnnl_data_type_t type = bf16 ? dnnl_bf16 : dnnl_f32;
    dnnl_memory_desc_t a, b, c;
    CHECK(dnnl_memory_desc_init_by_tag(&a, 2, da, type, kind == DW ? dnnl_ba : dnnl_ab));
    CHECK(dnnl_memory_desc_init_by_tag(&b, 2, db, type, kind == DW ? dnnl_ab : dnnl_format_tag_any));
    CHECK(dnnl_memory_desc_init_by_tag(&c, 2, dc, dnnl_f32, dnnl_ab));
    dnnl_matmul_desc_t d;
    CHECK(dnnl_matmul_desc_init(&d, &a, &b, NULL, &c));
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t sum;
    CHECK(dnnl_primitive_attr_create(&attr));
    CHECK(dnnl_post_ops_create(&sum));
    if (kind == DW) {
        CHECK(dnnl_post_ops_append_sum(sum, 1.0f));
        CHECK(dnnl_primitive_attr_set_post_ops(attr, sum));
    }
    dnnl_primitive_desc_t pd;
    CHECK(dnnl_primitive_desc_create(&pd, &d, attr, engine, NULL));
    struct theirs s;
    CHECK(dnnl_primitive_create(&s.primitive, pd));
    s.a = memory_of(&a), s.b = memory_of(dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0)), s.c = memory_of(&c);
    CHECK(dnnl_primitive_desc_destroy(pd));
    dnnl_post_ops_destroy(sum), dnnl_primitive_attr_destroy(attr);
    return s;
}

static void theirs_run(const struct theirs *s)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, s->a}, {DNNL_ARG_WEIGHTS, s->b}, {DNNL_ARG_DST, s->c}};
    CHECK(dnnl_primitive_execute(s->primitive, stream, 3, args));
    CHECK(dnnl_stream_wait(stream));
}

/* Our data: x [t, k], w [n, k] and packed, y [t, n]. */
struct ours {
    const struct kernels *k;
    const struct kctx *c;
    float *x, *w, *y;
    void *packed;
    int64_t t, n, inner;
    enum dtype dtype;
};

static void ours_run(const struct ours *o, enum kind kind)
{
    if (kind == FORWARD)
        KERNEL(o->k, o->c, matmul, .y = o->y, .x = o->x, .packed = o->packed, .t = o->t, .n = o->n, .k = o->inner,
               .dtype = o->dtype);
    else if (kind == DX)
        KERNEL(o->k, o->c, matmul_dx, .dx = o->x, .dy = o->y, .packed = o->packed, .t = o->t, .n = o->n, .k = o->inner,
               .dtype = o->dtype);
    else
        o->k->matmul_dw_apart(o->c, &(struct op_matmul_dw){
                                        .dw = o->w, .dy = o->y, .x = o->x, .t = o->t, .n = o->n, .k = o->inner, .dtype = o->dtype});
}

static void compare(const struct ours *o, enum kind kind)
{
    const struct theirs other = theirs_new(kind, o->dtype == DTYPE_BF16, o->t, o->n, o->inner);
    const double flops = 2.0 * (double)o->t * (double)o->n * (double)o->inner;
    const int runs = (int)(1e9 / flops) + 1;
    double own[ROUNDS], their[ROUNDS], ratio[ROUNDS];
    for (int r = -1; r < ROUNDS; r++) {
        const int at = r < 0 ? 0 : r;
        double start = clock_seconds();
        for (int i = 0; i < runs; i++) ours_run(o, kind);
        own[at] = (clock_seconds() - start) / runs;
        start = clock_seconds();
        for (int i = 0; i < runs; i++) theirs_run(&other);
        their[at] = (clock_seconds() - start) / runs;
        ratio[at] = their[at] / own[at];
    }
    printf("%-7s %-4s T=%-5lld N=%-6lld K=%-5lld tare %7.1f GFLOP/s   oneDNN %7.1f GFLOP/s   %.2fx\n", kinds[kind],
           o->dtype == DTYPE_BF16 ? "bf16" : "f32", (long long)o->t, (long long)o->n, (long long)o->inner,
           flops / median(own, ROUNDS) * 1e-9, flops / median(their, ROUNDS) * 1e-9, median(ratio, ROUNDS));
    fflush(stdout);
    dnnl_memory_destroy(other.a), dnnl_memory_destroy(other.b), dnnl_memory_destroy(other.c),
        dnnl_primitive_destroy(other.primitive);
}

static void shape(const struct kernels *k, const struct kctx *c, enum dtype dtype, int64_t t, int64_t n, int64_t inner)
{
    struct ours o = {k,
                     c,
                     k->backend->alloc(c, t * inner * 4),
                     k->backend->alloc(c, n * inner * 4),
                     k->backend->alloc(c, t * n * 4),
                     k->backend->alloc(c, k->packed_bytes(n, inner, dtype)),
                     t,
                     n,
                     inner,
                     dtype};
    for (int64_t i = 0; i < t * inner; i++) o.x[i] = (float)(i % 17) * 0.1f - 0.8f;
    for (int64_t i = 0; i < n * inner; i++) o.w[i] = (float)(i % 13) * 0.1f - 0.6f;
    for (int64_t i = 0; i < t * n; i++) o.y[i] = (float)(i % 19) * 0.1f - 0.9f;
    KERNEL(k, c, pack, .packed = o.packed, .w = o.w, .n = n, .k = inner, .dtype = dtype);
    for (int kind = FORWARD; kind <= DW; kind++)
        if (kind == FORWARD || t >= 128) {
            for (int64_t i = 0; i < t * n; i++) o.y[i] = (float)(i % 19) * 0.1f - 0.9f;
            compare(&o, (enum kind)kind);
        }
    k->backend->release(c, o.x), k->backend->release(c, o.w), k->backend->release(c, o.y), k->backend->release(c, o.packed);
}

int main(int argc, char **argv)
{
    static const int64_t layers[][2] = {{960, 576}, {3072, 576}, {576, 1536}, {49152, 576}}, rows[] = {1, 8, 32, 128, 256, 1024};
    const char *threads = argc > 1 ? argv[1] : "1", *only = argc > 2 ? argv[2] : NULL, *isa = argc > 4 ? argv[4] : NULL;
    const int64_t only_rows = argc > 3 ? atoll(argv[3]) : 0;
    if (!getenv("OMP_WAIT_POLICY") || !getenv("OMP_NUM_THREADS")) {
        setenv("OMP_WAIT_POLICY", "passive", 1);
        setenv("OMP_NUM_THREADS", threads, 1);
        execv("/proc/self/exe", argv);
        perror("execv");
        return 1;
    }
    struct err e;
    struct arena scratch;
    struct kctx c = {.scratch = &scratch};
    const struct kernels *k;
    arena_init(&scratch, "scratch");
    if (kernels_cpu(isa, &k, &e) || pool_new(atoi(threads), &c.pool, &e)) {
        fprintf(stderr, "%s\n", e.message);
        return 1;
    }
    CHECK(dnnl_engine_create(&engine, dnnl_cpu, 0));
    CHECK(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    printf("# %s, %d threads; oneDNN %d.%d.%d, OMP_WAIT_POLICY=%s\n", k->name, pool_threads(c.pool), dnnl_version()->major,
           dnnl_version()->minor, dnnl_version()->patch, getenv("OMP_WAIT_POLICY"));
    for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++)
        for (int j = 0; j < 6; j++)
            for (int i = 0; i < 4; i++)
                if (layers[i][0] * rows[j] <= 8 << 20 && (!only_rows || only_rows == rows[j]) &&
                    (!only || strcmp(only, dtype == DTYPE_BF16 ? "bf16" : "f32") == 0))
                    shape(k, &c, (enum dtype)dtype, rows[j], layers[i][0], layers[i][1]);
    pool_free(c.pool);
    arena_free(&scratch);
    return 0;
}
