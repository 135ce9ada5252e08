/* The shim itself: it finds mistakes planted in kernels (planted.cu) and does not report correct
 * ones. */
#include "device_check.h"

#ifdef TARE_CUDA_SHIM
void planted_run(const struct kctx *c, const char *what, float *y, const float *x, int64_t n);

enum { N = 64 };
struct ran {
    float y[2 * N];
    struct kernel_fault fault;
};

/* Run it on y[n], x[n] (x[i] = i); every seed gives another order of the threads of a block. */
static struct ran planted(const char *what, int64_t n, uint32_t seed)
{
    const struct kernels *k = kernels_shim();
    struct ran r = {.fault = {.layer = -1}};
    const struct kctx c = {.fault = &r.fault};
    float x[2 * N], zero[2 * N] = {0};
    for (int i = 0; i < 2 * N; i++) x[i] = (float)i;
    float *gx = k->backend->alloc(&c, 4 * n), *gy = k->backend->alloc(&c, 4 * n);
    k->backend->upload(&c, gx, x, 4 * n);
    k->backend->upload(&c, gy, zero, 4 * n);
    shim_forget();
    shim_schedule(seed);
    planted_run(&c, what, gy, gx, n);
    shim_schedule(0);
    const struct kernel_fault fault = r.fault;
    r.fault.code = TARE_OK; /* allows allocating memory again */
    k->backend->download(&c, r.y, gy, 4 * n);
    k->backend->release(&c, gx);
    k->backend->release(&c, gy);
    r.fault = fault;
    return r;
}

static void sound(const char *what, int64_t n)
{
    for (uint32_t seed = 0; seed < 4; seed++) {
        const struct ran r = planted(what, n, seed);
        if (r.fault.code || shim_found) fail_msg("%s: %s", what, shim_first);
    }
}

/* words: text that its message must contain */
static void found(const char *what, int64_t n, const char *words)
{
    if (!shim_watches()) {
        SKIP("the sanitizer's build does not watch accesses");
    }
    for (uint32_t seed = 0; seed < 4; seed++) {
        const struct ran r = planted(what, n, seed);
        if (!shim_found) fail_msg("%s is not found, order of threads %u", what, seed);
        if (!strstr(shim_first, words)) fail_msg("%s: it says \"%s\"", what, shim_first);
        if (strcmp(what, "host touches")) assert_int_equal(r.fault.code, TARE_E_DEVICE);
    }
}

static void test_sound_kernels(void **state)
{
    (void)state;
    sound("tree", N);
    assert_true(planted("tree", N, 3).y[0] == 63 * 32);
    sound("broadcast", N);
    sound("count", N);
    sound("copy", 2 * N);
    sound("copy", N + 1);
    sound("index", N);
    sound("dynamic", N);
    sound("warp", N);
}

static void test_races_are_found(void **state)
{
    (void)state;
    found("tree without a barrier", N, "race");
    found("two writers", N, "race");
    found("relay", N, "another block");
    found("warp without sync", N, "race");
}

static void test_accesses_outside_are_found(void **state)
{
    (void)state;
    found("copy too much", N + 1, "writes 4 bytes, 260 bytes after the beginning of an allocation of 260");
    found("read in front", N, "before an allocation of 256");
    found("index too large", N, "index 64 is beyond its array");
    found("dynamic too much", N, "writes 4 bytes");
    found("host touches", N, "host code accesses device memory");
}

static void test_graphs(void **state)
{
    (void)state;
    sound("graph", N);
    found("graph of freed memory", N, "which is not device memory");
    shim_forget();
    planted("graph that waits", N, 0);
    assert_non_null(strstr(shim_first, "cudaStreamSynchronize during a capture"));
}

/* A launch that may begin before the preceding one has ended. */
static void test_launches_that_follow(void **state)
{
    (void)state;
    sound("behind, all after the wait", N);
    assert_true(planted("behind, all after the wait", N, 0).y[5] == 10);
    sound("behind, x before it", N);
    found("behind, y before it", N, "reads byte");
    found("behind, w before it", N, "writes byte");
    found("behind, n", N, "has not waited for the preceding launch");
}

/* Zones around an allocation, which also an uninstrumented build checks. */
static void test_guard_zones(void **state)
{
    (void)state;
    const struct kernels *k = kernels_shim();
    struct kernel_fault fault = {.layer = -1};
    const struct kctx c = {.fault = &fault};
    const float ones[N + 2] = {0};
    float *gx = on_device(k, &c, ones, 4 * N), *gy = on_device(k, &c, ones, 4 * N);
    unsigned char behind[DEVICE_GUARD];
    planted_run(&c, "copy too much", gy, gx, N); /* guards inside the allocation */
    fault.code = TARE_OK;
    k->backend->download(&c, behind, gy + N, sizeof behind);
    assert_true(behind[0] != 0xff || behind[1] != 0xff || behind[2] != 0xff || behind[3] != 0xff);
    for (int i = 0; i < n_device_blocks; i++) k->backend->release(&c, device_blocks[i].base);
    n_device_blocks = 0;
}

static void test_waiting_is_found(void **state)
{
    (void)state;
    const struct ran r = planted("hang", N, 0);
    assert_int_equal(r.fault.code, TARE_E_DEVICE);
    assert_non_null(strstr(shim_first, "for each other forever"));
    planted("different barriers", N, 0);
    assert_non_null(strstr(shim_first, "different barriers"));
}

static void test_shared_memory_is_not_zero(void **state)
{
    (void)state;
    if (!shim_watches()) SKIP("the sanitizer's build does not watch accesses");
    const struct ran r = planted("fresh", N, 0);
    assert_true(r.y[0] == 1 && isnan(r.y[40]));
}

/* The first failure is kept, with the operation and its shapes; no operation runs after it. */
static void test_the_first_fault_stays(void **state)
{
    (void)state;
    const struct kernels *k = kernels_shim();
    struct kernel_fault fault = {.layer = -1};
    const struct kctx c = {.fault = &fault};
    struct err e;
    float *y = k->backend->alloc(&c, 64), one = 1, got = 0;
    k->backend->upload(&c, y, &one, 4);
    kernels_at(&c, "forward pass", 3);
    k->backend->upload(&c, y, &one, 4);
    assert_int_equal(kernels_finish(k, &c, &e), TARE_OK);
    planted_run(&c, "hang", y, y, 16);
    k->backend->zero(&c, y, 4);
    assert_int_equal(kernels_finish(k, &c, &e), TARE_E_DEVICE);
    assert_non_null(strstr(e.message, "forward pass, layer 3: hang_kernel"));
    fault.code = TARE_OK;
    k->backend->download(&c, &got, y, 4);
    assert_true(got == 1);
    k->backend->release(&c, y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sound_kernels),
                                       cmocka_unit_test(test_races_are_found),
                                       cmocka_unit_test(test_accesses_outside_are_found),
                                       cmocka_unit_test(test_graphs),
                                       cmocka_unit_test(test_launches_that_follow),
                                       cmocka_unit_test(test_guard_zones),
                                       cmocka_unit_test(test_waiting_is_found),
                                       cmocka_unit_test(test_shared_memory_is_not_zero),
                                       cmocka_unit_test(test_the_first_fault_stays)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
#else
static void test_kernels_on_the_host(void **state)
{
    (void)state;
    SKIP("the kernels were not built for the host (no C++ compiler, or the thread sanitizer)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels_on_the_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
