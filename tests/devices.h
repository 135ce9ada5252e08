/* Runs tests with the kernels of a device: the CUDA kernels as fibers on the host, and on a GPU
 * if there is one. */
#ifndef TESTS_DEVICES_H
#define TESTS_DEVICES_H

#include "check.h"

#include "kernels.h"

#ifdef TARE_CUDA_SHIM
extern int64_t shim_found;
extern char shim_first[400];
void shim_forget(void);
const struct kernels *kernels_shim(void);

static inline void on_shim(void (*test)(const struct kernels *k))
{
    shim_forget();
    test(kernels_shim());
    if (shim_found) fail_msg("%lld findings, the first: %s", (long long)shim_found, shim_first);
}
#else
static inline void on_shim(void (*test)(const struct kernels *k))
{
    (void)test;
    SKIP("the kernels were not built for the host (no C++ compiler, or the thread sanitizer)");
}
#endif

static inline void on_cuda(void (*test)(const struct kernels *k))
{
    const struct kernels *k;
    struct err e;
    if (kernels_cuda(0, &k, &e)) {
        SKIP("%s", e.message);
    }
    test(k);
}

/* The program runs TEST on each. */
#define ON_DEVICES(TEST)                                                                                                           \
    static void test_shim(void **state)                                                                                            \
    {                                                                                                                              \
        (void)state;                                                                                                               \
        on_shim(TEST);                                                                                                             \
    }                                                                                                                              \
    static void test_cuda(void **state)                                                                                            \
    {                                                                                                                              \
        (void)state;                                                                                                               \
        on_cuda(TEST);                                                                                                             \
    }                                                                                                                              \
    int main(void)                                                                                                                 \
    {                                                                                                                              \
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_shim), cmocka_unit_test(test_cuda)};                              \
        return cmocka_run_group_tests(tests, NULL, NULL);                                                                          \
    }

#endif
