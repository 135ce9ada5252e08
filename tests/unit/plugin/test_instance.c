/* Parameters, instances, host services and saved state, on the well-behaved fixture and on some
 * faulty ones. */
#include "check.h"

#include "base/fs.h"
#include "base/json.h"
#include "plugin/plugin.h"

#include <math.h>
#include <string.h>

static struct err e;
static struct arena arena;

static const struct plugin *fixture(const char *name, int32_t kind)
{
    const struct plugin *p;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.so", getenv("FIXTURES"), name);
    assert_ok(plugin_open(path, kind, NULL, &p, &e), &e);
    return p;
}

static const tare_value *values_of(const struct plugin *p, const char *const *assignments, int64_t n)
{
    const struct config_param *settings;
    const tare_value *values;
    assert_ok(plugin_settings(p, (struct plugin_words){assignments, n}, NULL, &arena, &settings, &e), &e);
    assert_ok(plugin_params(p, settings, &arena, &values, &e), &e);
    return values;
}

static struct plugin_instance *make(const char *name, const char *assignment, const struct plugin_env *env)
{
    struct plugin_instance *i;
    const struct plugin *p = fixture(name, TARE_KIND_ESTIMATOR);
    assert_ok(plugin_create(p, values_of(p, &assignment, assignment != NULL), 4, env, &i, &e), &e);
    return i;
}

/* ---------------------------------------------------------------- parameters */

static void params__defaults_and_values(void **state)
{
    (void)state;
    const struct plugin *p = fixture("good", TARE_KIND_ESTIMATOR);
    const tare_value *v = values_of(p, NULL, 0);
    assert_true(v[0].f == 1 && v[1].i == 1 && v[3].i == 0 && v[4].i == 3);
    assert_string_equal(v[2].s, "x y");
    static const char *const given[] = {"factor=2", "choice=a", "factor=0.25", "text= a=b ", "flag=on", "count=9"};
    v = values_of(p, given, 6);
    /* the last assignment wins */
    assert_true(v[0].f == 0.25 && v[1].i == 0 && v[3].i == 1 && v[4].i == 9);
    assert_string_equal(v[2].s, " a=b ");
}

static void params__messages(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"factr", "1", "x.ini:7: [estimator.hostile] factr: unknown key; did you mean factor?"},
        {"zzzzzzzz", "1", "zzzzzzzz: unknown key; the plugin has factor, choice, text, flag, count"},
        {"factor", "5.5", "x.ini:7: [estimator.hostile] factor: 5.5 is out of range: must be 0 <= factor <= 5"},
        {"factor", "nan", "factor: 'nan' must be a finite number"},
        {"factor", "1e999", "factor: '1e999' must be a finite number"},
        {"factor", "", "factor: '' must be a finite number"},
        {"factor", "0x1p3z", "must be a finite number"},
        {"factor", "1,5", "factor: '1,5' must be a finite number"},
        {"choice", "c", "choice: 'c' must be one of a, b"},
        {"choice", "A", "choice: 'A' must be one of a, b"},
        {"flag", "maybe", "flag: 'maybe' must be true or false"},
        {"count", "2.5", "count: '2.5' must be a whole number"},
        {"count", "10", "count: 10 is out of range: must be 1 <= count < 10"},
        {"count", "0", "count: 0 is out of range"},
        {"count", "99999999999999999999", "count: '99999999999999999999' must be a whole number"},
    };
    const struct plugin *p = fixture("good", TARE_KIND_ESTIMATOR);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config_param other = {"estimator.somebody_else", cases[i][0], "7", "y.ini:1", NULL, NULL};
        struct config_param one = {"estimator.hostile", cases[i][0], cases[i][1], "x.ini:7", NULL, &other};
        const tare_value *values;
        const tare_status status = plugin_params(p, &one, &arena, &values, &e);
        if (status != TARE_E_CONFIG || !strstr(e.message, cases[i][2]))
            fail_msg("%s = %s: %d %s", cases[i][0], cases[i][1], status, e.message);
    }
    const struct config_param *settings;
    const char *no_equals = "factor";
    assert_int_equal(plugin_settings(p, (struct plugin_words){&no_equals, 1}, NULL, &arena, &settings, &e), TARE_E_CONFIG);
}

