/* The product of many rows by wgmma on the shim: bit-identical to the one by mma at the edges of
 * tiles, stages and slices; mistakes in it are found; and the check that selects one of the two for
 * a process. */
#include "device_check.h"

#ifdef TARE_CUDA_SHIM
#include "cuda/shim/wgmma_faults.h"
#include "planted_product.h"

enum { SLICE = 8 };

struct shape {
    int64_t t, n, k;
};

struct tensors {
    struct planted_product o;
    uint16_t *x, *w; /* on the host */
    float *bias, *residual, *y;
};

static struct kernel_fault fault;
static const struct kctx ctx = {.fault = &fault};
static const struct kernels *k;

static void begin(void)
{
    k = kernels_shim();
    fault = (struct kernel_fault){.layer = -1};
    n_device_blocks = 0;
    shim_forget();
    shim_processors = mma_host_eager = mma_host_cuts = wgmma_host_fault = 0;
    shim_mend();
}

static void end(void)
{
    shim_mend();
    for (int i = 0; i < n_device_blocks; i++) k->backend->release(&ctx, device_blocks[i].base);
    n_device_blocks = 0;
    buffers_end();
    shim_processors = mma_host_eager = mma_host_cuts = wgmma_host_fault = 0;
}

static uint16_t *bf16s(int64_t n)
{
    const float *x = randoms(n, 0, 1);
    uint16_t *out = (uint16_t *)(void *)floats((n + 1) / 2, 0);
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], 4);
        out[i] = (uint16_t)(u >> 16);
    }
    return out;
}

/* bias and residual, if `ends` */
static struct tensors make(struct shape s, bool ends)
{
    struct tensors a = {.x = bf16s(s.t * s.k), .w = bf16s(s.n * s.k), .y = floats(s.t * s.n, 0)};
    if (ends) a.bias = randoms(s.n, 0, 1), a.residual = randoms(s.t * s.n, 0, 1);
    a.o = (struct planted_product){.y = on_device(k, &ctx, NULL, 4 * s.t * s.n),
                                   .x = on_device(k, &ctx, a.x, 2 * s.t * s.k),
                                   .w = on_device(k, &ctx, a.w, 2 * s.n * s.k),
                                   .t = s.t,
                                   .n = s.n,
                                   .k = s.k,
                                   .slice = SLICE};
    if (ends) a.o.bias = on_device(k, &ctx, a.bias, 4 * s.n), a.o.residual = on_device(k, &ctx, a.residual, 4 * s.t * s.n);
    return a;
}

/* The results on the host, NaN where nothing was written. */
static const float *run(struct tensors *a, void (*by)(const struct kctx *, const struct planted_product *))
{
    const int64_t n = a->o.t * a->o.n;
    float *y = floats(n, 0);
    memset(y, 0xff, (size_t)n * 4);
    k->backend->upload(&ctx, a->o.y, y, 4 * n);
    by(&ctx, &a->o);
    if (fault.code) return y;
    k->backend->download(&ctx, y, a->o.y, 4 * n);
    return y;
}

static float value(uint16_t x)
{
    const uint32_t u = (uint32_t)x << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* By the definition: slices of `slice` steps of 32 k; backwards: the last one first. */
static float expected(const struct tensors *a, int64_t row, int64_t column, int64_t slice, bool backwards)
{
    const int64_t K = a->o.k, n = (K + 32 * slice - 1) / (32 * slice);
    float total = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t s = backwards ? n - 1 - i : i, last = 32 * slice * (s + 1);
        float sum = 0;
        for (int64_t j = 32 * slice * s; j < K && j < last; j++)
            sum = fmaf(value(a->x[row * K + j]), value(a->w[column * K + j]), sum);
        total = n > 1 ? total + sum : sum;
    }
    if (a->bias) total += a->bias[column];
    return a->residual ? total + a->residual[row * a->o.n + column] : total;
}

