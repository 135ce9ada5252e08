/* The table of plugin kinds, and the lists generated from it. */
#include "check.h"

#include "config/kinds.h"

static void kinds__have_a_line_each(void **state)
{
    (void)state;
    assert_string_equal(CONFIG_KINDS[TARE_ESTIMATOR].name, "estimator");
    assert_string_equal(CONFIG_KINDS[TARE_CURRICULUM].folder, "curricula");
    assert_int_equal(PLUGIN_LAST_KIND, TARE_CURRICULUM);
}

static void kinds__are_found_by_their_sections(void **state)
{
    (void)state;
    assert_int_equal(config_kind_of_section("estimator"), TARE_ESTIMATOR);
    assert_int_equal(config_kind_of_section("estimator.bv_blend"), TARE_ESTIMATOR);
    assert_int_equal(config_kind_of_section("estimators.bv_blend"), 0);
    assert_int_equal(config_kind_of_section("clusterer.kmeans"), TARE_ENCODER);
    assert_int_equal(config_kind_of_section("codebook.kmeans"), TARE_CODEBOOK);
    assert_int_equal(config_kind_of_section("train"), 0);
    assert_int_equal(config_kind_of_section(""), 0);
}

static void kinds__have_the_choice_of_the_configuration(void **state)
{
    (void)state;
    struct err e = {0};
    struct config c = {0};
    const char *const overrides[] = {"verifier.plugins=math:1 code:0.5", "clusterer.encoder=hashed"};
    assert_ok(config_load(&c, NULL, overrides, 2, &e), &e);
    assert_string_equal(config_kind_choice(&c, TARE_VERIFIER), "math:1 code:0.5");
    assert_string_equal(config_kind_choice(&c, TARE_ENCODER), "hashed");
    assert_string_equal(config_kind_choice(&c, TARE_OBJECTIVE), c.objective.plugin);
    assert_true(config_kind_is_single(TARE_ESTIMATOR));
    assert_false(config_kind_is_single(TARE_VERIFIER));
    config_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds__have_a_line_each),
                                       cmocka_unit_test(kinds__are_found_by_their_sections),
                                       cmocka_unit_test(kinds__have_the_choice_of_the_configuration)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