static void describe__formats(void **state)
{
    (void)state;
    const struct plugin *p = fixture("good", TARE_KIND_ESTIMATOR);
    struct str text = {0};
    json_t *j;
    assert_ok(plugin_describe(p, PLUGIN_JSON, &text, &e), &e);
    assert_ok(json_parse(text.data, text.size, "info", &j, &e), &e);
    const json_t *count = json_array_get(json_object_get(j, "params"), 4);
    assert_string_equal(json_text_or(count, "key", ""), "count");
    assert_true(json_double_or(count, "max", 0) == 10 && json_bool_or(count, "below_max", 0));
    json_decref(j);
    str_clear(&text);
    assert_ok(plugin_describe(p, PLUGIN_INI, &text, &e), &e);
    assert_non_null(strstr(text.data, "[estimator.hostile]\n; multiplies the rewards (0 <= factor <= 5)\nfactor = 1\n"));
    str_clear(&text);
    assert_ok(plugin_describe(p, PLUGIN_MARKDOWN, &text, &e), &e);
    assert_non_null(strstr(text.data, "| `count` | int | 3 | 1 <= count < 10 | a count |"));
    str_clear(&text);
    assert_ok(plugin_describe(p, PLUGIN_TEXT, &text, &e), &e);
    assert_null(strstr(text.data, "required")); /* each has a default */
    str_free(&text);
}

/* ---------------------------------------------------------------- instances */

static void create__passes_the_message_on(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"create_fails", "estimator hostile: create: factor 1 does not please"},
        {"silent_failure", "estimator hostile: create: failed with status 11 (out of range) and no message"},
        {"unknown_status", "failed with status 4711"},
        {"endless_message", "estimator hostile: create: xxxxxxxx"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plugin_instance *instance;
        const struct plugin *p = fixture(cases[i][0], TARE_KIND_ESTIMATOR);
        assert_true(plugin_create(p, values_of(p, NULL, 0), 0, NULL, &instance, &e) != TARE_OK);
        assert_null(instance);
        if (!strstr(e.message, cases[i][1])) fail_msg("%s: %s", cases[i][0], e.message);
    }
}

struct sink {
    char name[64];
    double value;
    int32_t how;
};

static void take(void *ctx, const char *name, double value, int32_t how)
{
    struct sink *s = ctx;
    snprintf(s->name, sizeof s->name, "%s", name);
    s->value = value;
    s->how = how;
}

static const void *offer(void *ctx, const char *id)
{
    return strcmp(id, "test/1") ? NULL : ctx;
}

static void host__services(void **state)
{
    (void)state;
    struct sink sink = {.value = 0};
    const struct plugin_env env = {.seed = 7, .ctx = &sink, .metric = take, .extension = offer};
    struct plugin_instance *i = make("good", NULL, &env), *other = make("good", NULL, NULL);
    const tare_host *h = &i->host;
    const int64_t before = i->allocated;
    assert_true(before > 0); /* the instance's self */
    char *memory = h->alloc(h->ctx, 1000, 256);
    assert_true(memory && !((uintptr_t)memory % 256) && i->allocated == before + 1000);
    for (int j = 0; j < 1000; j++) assert_int_equal(memory[j], 0);
    memset(memory, 1, 1000);
    h->release(h->ctx, memory);
    h->release(h->ctx, NULL);
    assert_true(i->allocated == before);
    assert_null(h->alloc(h->ctx, -1, 0));
    assert_null(h->alloc(h->ctx, 8, 24));
    uint32_t a[7], b[7], c[3];
    assert_int_equal(h->random(h->ctx, 1, 2, a, 7), TARE_OK);
    assert_int_equal(h->random(h->ctx, 1, 2, b, 7), TARE_OK);
    assert_int_equal(h->random(h->ctx, 1, 2, c, 3), TARE_OK);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_equal(a, c, sizeof c); /* a shorter request is a prefix of a longer one */
    h->random(h->ctx, 1, 3, b, 7);
    assert_true(memcmp(a, b, sizeof a) != 0);
    h->random(h->ctx, 2, 2, b, 7);
    assert_true(memcmp(a, b, sizeof a) != 0);
    other->host.random(other->host.ctx, 1, 2, b, 7);
    assert_true(memcmp(a, b, sizeof a) != 0); /* another run seed */
    h->metric(h->ctx, "answer", 42, TARE_METRIC_SUM);
    assert_string_equal(sink.name, "estimator/answer");
    assert_true(sink.value == 42 && sink.how == TARE_METRIC_SUM);
    other->host.metric(other->host.ctx, "answer", 1, TARE_METRIC_LAST); /* without a metric function */
    assert_ptr_equal(h->extension(h->ctx, "test/1"), &sink);
    assert_null(h->extension(h->ctx, "test/2"));
    assert_null(other->host.extension(other->host.ctx, "test/1"));
    assert_int_equal(h->cancelled(h->ctx), 0);
    plugin_destroy(i);
    plugin_destroy(other);
    plugin_destroy(NULL);
}

