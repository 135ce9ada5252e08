/* Products on a device. In fp32, the kernels without tensor cores are bit-identical to ref. In
 * bf16, products of two factors are exact in fp32 and only the order of the sum differs, so results
 * are near. batch_invariant: the same bits for any number of rows. */
#include "device_check.h"

struct shape {
    int64_t t, n, k;
};
static const struct shape SHAPES[] = {{1, 1, 1},      {3, 17, 5},   {7, 40, 64},   {16, 48, 128}, {20, 130, 192}, {5, 4200, 64},
                                      {18, 8400, 64}, {33, 70, 96}, {130, 33, 72}, {65, 129, 40}, {9, 19, 4160},  {2, 3, 0}};
enum { N_SHAPES = sizeof SHAPES / sizeof *SHAPES };

struct host { /* of one product, and its copies on the device */
    float *x, *w, *bias, *y, *dx, *dw;
    float *gx, *gw, *gbias, *gy, *gdx, *gdw;
    void *packed, *gpacked;
};

static void make(struct host *h, const struct kernels *k, const struct kctx *c, struct shape s, enum dtype dtype)
{
    const int64_t bytes = k->packed_bytes(s.n, s.k, dtype), ref_bytes = ref->packed_bytes(s.n, s.k, dtype);
    h->x = randoms(s.t * s.k, 0, 1), h->w = randoms(s.n * s.k, 0, 1), h->bias = randoms(s.n, 0, 1), h->y = randoms(s.t * s.n, 0, 1);
    h->dx = randoms(s.t * s.k, 0, 1), h->dw = randoms(s.n * s.k, 0, 1);
    h->gx = on_device(k, c, h->x, 4 * s.t * s.k), h->gw = on_device(k, c, h->w, 4 * s.n * s.k);
    h->gbias = on_device(k, c, h->bias, 4 * s.n), h->gy = on_device(k, c, h->y, 4 * s.t * s.n);
    h->gdx = on_device(k, c, h->dx, 4 * s.t * s.k), h->gdw = on_device(k, c, h->dw, 4 * s.n * s.k);
    h->packed = floats(ref_bytes / 4 + 1, 0), h->gpacked = on_device(k, c, NULL, bytes);
    KERNEL(ref, &contexts[0], pack, .packed = h->packed, .w = h->w, .n = s.n, .k = s.k, .dtype = dtype);
    KERNEL(k, c, pack, .packed = h->gpacked, .w = h->gw, .n = s.n, .k = s.k, .dtype = dtype);
}

static void close_to(const char *what, bool same_bits, const float *got, const float *expected, int64_t n, int64_t terms)
{
    if (same_bits)
        assert_bits(what, got, expected, n);
    else
        assert_near(what, got, expected, n, (double)(terms + 2) * 0x1p-23);
}

/* same_bits: the kernels without a library compute. */
static void products(const struct kernels *k, const struct kctx *c, enum dtype dtype, int same_bits)
{
    const bool same = same_bits && dtype == DTYPE_F32;
    for (int i = 0; i < N_SHAPES; i++) {
        const struct shape s = SHAPES[i];
        struct host h;
        make(&h, k, c, s, dtype);
        /* The residual is y itself. */
        KERNEL(k, c, matmul, .y = h.gy, .x = h.gx, .packed = h.gpacked, .bias = h.gbias, .residual = h.gy, .t = s.t, .n = s.n,
               .k = s.k, .dtype = dtype);
        KERNEL(ref, &contexts[0], matmul, .y = h.y, .x = h.x, .packed = h.packed, .bias = h.bias, .residual = h.y, .t = s.t,
               .n = s.n, .k = s.k, .dtype = dtype);
        close_to("y", same, from_device(k, c, h.gy, 4 * s.t * s.n), h.y, s.t * s.n, s.k);
        KERNEL(k, c, matmul, .y = h.gy, .x = h.gx, .packed = h.gpacked, .t = s.t, .n = s.n, .k = s.k, .dtype = dtype);
        KERNEL(ref, &contexts[0], matmul, .y = h.y, .x = h.x, .packed = h.packed, .t = s.t, .n = s.n, .k = s.k, .dtype = dtype);
        close_to("y alone", same, from_device(k, c, h.gy, 4 * s.t * s.n), h.y, s.t * s.n, s.k);
        k->backend->upload(c, h.gy, h.y, 4 * s.t * s.n); /* the same dy */
        KERNEL(k, c, matmul_dx, .dx = h.gdx, .dy = h.gy, .packed = h.gpacked, .t = s.t, .n = s.n, .k = s.k, .dtype = dtype);
        KERNEL(ref, &contexts[0], matmul_dx, .dx = h.dx, .dy = h.y, .packed = h.packed, .t = s.t, .n = s.n, .k = s.k,
               .dtype = dtype);
        close_to("dx", same, from_device(k, c, h.gdx, 4 * s.t * s.k), h.dx, s.t * s.k, s.n);
        float *db = randoms(s.n, 0, 1), *gdb = on_device(k, c, db, 4 * s.n);
        KERNEL(k, c, matmul_dw, .dw = h.gdw, .dbias = gdb, .dy = h.gy, .x = h.gx, .t = s.t, .n = s.n, .k = s.k, .dtype = dtype);
        KERNEL(ref, &contexts[0], matmul_dw, .dw = h.dw, .dbias = db, .dy = h.y, .x = h.x, .t = s.t, .n = s.n, .k = s.k,
               .dtype = dtype);
        close_to("dw", same, from_device(k, c, h.gdw, 4 * s.n * s.k), h.dw, s.n * s.k, s.t);
        k->matmul_dw_apart(
            c, &(struct op_matmul_dw){.dw = h.gdw, .dy = h.gy, .x = h.gx, .t = s.t, .n = s.n, .k = s.k, .dtype = dtype});
        ref->matmul_dw_apart(&contexts[0],
                             &(struct op_matmul_dw){.dw = h.dw, .dy = h.y, .x = h.x, .t = s.t, .n = s.n, .k = s.k, .dtype = dtype});
        close_to("dw apart", same, from_device(k, c, h.gdw, 4 * s.n * s.k), h.dw, s.n * s.k, 2 * s.t);
        assert_near("dbias", from_device(k, c, gdb, 4 * s.n), db, s.n, (double)(s.t + 2) * 0x1p-23);
        device_end(k, c);
    }
}