static void same(struct shape s, bool ends, int slice)
{
    struct tensors a = make(s, ends);
    char what[80];
    a.o.slice = slice;
    const float *by_mma = run(&a, planted_by_mma), *by_wgmma = run(&a, planted_by_wgmma);
    a.o.apart = 1;
    const float *mma_apart = run(&a, planted_by_mma), *wgmma_apart = run(&a, planted_by_wgmma);
    snprintf(what, sizeof what, "t %lld, n %lld, k %lld", (long long)s.t, (long long)s.n, (long long)s.k);
    if (shim_found || fault.code) fail_msg("%s: %s", what, shim_found ? shim_first : fault.message);
    assert_bits(what, by_wgmma, by_mma, s.t * s.n);
    assert_bits(what, mma_apart, by_mma, s.t * s.n);
    assert_bits(what, wgmma_apart, by_mma, s.t * s.n);
    const float corner = expected(&a, s.t - 1, s.n - 1, slice, false);
    assert_bits(what, by_wgmma + s.t * s.n - 1, &corner, 1);
}

/* One slice (tiles of 256 rows of W), two, three and more (192), and K that ends within a step and
 * a stage. */
static void test_equals_mma(void **state)
{
    static const struct shape shapes[] = {{33, 2, 64},     {64, 200, 200}, {65, 192, 264},  {127, 70, 648},
                                          {128, 194, 256}, {129, 258, 72}, {200, 200, 520}, {33, 384, 776},
                                          {257, 34, 264},  {40, 520, 240}, {128, 256, 96},  {64, 386, 512}};
    (void)state;
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++) {
        begin();
        mma_host_eager = i / 2 % 2; /* tiles arrive at once, or as late as possible */
        shim_processors = i % 3;    /* 0: a block for each tile; one or two for all of them */
        same(shapes[i], i % 2, SLICE);
        end();
    }
    begin();
    same((struct shape){65, 70, 776}, true, SLICE - 1); /* slices that end within a stage */
    end();
}

/* The same with sums by a model of the hardware: they differ from those of the chain in fp32, and
 * are equal for both kernels. */
static void test_equals_mma_in_a_model(void **state)
{
    const struct shape s = {65, 40, 264};
    (void)state;
    begin();
    struct tensors a = make(s, true);
    const float *one_by_one = run(&a, planted_by_wgmma);
    mma_host_cuts = 1;
    const float *by_mma = run(&a, planted_by_mma), *by_wgmma = run(&a, planted_by_wgmma);
    assert_bits("by the model", by_wgmma, by_mma, s.t * s.n);
    assert_true(memcmp(by_wgmma, one_by_one, (size_t)(s.t * s.n) * 4) != 0);
    end();
}

/* In every order of threads. */
static void test_orders_of_threads(void **state)
{
    const struct shape s = {65, 40, 648};
    (void)state;
    for (uint32_t seed = 1; seed < 4; seed++) {
        begin();
        struct tensors a = make(s, true);
        const float *by_mma = run(&a, planted_by_mma);
        shim_schedule(seed);
        mma_host_eager = seed % 2;
        const float *by_wgmma = run(&a, planted_by_wgmma);
        shim_schedule(0);
        if (shim_found) fail_msg("%s", shim_first);
        assert_bits("another order of threads", by_wgmma, by_mma, s.t * s.n);
        end();
    }
}

/* Differences that these sums detect: slices in another order, and slices that end elsewhere. */
static void test_the_order_of_slices(void **state)
{
    const struct shape s = {34, 20, 648};
    int other_order = 0, other_slices = 0;
    (void)state;
    begin();
    struct tensors a = make(s, true);
    const float *y = run(&a, planted_by_wgmma);
    for (int64_t i = 0; i < s.t * s.n; i++) {
        const float right = expected(&a, i / s.n, i % s.n, SLICE, false), backwards = expected(&a, i / s.n, i % s.n, SLICE, true),
                    longer = expected(&a, i / s.n, i % s.n, SLICE + 1, false);
        assert_bits("by the definition", y + i, &right, 1);
        other_order += right != backwards;
        other_slices += right != longer;
    }
    assert_true(other_order > 50 && other_slices > 50);
    end();
}

/* The kernel with one fault: the shim reports it, or bits differ, with tiles that arrive at once or
 * with those that arrive late. */