static void identity__names_parameters(void **state)
{
    (void)state;
    struct plugin_instance *i = make("good", "factor=0.1", NULL);
    struct str text = {0};
    assert_ok(plugin_identity(i, &text, &e), &e);
    assert_string_equal(text.data, "hostile/1.2.3 factor=0.1 choice=b text=x y flag=false count=3");
    str_free(&text);
    plugin_destroy(i);
}

/* ---------------------------------------------------------------- verifier */

static void verify__checks_verdicts(void **state)
{
    (void)state;
    static const struct {
        const char *completion;
        tare_status code;
        const char *part;
    } cases[] = {{"ok", TARE_OK, ""},
                 {"fail", TARE_E_IO, "verifier verdicts: verify: completion 1: the judge is out"},
                 {"nothing", TARE_E_PLUGIN, "completion 1: the verdict code 0 is invalid"},
                 {"code", TARE_E_PLUGIN, "completion 1: the verdict code 99 is invalid"},
                 {"crashed", TARE_E_PLUGIN, "completion 1: the verdict code 6 is invalid"},
                 {"nan", TARE_E_NOT_FINITE, "completion 1: the reward is"},
                 {"long", TARE_OK, ""}};
    struct plugin_instance *i;
    const struct plugin *p = fixture("verdicts", TARE_KIND_VERIFIER);
    assert_ok(plugin_create(p, values_of(p, NULL, 0), 0, NULL, &i, &e), &e);
    for (size_t j = 0; j < sizeof cases / sizeof *cases; j++) {
        struct str text = {0};
        struct plugin_stream s = {.out = &text, .keep = 16};
        const tare_stream extracted = plugin_stream(&s);
        tare_completion a[2] = {{.struct_size = sizeof *a, .text = {"ok", 2}}, {.struct_size = sizeof *a}};
        tare_verdict v[2] = {{.struct_size = sizeof *v}, {.struct_size = sizeof *v, .extracted = &extracted}};
        a[1].text = (tare_text){cases[j].completion, (int64_t)strlen(cases[j].completion)};
        const tare_completion *completions[] = {&a[0], &a[1]};
        tare_verdict *verdicts[] = {&v[0], &v[1]};
        const tare_status status = plugin_verify(i, completions, verdicts, 2, &e);
        if (status != cases[j].code || (status && !strstr(e.message, cases[j].part)))
            fail_msg("%s: %d %s", cases[j].completion, status, e.message);
        assert_int_equal(text.size, strcmp(cases[j].completion, "long") ? 0 : 16);
        str_free(&text);
    }
    struct str out = {0};
    tare_completion completion = {.struct_size = sizeof completion};
    assert_int_equal(plugin_explain(i, &completion, &out, &e), TARE_E_UNSUPPORTED);
    plugin_destroy(i);
}

/* ---------------------------------------------------------------- saved state */

static double sum_of(struct plugin_instance *i)
{
    struct str text = {0};
    assert_ok(plugin_describe_state(i, &text, &e), &e);
    const double sum = strtod(text.data + strlen("{\"sum\":"), NULL);
    str_free(&text);
    return sum;
}

static void add(struct plugin_instance *i, double x)
{
    const double sums[2] = {0, x};
    const tare_update update = {.struct_size = sizeof update, .updates = 1, .collected = sums};
    assert_int_equal(i->plugin->estimator->apply(i->self, &update, NULL), TARE_OK);
}

