/* Memory of a device backend (kernels.h, reserve) on the shim, and on a GPU if there is one: blocks
 * of a region, allocations outside it, and the operations' own memory, which also comes from the
 * region. */
#include "check.h"
#include "unit/kernels/device_check.h"

static struct kernel_memory use(const struct kernels *k, const struct kctx *c)
{
    struct kernel_memory m;
    k->backend->memory_use(c, &m);
    return m;
}

static void region_blocks(const struct kernels *k, const struct kctx *c)
{
    char host[3000];
    char *p[3] = {k->backend->alloc(c, 1)};
    memset(host, 0, sizeof host);
    k->backend->upload(c, p[0], host, 1); /* memory kept by a first upload is outside the region */
    k->backend->release(c, p[0]);
    assert_true(k->backend->reserve(c, 1 << 20));
    assert_true(use(k, c).taken == 1 && use(k, c).region == 1 << 20);
    for (int i = 0; i < 3; i++) {
        p[i] = k->backend->alloc(c, 3000);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 64, 0);
        memset(host, i + 1, sizeof host);
        k->backend->upload(c, p[i], host, sizeof host);
    }
    assert_true(use(k, c).held == 3 * 3072 && use(k, c).taken == 1);
    assert_false(k->backend->reserve(c, 2 << 20)); /* refused while blocks are handed out */
    k->backend->release(c, p[1]);
    /* the same place, zero again, with its neighbours unchanged */
    assert_ptr_equal(k->backend->alloc(c, 2900), p[1]);
    for (int i = 0; i < 3; i++) {
        k->backend->download(c, host, p[i], 2900);
        for (int j = 0; j < 2900; j++) assert_int_equal(host[j], i == 1 ? 0 : i + 1);
    }
    const int64_t outside = use(k, c).beyond;
    char *beyond = k->backend->alloc(c, 2 << 20);
    assert_non_null(beyond);
    assert_true(use(k, c).beyond == outside + (2 << 20) && use(k, c).taken == 2 && use(k, c).beyond_stage);
    k->backend->release(c, beyond);
    for (int i = 0; i < 3; i++) k->backend->release(c, p[i]);
    assert_true(use(k, c).beyond_most == outside + (2 << 20) && use(k, c).beyond == outside);
    assert_true(use(k, c).held == 0 && use(k, c).largest == 1 << 20);
    assert_true(k->backend->reserve(c, 0));
    assert_no_fault(k, c);
}
DEVICE_TEST(region_blocks)

/* Runs last, since memory that an operation keeps stays in the region. */
static void working_memory(const struct kernels *k, const struct kctx *c)
{
    enum { N = 5000 };
    float host[N];
    double want = 0;
    for (int i = 0; i < N; i++) host[i] = (float)(i % 7), want += (double)host[i] * (double)host[i];
    assert_true(k->backend->reserve(c, 128 << 20));
    float *x = k->backend->alloc(c, sizeof host);
    k->backend->upload(c, x, host, sizeof host);
    assert_true(sum_of_squares(k, c, x, N) == want);
    assert_no_fault(k, c);
    const struct kernel_memory m = use(k, c);
    /* scratch memory comes in blocks of 16 MiB */
    assert_true(m.taken == 1 && !m.beyond_stage && m.held > 16 << 20);
    k->backend->release(c, x);
}
DEVICE_TEST(working_memory)

int main(void)
{
    const struct CMUnitTest tests[] = {device_test(region_blocks), device_test(working_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
