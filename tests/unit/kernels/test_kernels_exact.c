/* exp and log of exact.h against libm in double. */
#include "kernel_check.h"
#include "kernels_cpu.h"

static double ulps(float got, double expected)
{
    const float near = (float)expected;
    return fabs((double)got - expected) / (double)(nextafterf(fabsf(near), INFINITY) - fabsf(near));
}

static void test_exp(void **state)
{
    (void)state;
    double worst = 0;
    for (int64_t i = 0; i < 2000000; i++) {
        const float x = -87.3f + 175.6f * (float)i / 2e6f;
        const double u = ulps(exact_exp(x), exp((double)x));
        worst = u > worst ? u : worst;
    }
    for (float x = 1e-30f; x < 1; x *= 1.01f)
        worst = fmax(worst, fmax(ulps(exact_exp(x), exp((double)x)), ulps(exact_exp(-x), exp((double)-x))));
    printf("exp: at most %.3f ulp\n", worst);
    assert_true(worst < 1.2);
    assert_true(exact_exp(0) == 1 && exact_exp(-0.0f) == 1 && exact_exp(-INFINITY) == 0 && exact_exp(-88) == 0 &&
                isnan(exact_exp(NAN)));
    assert_true(exact_exp(1000) == exact_exp(88.37f) && isfinite(exact_exp(1000)));
}

static void test_log(void **state)
{
    (void)state;
    double worst = 0;
    for (float x = 1e-37f; x < 1e38f; x *= 1.00007f) worst = fmax(worst, ulps(exact_log(x), log((double)x)));
    for (int64_t i = 0; i < 1000000; i++) {
        const float x = 1 + (float)i * 0.2f; /* the range of sums of exponentials */
        worst = fmax(worst, ulps(exact_log(x), log((double)x)));
    }
    printf("log: at most %.3f ulp\n", worst);
    assert_true(worst < 1.2);
    assert_true(exact_log(1) == 0);
}

static void test_bf16(void **state)
{
    (void)state;
    assert_true(bf16_round(1.00390625f) == 1.0f);      /* a tie rounds to the even neighbour: down */
    assert_true(bf16_round(1.01171875f) == 1.015625f); /* up */
    assert_true(bf16_round(1.0040f) == 1.0078125f && isinf(bf16_round(3.4e38f)) && isnan(bf16_round(NAN)) &&
                f32_bits(bf16_round(-0.0f)) == 0x80000000u);
}

#ifdef TARE_CPU_EMU512
/* The properties that the table avx512bf16 requires of the instruction, checked on its
 * emulation. */
static void test_dot(void **state)
{
    (void)state;
    assert_int_equal(kernels_emu512bf16_check(), 1);
}
#endif

static void test_choice(void **state)
{
    (void)state;
    const struct kernels *k;
    struct err e;
    assert_ok(kernels_cpu("ref", &k, &e), &e);
    assert_string_equal(k->name, "ref");
    assert_int_equal(kernels_cpu("sse9", &k, &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "sse9"));
    assert_null(k);
    setenv("TARE_CPU", "ref", 1);
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
    assert_string_equal(k->name, "ref");
    setenv("TARE_CPU", "nothing", 1);
    assert_int_equal(kernels_cpu(NULL, &k, &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "TARE_CPU"));
    const char *const masks[] = {"ref", "avx2", "avx512", "avx512bf16", "neon"};
    int runs[] = {1, 0, 0, 0, 0};
#if defined(__x86_64__)
    runs[1] = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    runs[2] = runs[1] && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    runs[3] = runs[2] && __builtin_cpu_supports("avx512bf16");
#elif defined(__aarch64__)
    runs[4] = 1;
#endif
    for (int i = 0; i < 5; i++) {
        setenv("TARE_CPU", masks[i], 1);
        const tare_status status = kernels_cpu(NULL, &k, &e);
        if (i == 3 && runs[i] && status == TARE_E_UNSUPPORTED) {
            printf(
                "not here: avx512bf16: this CPU's dot product, or this build's compiler, does not pass the check at the start\n");
        } else if (runs[i]) {
            assert_ok(status, &e);
            assert_string_equal(k->name, masks[i]);
        } else {
            assert_int_equal(status, TARE_E_UNSUPPORTED);
            assert_non_null(strstr(e.message, masks[i]));
            assert_null(k);
        }
    }
    setenv("TARE_CPU", "amx", 1); /* with AMX or its fallback */
    if (runs[1] || runs[4]) {
        assert_ok(kernels_cpu(NULL, &k, &e), &e);
        assert_true(!strncmp(k->name, "amx", 3));
    }
    unsetenv("TARE_CPU");
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
}

static void test_entries(void **state)
{
    (void)state;
    const struct kernels *k;
    struct err e;
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
    /* entries that a table may leave NULL are NULL in all CPU tables */
    const struct kernels *plain;
    assert_ok(kernels_cpu("ref", &plain, &e), &e);
    assert_non_null(plain->matmul_dw);
    assert_non_null(plain->adamw);
    assert_true(!k->backend->device && !k->backend->finish && !k->backend->reserve && !plain->backend->device);
    /* except these, which ref computes one after another */
    assert_true(k->matmul_low_rank && !plain->matmul_low_rank);
    struct kernels with = *plain;
    with.few_rows = k->few_rows; /* ref does not know a number from which on a product is slower */
    with.matmul_low_rank = k->matmul_low_rank;
    with.matmul_dx_low_rank = k->matmul_dx_low_rank;
    with.low_rank_dw = k->low_rank_dw;
    void *const *p = (void *const *)(const void *)&k->backend, *const *q = (void *const *)(const void *)&with.backend;
    for (; p < (void *const *)(const void *)(k + 1); p++, q++) assert_true(!*p == !*q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef TARE_CPU_EMU512
        cmocka_unit_test(test_dot),
#endif
        cmocka_unit_test(test_exp),    cmocka_unit_test(test_log),    cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_choice), cmocka_unit_test(test_entries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