static void state__goes_there_and_back(void **state)
{
    (void)state;
    struct plugin_instance *a = make("good", NULL, NULL), *b = make("good", NULL, NULL);
    struct str text = {0};
    int64_t used;
    add(a, 0.1);
    assert_ok(plugin_save(a, &text, &e), &e);
    assert_ok(plugin_load(b, text.data, text.size, NULL, "x.state", &e), &e);
    assert_true(sum_of(b) == 0.1);
    int64_t clusters = 0;
    assert_ok(plugin_state_clusters(text.data, text.size, "x.state", &clusters, &e), &e);
    assert_int_equal(clusters, 4);
    assert_int_equal(plugin_state_clusters("", 0, "x.state", &clusters, &e), TARE_E_CORRUPT);
    assert_non_null(strstr(e.message, "x.state: cut short: 0 bytes"));
    e = (struct err){0};
    const int64_t one = text.size;
    add(a, 1);
    assert_ok(plugin_save(a, &text, &e), &e); /* two states in a row: each frame has its length */
    assert_ok(plugin_load(b, text.data, text.size, &used, "x.state", &e), &e);
    assert_int_equal(used, one);
    assert_ok(plugin_load(b, text.data + used, text.size - used, NULL, "x.state", &e), &e);
    assert_true(sum_of(b) == 1.1);
    plugin_destroy(a);
    plugin_destroy(b);
    str_free(&text);
}

static void no_load(struct plugin_instance *i, const char *data, int64_t n, tare_status code, const char *part)
{
    const tare_status status = plugin_load(i, data, n, NULL, "x.state", &e);
    if (status != code || !strstr(e.message, part))
        fail_msg("status %d (expected %d): %s (expected '%s')", status, code, e.message, part);
    if (strncmp(e.message, "x.state: ", 9)) fail_msg("%s does not name the file", e.message);
}

static void state__refuses_what_does_not_match(void **state)
{
    (void)state;
    struct plugin_instance *i = make("good", NULL, NULL), *other = make("good", "factor=2", NULL),
                           *more = make("leaves_bytes", NULL, NULL), *reads = make("reads_too_much", NULL, NULL), *grpo, *wider;
    struct str text = {0};
    assert_ok(plugin_save(i, &text, &e), &e);
    for (int64_t n = 0; n < text.size; n++) no_load(i, text.data, n, TARE_E_CORRUPT, "cut short");
    assert_ok(str_add(&text, "!", 1, &e), &e);
    no_load(i, text.data, text.size, TARE_E_CORRUPT, "1 bytes after the state");
    text.size--;
    for (int64_t at = 0; at < text.size; at++) { /* every flipped byte is found */
        text.data[at] = (char)(text.data[at] ^ 0x40);
        if (at < 8)
            no_load(i, text.data, text.size, TARE_E_CORRUPT, "not the saved state of a plugin");
        else if (at < 12)
            no_load(i, text.data, text.size, TARE_E_VERSION, "saved state of format");
        else /* the header's kind, lengths, format and K as well as the bytes after it */
            no_load(i, text.data, text.size, TARE_E_CORRUPT, "");
        assert_true(plugin_state_clusters(text.data, text.size, "x.state", &(int64_t){0}, &e) != TARE_OK);
        text.data[at] = (char)(text.data[at] ^ 0x40);
    }
    no_load(i, "nothing that was ever saved by anyone, at least not with a frame", 64, TARE_E_CORRUPT,
            "not the saved state of a plugin");
    no_load(other, text.data, text.size, TARE_E_CONFIG, "saved with factor=1, but the configuration has factor=2");
    str_clear(&text);
    assert_ok(plugin_save(more, &text, &e), &e);
    no_load(more, text.data, text.size, TARE_E_CORRUPT, "read 8 of 12 bytes of its state");
    str_clear(&text);
    assert_ok(plugin_save(reads, &text, &e), &e);
    no_load(reads, text.data, text.size, TARE_E_CORRUPT, "estimator hostile: load: the state is cut short");
    assert_ok(plugin_new(&(struct plugin_wanted){"grpo", TARE_KIND_ESTIMATOR, NULL, NULL, 4, NULL}, &grpo, &e), &e);
    no_load(grpo, text.data, text.size, TARE_E_VERSION, "the state of estimator hostile, but the configuration has estimator grpo");
    str_clear(&text);
    assert_ok(plugin_save(grpo, &text, &e), &e);
    /* without a state the body is empty */
    assert_ok(plugin_load(grpo, text.data, text.size, NULL, "x.state", &e), &e);
    assert_ok(plugin_new(&(struct plugin_wanted){"grpo", TARE_KIND_ESTIMATOR, NULL, NULL, 5, NULL}, &wider, &e), &e);
    no_load(wider, text.data, text.size, TARE_E_CONFIG, "saved with a codebook of 4 clusters, but this run's has 5");
    plugin_destroy(wider);
    plugin_destroy(grpo);
    plugin_destroy(i);
    plugin_destroy(other);
    plugin_destroy(more);
    plugin_destroy(reads);
    str_free(&text);
}