static void fault_is_found(enum wgmma_host_fault what, bool eager, const char *words)
{
    const struct shape s = {200, 200, 1288}; /* more stages than the ring has */
    begin();
    struct tensors a = make(s, true);
    a.o.slice = SLICE - 1;
    const float *sound = run(&a, planted_by_wgmma);
    assert_false(shim_found || fault.code);
    wgmma_host_fault = (int)what;
    mma_host_eager = eager;
    const float *y = run(&a, planted_by_wgmma);
    const bool differs = memcmp(y, sound, (size_t)(s.t * s.n) * 4) != 0;
    if (!shim_found && !differs) fail_msg("fault %d is not found", (int)what);
    if (words && !strstr(shim_first, words)) fail_msg("fault %d: it says \"%s\"", (int)what, shim_first);
    fault.code = TARE_OK;
    end();
}

static void test_faults_are_found(void **state)
{
    (void)state;
    for (int eager = 0; eager < 2; eager++) {
        fault_is_found(WGMMA_NOT_SWIZZLED, eager, NULL);
        fault_is_found(WGMMA_STRIDE, eager, NULL);
        fault_is_found(WGMMA_NO_FENCE, eager, "a product without wgmma_fence");
        fault_is_found(WGMMA_NO_WAIT, eager, NULL);
        fault_is_found(WGMMA_NO_FULL, eager, NULL);
        fault_is_found(WGMMA_NO_EMPTY, eager, NULL);
        fault_is_found(WGMMA_NO_ANNOUNCE, eager, "not announced");
        fault_is_found(WGMMA_BYTES, eager, "for each other forever");
        fault_is_found(WGMMA_WHOLE, eager, NULL);
    }
    fault_is_found(WGMMA_LATER, false, NULL);
    fault_is_found(WGMMA_EARLY, true, "a tile changed while a product of it was in progress");
}

static int about(char text[400])
{
    cuda_about_again();
    return k->backend->about(&ctx, text, 400);
}

static void test_the_check(void **state)
{
    char text[400];
    (void)state;
    begin();
    assert_true(about(text));
    assert_non_null(strstr(text, "use wgmma"));
    mma_host_cuts = 1;
    assert_true(about(text));
    for (int unit = WGMMA_NARROW; unit <= WGMMA_SIGN; unit++) {
        wgmma_host_fault = unit;
        if (about(text)) fail_msg("a unit with other sums, %d, is not found", unit);
        assert_non_null(strstr(text, "use mma: "));
        assert_non_null(strstr(text, " differ on this GPU"));
    }
    /* The last two faults affect only a block's later tiles, or a slice with an odd number of
     * steps. */
    for (int i = 0; i < 3; i++) {
        wgmma_host_fault = (const int[]){WGMMA_NOT_SWIZZLED, WGMMA_LATER, WGMMA_WHOLE}[i];
        if (about(text)) fail_msg("a kernel with a mistake, %d, is not found", wgmma_host_fault);
    }
    wgmma_host_fault = 0;
    setenv("TARE_CUDA_WGMMA", "0", 1);
    assert_true(about(text));
    assert_non_null(strstr(text, "TARE_CUDA_WGMMA is not 1"));
    cuda_about_again();
    unsetenv("TARE_CUDA_WGMMA");
    assert_true(about(text));
    assert_non_null(strstr(text, "use mma: TARE_CUDA_WGMMA is not 1"));
    setenv("TARE_CUDA_WGMMA", "1", 1);
    assert_int_equal(fault.code, TARE_OK); /* none of this is an error of the run */
    end();
    cuda_about_again();
}

enum { REFUSED = 1, BREAKS = 700, UNSAID = 0 }; /* shim_fails_with */

static void launch_something(void)
{
    float *y = on_device(k, &ctx, NULL, 4 * 8), *x = on_device(k, &ctx, NULL, 4 * 8);
    KERNEL(k, &ctx, add, .y = y, .x = x, .n = 8);
}

/* The n-th launch or setting of the check, and all after it, fail. False: it has fewer, and
 * passes. */
