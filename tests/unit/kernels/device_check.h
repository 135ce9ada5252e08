/* Checks of backends whose memory the host does not access: the CUDA kernels as fibers on the host
 * ("shim", tests/cuda/shim/shim.h) and on a GPU ("cuda", skipped with the reason if there is no
 * GPU). Inputs are on the host, with a copy between guard zones on the device; results are copied
 * back and compared with ref.
 *
 *   static void add(const struct kernels *k, const struct kctx *c)
 *   {
 *       float *y = randoms(n, 0, 1), *x = randoms(n, 0, 1);
 *       float *dy = on_device(k, c, y, n * 4), *dx = on_device(k, c, x, n * 4);
 *       KERNEL(k, c, add, .y = dy, .x = dx, .n = n);
 *       KERNEL(ref, &contexts[0], add, .y = y, .x = x, .n = n);
 *       assert_bits("add", from_device(k, c, dy, n * 4), y, n);
 *       device_end(k, c);     checks guards and the fault, frees everything
 *   }
 *   DEVICE_TEST(add)     ... device_test(add) in main's list */
#ifndef DEVICE_CHECK_H
#define DEVICE_CHECK_H

#include "kernel_check.h"

#ifdef TARE_CUDA_SHIM
extern int64_t shim_found, shim_blocks;
extern char shim_first[400];
void shim_forget(void);
void shim_schedule(uint32_t seed);
int shim_watches(void);
extern int shim_corners;
const struct kernels *kernels_shim(void);
#endif

enum { DEVICE_GUARD = 256 };
struct device_block {
    char *base;
    int64_t bytes;
};
static struct device_block device_blocks[MOST_BUFFERS];
static int n_device_blocks;
static struct kernel_fault device_fault;
static struct kctx device_context = {.fault = &device_fault};

static inline void assert_no_fault(const struct kernels *k, const struct kctx *c)
{
    struct err e = {0};
    if (kernels_finish(k, c, &e)) {
        device_fault = (struct kernel_fault){.layer = -1};
        fail_msg("%s", e.message);
    }
}

/* Allocate bytes in the backend's memory and copy host to it; host NULL: fill it with a pattern
 * that is NaN. */
static inline void *on_device(const struct kernels *k, const struct kctx *c, const void *host, int64_t bytes)
{
    const int64_t all = bytes + 2 * DEVICE_GUARD;
    char *staging = malloc((size_t)all), *base = k->backend->alloc(c, all);
    assert_non_null(staging);
    if (!base) fail_msg("%s: no memory for %lld bytes", k->name, (long long)all);
    assert_true(n_device_blocks < MOST_BUFFERS);
    memset(staging, 0xff, (size_t)all);
    if (host && bytes) memcpy(staging + DEVICE_GUARD, host, (size_t)bytes);
    k->backend->upload(c, base, staging, all);
    device_blocks[n_device_blocks++] = (struct device_block){base, bytes};
    free(staging);
    return base + DEVICE_GUARD;
}

/* Copies to a buffer of kernel_check.h, which device_end frees. */
static inline float *from_device(const struct kernels *k, const struct kctx *c, const void *device, int64_t bytes)
{
    float *host = floats((bytes + 3) / 4, 0);
    assert_no_fault(k, c);
    k->backend->download(c, host, device, bytes);
    return host;
}

static inline void device_end(const struct kernels *k, const struct kctx *c)
{
    assert_no_fault(k, c);
    for (int i = 0; i < n_device_blocks; i++) {
        const struct device_block *p = &device_blocks[i];
        unsigned char guard[2][DEVICE_GUARD];
        k->backend->download(c, guard[0], p->base, DEVICE_GUARD);
        k->backend->download(c, guard[1], p->base + DEVICE_GUARD + p->bytes, DEVICE_GUARD);
        for (int j = 0; j < 2 * DEVICE_GUARD; j++)
            if (guard[j / DEVICE_GUARD][j % DEVICE_GUARD] != 0xff)
                fail_msg("%s: a byte %s a block of %lld bytes was written", k->name, j < DEVICE_GUARD ? "before" : "after",
                         (long long)p->bytes);
        k->backend->release(c, p->base);
    }
    n_device_blocks = 0;
    assert_no_fault(k, c);
    buffers_end();
}

typedef void (*device_test_body)(const struct kernels *k, const struct kctx *c);

static inline void device_run_shim(device_test_body body)
{
#ifdef TARE_CUDA_SHIM
    device_fault = (struct kernel_fault){.layer = -1};
    n_device_blocks = 0;
    shim_forget();
    body(kernels_shim(), &device_context);
    if (shim_found) fail_msg("%lld findings, the first: %s", (long long)shim_found, shim_first);
#else
    (void)body;
    SKIP("the kernels were not built for the host (no C++ compiler, or the thread sanitizer)");
#endif
}

static inline void device_run_cuda(device_test_body body)
{
    const struct kernels *k;
    struct err e;
    if (kernels_cuda(0, &k, &e)) {
        SKIP("%s", e.message);
    }
    device_fault = (struct kernel_fault){.layer = -1};
    n_device_blocks = 0;
    body(k, &device_context);
}

#define DEVICE_TEST(NAME)                                                                                                          \
    static void test_##NAME##_on_shim(void **state)                                                                                \
    {                                                                                                                              \
        (void)state;                                                                                                               \
        device_run_shim(NAME);                                                                                                     \
    }                                                                                                                              \
    static void test_##NAME##_on_cuda(void **state)                                                                                \
    {                                                                                                                              \
        (void)state;                                                                                                               \
        device_run_cuda(NAME);                                                                                                     \
    }
#define device_test(NAME) cmocka_unit_test(test_##NAME##_on_shim), cmocka_unit_test(test_##NAME##_on_cuda)

#endif