static void fp32(const struct kernels *k, const struct kctx *c)
{
    struct kctx fixed = *c;
    fixed.batch_invariant = 1;
    const int shim = !strcmp(k->name, "shim"); /* the shim has no library, so both are the same */
    if (!shim) products(k, c, DTYPE_F32, 0);
    products(k, &fixed, DTYPE_F32, shim);
}
DEVICE_TEST(fp32)

static void eager(int on)
{
#ifdef TARE_CUDA_SHIM
    extern int mma_host_eager;
    mma_host_eager = on;
#else
    (void)on;
#endif
}

static void bf16(const struct kernels *k, const struct kctx *c)
{
    struct kctx fixed = *c;
    fixed.batch_invariant = 1;
    eager(0);
    products(k, c, DTYPE_BF16, 0);
    eager(1);
    products(k, &fixed, DTYPE_BF16, 0);
}
DEVICE_TEST(bf16)

/* A row alone, among few and among many. */
static void alone_and_among(const struct kernels *k, const struct kctx *fixed, struct shape s, enum dtype dtype)
{
    static const int64_t counts[] = {1, 8, 17, 40, 129};
    struct host h;
    make(&h, k, fixed, s, dtype);
    KERNEL(k, fixed, matmul, .y = h.gy, .x = h.gx, .packed = h.gpacked, .bias = h.gbias, .t = s.t, .n = s.n, .k = s.k,
           .dtype = dtype);
    const float *all = from_device(k, fixed, h.gy, 4 * s.t * s.n);
    for (int i = 0; i < 5 && 3 + counts[i] <= s.t; i++) {
        KERNEL(k, fixed, matmul, .y = h.gy, .x = h.gx + 3 * s.k, .packed = h.gpacked, .bias = h.gbias, .t = counts[i], .n = s.n,
               .k = s.k, .dtype = dtype);
        assert_bits("rows among others", from_device(k, fixed, h.gy, 4 * counts[i] * s.n), all + 3 * s.n, counts[i] * s.n);
    }
    device_end(k, fixed);
}

static void invariant(const struct kernels *k, const struct kctx *c)
{
    struct kctx fixed = *c;
    fixed.batch_invariant = 1;
    for (enum dtype dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++)
        alone_and_among(k, &fixed, (struct shape){150, 72, 192}, dtype);
    /* five slices of K, the last one short */
    alone_and_among(k, &fixed, (struct shape){44, 40, 1048}, DTYPE_BF16);
    /* many tiles for a block, in slices and with one slice; too many products for the host */
    if (strcmp(k->name, "shim")) {
        alone_and_among(k, &fixed, (struct shape){3000, 1992, 4104}, DTYPE_BF16);
        alone_and_among(k, &fixed, (struct shape){1500, 35000, 264}, DTYPE_BF16);
    }
}
DEVICE_TEST(invariant)

/* A row has the same bits among 1 to 32 rows where every weight is read once, however much of W is
 * in flight; with a residual, K is split into slices. */
static void few_rows_of(const struct kernels *k, const struct kctx *c, int64_t inner, bool residual)
{
    enum { T = 32, N = 40 };
    struct host h;
    make(&h, k, c, (struct shape){T, N, inner}, DTYPE_BF16);
    const float *add = residual ? on_device(k, c, h.y, 4 * T * N) : NULL;
    eager(0);
    KERNEL(k, c, matmul, .y = h.gy, .x = h.gx, .packed = h.gpacked, .residual = add, .t = T, .n = N, .k = inner,
           .dtype = DTYPE_BF16);
    const float *all = from_device(k, c, h.gy, 4 * T * N);
    for (int64_t t = 1; t < T; t = 2 * t + 1) {
        eager(t % 4 == 3);
        KERNEL(k, c, matmul, .y = h.gy, .x = h.gx, .packed = h.gpacked, .residual = add, .t = t, .n = N, .k = inner,
               .dtype = DTYPE_BF16);
        assert_bits("few rows", from_device(k, c, h.gy, 4 * t * N), all, t * N);
    }
    device_end(k, c);
}

static void few_rows(const struct kernels *k, const struct kctx *c)
{
    few_rows_of(k, c, 256, false);
    few_rows_of(k, c, 4160, false);
    few_rows_of(k, c, 4160, true);
}
DEVICE_TEST(few_rows)

int main(void)
{
    const struct CMUnitTest tests[] = {device_test(fp32), device_test(bf16), device_test(invariant), device_test(few_rows)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