static bool check_fails_at(int n, int with)
{
    char text[400];
    begin();
    shim_fails_in = n, shim_fails_with = with;
    const bool taken = about(text);
    if (taken && shim_failed) fail_msg("the check passes, and its call %d has failed", n);
    if (!taken && !strstr(text, "the check failed (TARE_CUDA_WGMMA=0"))
        fail_msg("call %d fails, and the check says \"%s\"", n, text);
    if (!taken && with == REFUSED) {
        shim_fails_in = 0;
        launch_something(); /* which must not be blamed for it */
        assert_non_null(strstr(text, "use mma"));
        if (fault.code) fail_msg("call %d was refused, and a later launch ends the run: %s", n, fault.message);
    }
    if (!taken && with == BREAKS && (fault.code != TARE_E_DEVICE || !strstr(fault.message, "TARE_CUDA_WGMMA=0")))
        fail_msg("call %d breaks the context, and the run continues or ends with \"%s\"", n, fault.message);
    fault.code = TARE_OK;
    end();
    return !taken;
}

static void test_a_check_that_fails(void **state)
{
    int n = 1;
    (void)state;
    while (check_fails_at(n, REFUSED)) n++;
    assert_true(n > 2 * 2 * 3);
    check_fails_at(1, BREAKS);
    check_fails_at(n - 1, BREAKS);
    cuda_about_again();
}

/* Nothing is launched and no error is reported: two unwritten results must not compare equal. */
static void test_check_without_launches(void **state)
{
    char text[400];
    (void)state;
    begin();
    shim_fails_in = 1, shim_fails_with = UNSAID;
    assert_false(about(text));
    assert_non_null(strstr(text, " differ on this GPU"));
    end();
    cuda_about_again();
}

/* A context that was broken before ends the run, without blaming the check. */
static void test_earlier_failure_is_not_blamed(void **state)
{
    char text[400];
    (void)state;
    begin();
    shim_fails_in = 1, shim_fails_with = BREAKS;
    launch_something();
    fault.code = TARE_OK; /* as on a device, where the error is not known yet */
    about(text);
    assert_int_equal(fault.code, TARE_E_DEVICE);
    assert_null(strstr(fault.message, "TARE_CUDA_WGMMA"));
    fault.code = TARE_OK;
    end();
    cuda_about_again();
}

/* If the check finds a difference, products still have the correct bits. */
static void test_a_difference_changes_no_results(void **state)
{
    enum { T = 40, N = 20, K = 264 };
    char text[400];
    (void)state;
    begin();
    const struct kctx fixed = {.fault = &fault, .batch_invariant = 1};
    struct tensors a = make((struct shape){T, N, K}, false);
    const float *by_mma = run(&a, planted_by_mma);
    wgmma_host_fault = WGMMA_STRIDE;
    assert_false(about(text));
    shim_forget();
    KERNEL(k, &fixed, matmul, .y = a.o.y, .x = a.o.x, .packed = a.o.w, .t = T, .n = N, .k = K, .dtype = DTYPE_BF16,
           .x_dtype = DTYPE_BF16);
    k->backend->download(&ctx, a.y, a.o.y, (int64_t)4 * T * N);
    assert_bits("by mma", a.y, by_mma, (int64_t)T * N);
    end();
    cuda_about_again();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equals_mma),
                                       cmocka_unit_test(test_equals_mma_in_a_model),
                                       cmocka_unit_test(test_orders_of_threads),
                                       cmocka_unit_test(test_the_order_of_slices),
                                       cmocka_unit_test(test_faults_are_found),
                                       cmocka_unit_test(test_the_check),
                                       cmocka_unit_test(test_a_check_that_fails),
                                       cmocka_unit_test(test_check_without_launches),
                                       cmocka_unit_test(test_earlier_failure_is_not_blamed),
                                       cmocka_unit_test(test_a_difference_changes_no_results)};
    setenv("TARE_CUDA_WGMMA", "1", 1);
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
#else
static void test_wgmma_on_the_host(void **state)
{
    (void)state;
    SKIP("the kernels were not built for the host (no C++ compiler, or the thread sanitizer)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wgmma_on_the_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
