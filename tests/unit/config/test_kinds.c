/* The table of plugin kinds, and the lists generated from it. */
#include "check.h"

#include "config/kinds.h"

static void kinds__have_a_line_each(void **state)
{
    (void)state;
    assert_string_equal(CONFIG_KINDS[TARE_KIND_ESTIMATOR].name, "estimator");
    assert_string_equal(CONFIG_KINDS[TARE_KIND_CURRICULUM].folder, "curricula");
    assert_int_equal(PLUGIN_LAST_KIND, TARE_KIND_ENVIRONMENT);
}

static void kinds__are_found_by_their_sections(void **state)
{
    (void)state;
    assert_int_equal(config_kind_of_section("estimator"), TARE_KIND_ESTIMATOR);
    assert_int_equal(config_kind_of_section("estimator.bv_blend"), TARE_KIND_ESTIMATOR);
    assert_int_equal(config_kind_of_section("estimators.bv_blend"), 0);
    assert_int_equal(config_kind_of_section("encoder.hashed"), TARE_KIND_ENCODER);
    assert_int_equal(config_kind_of_section("codebook.kmeans"), TARE_KIND_CODEBOOK);
    assert_int_equal(config_kind_of_section("environment.x"), TARE_KIND_ENVIRONMENT);
    assert_int_equal(config_kind_of_section("clusterer.kmeans"), 0);
    assert_int_equal(config_kind_of_section("train"), 0);
    assert_int_equal(config_kind_of_section(""), 0);
}

static void kinds__have_the_choice_of_the_configuration(void **state)
{
    (void)state;
    struct err e = {0};
    struct config c = {0};
    const char *const overrides[] = {"verifier.plugins=math:1 code:0.5", "encoder.plugin=hashed"};
    assert_ok(config_load(&c, NULL, overrides, 2, &e), &e);
    assert_string_equal(config_kind_choice(&c, TARE_KIND_VERIFIER), "math:1 code:0.5");
    assert_string_equal(config_kind_choice(&c, TARE_KIND_ENCODER), "hashed");
    assert_string_equal(config_kind_choice(&c, TARE_KIND_OBJECTIVE), c.objective.plugin);
    assert_string_equal(config_kind_choice(&c, TARE_KIND_ENVIRONMENT), "");
    assert_false(config_uses(&c, "environment.x"));
    assert_true(config_uses(&c, "codebook.kmeans")); /* codebook.plugin = auto */
    assert_false(config_uses(&c, "encoder.kmeans"));
    assert_true(config_kind_is_single(TARE_KIND_ESTIMATOR));
    assert_false(config_kind_is_single(TARE_KIND_VERIFIER));
    assert_false(config_kind_is_single(TARE_KIND_CODEBOOK));
    config_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds__have_a_line_each),
                                       cmocka_unit_test(kinds__are_found_by_their_sections),
                                       cmocka_unit_test(kinds__have_the_choice_of_the_configuration)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
