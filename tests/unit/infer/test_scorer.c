/* What was asked of the kernels and failed gives no numbers. */
#include "engine.h"

#include "infer/score.h"

static void a_failure_of_the_kernels_is_told(void **state)
{
    (void)state;
    static const int32_t ids[] = {3, 5, 7};
    static const int64_t begin[] = {0, 3};
    const struct score_lines lines = {ids, begin, 1, 1};
    const struct model_config c = small_shape("qwen3", "f32");
    struct err e = {0};
    const struct kernels *k;
    struct pool *pool;
    struct model *m;
    struct scorer *s;
    float logprob[2], entropy[2];
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
    assert_ok(pool_new(1, &pool, &e), &e);
    assert_ok(model_new(&(struct model_source){.config = &c, .kernels = k, .pool = pool, .seed = 1}, 97, ids, 1, &m, &e), &e);
    assert_ok(scorer_new(m, &s, &e), &e);
    assert_ok(scorer_run(s, &lines, logprob, entropy, &e), &e);
    m->fault.code = TARE_E_NOMEM; /* as an operation leaves it that found no scratch memory */
    snprintf(m->fault.message, sizeof m->fault.message, "no scratch memory");
    assert_int_equal(scorer_run(s, &lines, logprob, entropy, &e), TARE_E_NOMEM);
    assert_non_null(strstr(e.message, "no scratch memory"));
    scorer_free(s);
    model_free(m);
    pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_of_the_kernels_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