/* A locked parameter that is newer than the state: the state was written with its default. */
static void state__takes_a_new_locked_parameter_at_its_default(void **state)
{
    (void)state;
    struct str old = {0}, newer = {0};
    struct plugin_instance *from = make("good", NULL, NULL), *to = make("new_locked", NULL, NULL),
                           *other = make("other_locked", "text=another", NULL);
    assert_ok(plugin_save(from, &old, &e), &e);
    assert_ok(plugin_load(to, old.data, old.size, NULL, "x.state", &e), &e);
    no_load(
        other, old.data, old.size, TARE_E_CONFIG,
        "saved before estimator hostile had the parameter text, which is fixed for a run; the state can continue only with the default x "
        "y, but");
    assert_ok(plugin_save(to, &newer, &e), &e);
    no_load(other, newer.data, newer.size, TARE_E_CONFIG, "saved with text=x y, but the configuration has text=another");
    no_load(from, newer.data, newer.size, TARE_E_CONFIG,
            "saved with text=x y, a fixed parameter that is unknown to this version of estimator hostile");
    str_free(&old);
    str_free(&newer);
    plugin_destroy(from);
    plugin_destroy(to);
    plugin_destroy(other);
}

/* A state names a locked parameter by the key that it had then. */
static void state__takes_a_locked_parameter_by_its_earlier_key(void **state)
{
    (void)state;
    struct str old = {0}, newer = {0};
    struct plugin_instance *from = make("good", "factor=2", NULL), *to = make("renamed_locked", "weight=2", NULL),
                           *other = make("renamed_locked", NULL, NULL);
    assert_ok(plugin_save(from, &old, &e), &e);
    assert_ok(plugin_load(to, old.data, old.size, NULL, "x.state", &e), &e);
    no_load(other, old.data, old.size, TARE_E_CONFIG, "saved with weight=2, but the configuration has weight=1");
    assert_ok(plugin_save(to, &newer, &e), &e);
    assert_ok(plugin_load(to, newer.data, newer.size, NULL, "x.state", &e), &e);
    no_load(from, newer.data, newer.size, TARE_E_CONFIG, "the parameter factor, which");
    str_free(&old);
    str_free(&newer);
    plugin_destroy(from);
    plugin_destroy(to);
    plugin_destroy(other);
}

static void state__tells_load_who_wrote_it(void **state)
{
    (void)state;
    struct str text = {0};
    struct plugin_instance *i = make("tells_version", NULL, NULL);
    assert_ok(plugin_save(i, &text, &e), &e);
    no_load(i, text.data, text.size, TARE_E_VERSION, "written by version 1");
    str_free(&text);
    plugin_destroy(i);
}

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, "test");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(params__defaults_and_values),
        cmocka_unit_test(params__messages),
        cmocka_unit_test(describe__formats),
        cmocka_unit_test(create__passes_the_message_on),
        cmocka_unit_test(host__services),
        cmocka_unit_test(identity__names_parameters),
        cmocka_unit_test(verify__checks_verdicts),
        cmocka_unit_test(state__goes_there_and_back),
        cmocka_unit_test(state__refuses_what_does_not_match),
        cmocka_unit_test(state__takes_a_new_locked_parameter_at_its_default),
        cmocka_unit_test(state__takes_a_locked_parameter_by_its_earlier_key),
        cmocka_unit_test(state__tells_load_who_wrote_it),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
