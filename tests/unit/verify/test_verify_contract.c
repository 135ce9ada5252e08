/* What core/verify does for a plugin: it copies the texts of a verdict at once and cuts them at a
 * character, tells instances of one plugin apart, and refuses codes and flags that it does not
 * know. */
#include "check.h"

#include "verify/verify.h"

#include <string.h>
#include <tare/sdk.h>

static tare_text text(const char *s)
{
    return (tare_text){s, (int64_t)strlen(s)};
}

/* ---------------------------------------------------------------- a plugin of this program */

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = (void *)(uintptr_t)setup;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

/* "code N": the code N. "long": 200 characters of three bytes, and a shorter one. Otherwise a random
 * reward, and a note with the completion and the instance. */
static tare_status judge(const tare_setup *s, const tare_completion *a, tare_verdict *out)
{
    char note[64];
    uint32_t word;
    tare_status status = s->host->random(s->host->ctx, 0, 0, &word, 1);
    out->code = a->text.size == 6 ? a->text.data[5] - '0' : TARE_VERDICT_PARTIAL;
    out->reward = (double)word / 4294967296.0;
    s->host->metric(s->host->ctx, "drawn", out->reward, TARE_METRIC_SUM);
    for (int k = 0; k < 200 && a->text.size == 4 && !status; k++) status = tare_say(out->extracted, "\xE2\x82\xAC");
    if (!status) status = tare_say(out->extracted, "!");
    snprintf(note, sizeof note, "%.*s by %s", (int)a->text.size, a->text.data, s->instance);
    if (!status) status = tare_say(out->note, note);
    memset(note, 'x', sizeof note);
    return status;
}

static tare_status verify(void *self, const tare_completion *const *completion, tare_verdict *const *out, int64_t n,
                          tare_error *error)
{
    tare_status s = TARE_OK;
    (void)error;
    for (int64_t i = 0; i < n && !s; i++) s = judge(self, completion[i], out[i]);
    return s;
}

static const tare_verifier PROBE = {.struct_size = sizeof PROBE, .create = create, .destroy = destroy, .verify = verify},
                           ODD = {.struct_size = sizeof ODD, .flags = 64, .create = create, .destroy = destroy, .verify = verify};

static tare_descriptor descriptor(const char *name, const tare_verifier *functions)
{
    return (tare_descriptor){.struct_size = sizeof(tare_descriptor),
                             .kind = TARE_KIND_VERIFIER,
                             .name = name,
                             .version = "1.0.0",
                             .summary = "a verifier of the test",
                             .functions = functions};
}

static tare_status add(const char *origin, const tare_descriptor *d, struct err *e)
{
    const tare_descriptor *const all[] = {d};
    const tare_plugin plugin = {
        .struct_size = sizeof plugin, .minor_built = TARE_ABI_MINOR, .n_descriptors = 1, .descriptors = all};
    return plugin_add(origin, &plugin, e);
}

/* ---------------------------------------------------------------- tests */

struct metrics {
    int plain, other;
};

static void on_metric(void *ctx, const char *name, double value, int32_t how)
{
    struct metrics *m = ctx;
    (void)value;
    assert_int_equal(how, TARE_METRIC_SUM);
    m->plain += !strcmp(name, "verifier/drawn");
    m->other += !strcmp(name, "verifier.other/drawn");
}

static struct verify *opened(struct metrics *m)
{
    struct err e = {0};
    struct verify *v = NULL;
    const struct plugin_env env = {.seed = 7, .ctx = m, .metric = on_metric};
    static tare_descriptor probe;
    probe = descriptor("probe", &PROBE);
    assert_ok(add("the test", &probe, &e), &e);
    assert_ok(verify_new(&(struct verify_options){.workers = 1, .max_crash_share = 1}, &v, &e), &e);
    assert_ok(verify_add(v, &(struct verify_use){.plugin = "probe", .weight = 1}, NULL, NULL, &env, &e), &e);
    assert_ok(verify_add(v, &(struct verify_use){.plugin = "probe", .as = "other", .weight = 1}, NULL, NULL, &env, &e), &e);
    return v;
}

static void test_notes_are_copied(void **state)
{
    (void)state;
    struct metrics m = {0};
    struct err e = {0};
    struct verify *v = opened(&m);
    struct verify_text extracted[3], note[3];
    struct verify_item items[3];
    static const char *const SAID[] = {"first", "long", "the third"};
    for (int i = 0; i < 3; i++)
        items[i] = (struct verify_item){.completion = text(SAID[i]), .extracted = &extracted[i], .note = &note[i]};
    assert_ok(verify_items(v, items, 3, (struct verify_parts){0}, &e), &e);
    assert_string_equal(note[0].data, "first by probe");
    assert_string_equal(note[2].data, "the third by probe");
    assert_string_equal(extracted[0].data, "!");
    /* 170 characters fit into 512 bytes, and nothing is added behind a text that was cut */
    assert_int_equal(extracted[1].size, 510);
    assert_true(!str_utf8_error(extracted[1].data, extracted[1].size) && strlen(extracted[1].data) == 510);
    verify_close(v);
}

static void test_two_instances(void **state)
{
    (void)state;
    double part[2][2];
    for (int k = 0; k < 2; k++) {
        struct metrics m = {0};
        struct err e = {0};
        struct verify *v = opened(&m);
        struct verify_item item = {.completion = text("any")};
        assert_ok(verify_items(v, &item, 1, (struct verify_parts){.component = part[k]}, &e), &e);
        assert_true(part[k][0] != part[k][1]);
        assert_int_equal(m.plain, 1);
        assert_int_equal(m.other, 1);
        assert_string_equal(verify_unrepeatable(v), "probe");
        verify_close(v);
    }
    assert_memory_equal(part[0], part[1], sizeof part[0]);
}

static void test_unknown_numbers(void **state)
{
    (void)state;
    static tare_descriptor odd;
    struct metrics m = {0};
    struct verify *v = opened(&m);
    static const char *const CODES[] = {"code 0", "code 6", "code 8"};
    for (int k = 0; k < 3; k++) {
        struct err e = {0};
        char part[64];
        struct verify_item item = {.completion = text(CODES[k]), .name = "r"};
        assert_int_equal(verify_items(v, &item, 1, (struct verify_parts){0}, &e), TARE_E_PLUGIN);
        snprintf(part, sizeof part, "the verdict code %c is invalid", CODES[k][5]);
        assert_non_null(strstr(e.message, part));
    }
    verify_close(v);
    struct err e = {0};
    odd = descriptor("odd", &ODD);
    assert_int_equal(add("an odd test", &odd, &e), TARE_E_PLUGIN);
    assert_non_null(strstr(e.message, "unknown flags 0x40"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_notes_are_copied), cmocka_unit_test(test_two_instances),
                                       cmocka_unit_test(test_unknown_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
