/* Unknown bits and numbers in what a plugin owns are refused, one case for each bit of each member,
 * with a message that names the member and the bit. A bit that one host ignores could never get a
 * meaning. */
#include "check.h"

#include "plugin/internal.h"

#include <math.h>
#include <string.h>

static struct err e;

/* ---------------------------------------------------------------- a valid plugin of each kind */

/* Every function that a kind requires. The tests never call them, except those of a verifier. */
static tare_status nothing(void)
{
    return TARE_OK;
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)setup, (void)error;
    *self = NULL;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

#define ANY(F) .F = (void *)(uintptr_t)nothing
#define TABLE(NAME, ...) static tare_##NAME NAME = {.struct_size = sizeof NAME, .create = create, .destroy = destroy, __VA_ARGS__};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
TABLE(estimator, ANY(compute))
TABLE(encoder, ANY(sizes), ANY(encode))
TABLE(codebook, ANY(sizes), ANY(assign))
TABLE(objective, ANY(compute))
TABLE(curriculum, .select = NULL)
TABLE(environment, ANY(open), ANY(close), ANY(reset), ANY(step))
#pragma GCC diagnostic pop

static int32_t verdict_code = TARE_VERDICT_CORRECT;
static uint8_t ticket_state;
static uint32_t uses_bits;

static tare_status verify(void *self, const tare_completion *const *completion, tare_verdict *const *out, int64_t n,
                          tare_error *error)
{
    (void)self, (void)completion, (void)error;
    for (int64_t i = 0; i < n; i++) {
        out[i]->code = verdict_code;
        out[i]->reward = 0;
    }
    return TARE_OK;
}

static tare_status submit(void *self, const tare_completion *completion, int64_t ticket, tare_error *error)
{
    (void)self, (void)completion, (void)ticket, (void)error;
    return TARE_OK;
}

static tare_status poll_tickets(void *self, const tare_waiting *waiting, tare_error *error)
{
    (void)self, (void)error;
    waiting->state[0] = ticket_state;
    return TARE_OK;
}

static tare_status take(void *self, int64_t ticket, tare_verdict *out, tare_error *error)
{
    (void)self, (void)ticket, (void)error;
    out->code = verdict_code;
    out->reward = 0;
    return TARE_OK;
}

static void cancel(void *self, int64_t ticket)
{
    (void)self, (void)ticket;
}

static uint32_t uses(const tare_value *values)
{
    (void)values;
    return uses_bits;
}

TABLE(verifier, .verify = verify, .submit = submit, .poll = poll_tickets, .take = take, .cancel = cancel, .uses = uses)

static tare_param param;
static tare_want want;
static tare_descriptor descriptor;
static tare_plugin plugin;
static const tare_descriptor *const descriptors[] = {&descriptor};

/* Makes all structs valid, for a plugin of a kind. */
static void make_valid(int32_t kind)
{
    static const void *const tables[] = {
        [TARE_KIND_ESTIMATOR] = &estimator,    [TARE_KIND_VERIFIER] = &verifier,   [TARE_KIND_ENCODER] = &encoder,
        [TARE_KIND_CODEBOOK] = &codebook,      [TARE_KIND_OBJECTIVE] = &objective, [TARE_KIND_CURRICULUM] = &curriculum,
        [TARE_KIND_ENVIRONMENT] = &environment};
    param = (tare_param){.key = "key", .fallback = "1", .doc = "a number", .type = TARE_PARAM_FLOAT};
    want = (tare_want){.name = "finish", .axis = TARE_AXIS_ROLLOUT, .type = TARE_U8, .width = 1};
    descriptor = (tare_descriptor){.struct_size = sizeof descriptor,
                                   .kind = kind,
                                   .name = "bits",
                                   .version = "1.0.0",
                                   .summary = "a plugin of this test",
                                   .params = &param,
                                   .n_params = 1,
                                   .param_size = sizeof param,
                                   .wants = &want,
                                   .n_wants = kind == TARE_KIND_ESTIMATOR || kind == TARE_KIND_CURRICULUM,
                                   .want_size = sizeof want,
                                   .functions = tables[kind]};
    plugin = (tare_plugin){.struct_size = sizeof plugin, .n_descriptors = 1, .descriptors = descriptors};
    /* flags is the second member of every table */
    ((tare_head *)(uintptr_t)tables[kind])->flags = 0;
}

static tare_status validate(struct plugin **out)
{
    uint32_t n = 0;
    e = (struct err){0};
    return plugin_validate("bits.so", &plugin, out, &n, &e);
}

/* The refusal must name the member and the number. */
static void refused(const char *member, const char *number, int64_t value)
{
    struct plugin *p;
    const tare_status status = validate(&p);
    if (!status) fail_msg("%s = %lld was accepted", member, (long long)value);
    if (!strstr(e.message, member) || !strstr(e.message, number))
        fail_msg("%s = %lld: the message does not name '%s' and '%s': %s", member, (long long)value, member, number, e.message);
}

static void accepted(void)
{
    struct plugin *p;
    assert_ok(validate(&p), &e);
}

/* ---------------------------------------------------------------- bits */

/* Sets each bit of *flags that is not in `known` in turn. */
static void each_bit(int32_t kind, uint32_t *flags, uint32_t known, const char *member)
{
    for (int bit = 0; bit < 32; bit++) {
        char number[16];
        make_valid(kind);
        if (known >> bit & 1) continue;
        *flags |= 1u << bit;
        snprintf(number, sizeof number, "0x%x", 1u << bit);
        refused(member, number, (int64_t)(1u << bit));
    }
    make_valid(kind);
    accepted();
}

enum {
    PARAM_BITS = TARE_PARAM_REQUIRED | TARE_PARAM_MIN | TARE_PARAM_MAX | TARE_PARAM_ABOVE_MIN | TARE_PARAM_BELOW_MAX |
                 TARE_PARAM_LOG_SCALE | TARE_PARAM_SWEEPABLE | TARE_PARAM_LOCKED_ON_RESUME | TARE_PARAM_SECRET |
                 TARE_PARAM_DEPRECATED | TARE_PARAM_EXPERT | TARE_PARAM_RUN_FILE
};

static void bits__of_flags_are_refused(void **state)
{
    (void)state;
    each_bit(TARE_KIND_ESTIMATOR, &plugin.flags, 0, "tare_plugin has the unknown flags");
    each_bit(TARE_KIND_ESTIMATOR, &descriptor.flags, 0, "descriptor has the unknown flags");
    each_bit(TARE_KIND_ESTIMATOR, &descriptor.reserved, 0, "reserved");
    each_bit(TARE_KIND_ESTIMATOR, &param.flags, PARAM_BITS, "parameter key has the unknown flags");
    each_bit(TARE_KIND_ESTIMATOR, &want.flags, TARE_WANT_OPTIONAL, "want \"finish\" has the unknown flags");
}

static void bits__of_tables_are_refused(void **state)
{
    (void)state;
    const char *member = "function table has the unknown flags";
    each_bit(TARE_KIND_ESTIMATOR, &estimator.flags, TARE_ESTIMATOR_GIVES_TOKENS, member);
    each_bit(TARE_KIND_VERIFIER, &verifier.flags, TARE_VERIFIER_TOGETHER | TARE_VERIFIER_GIVES_SEGMENTS | TARE_VERIFIER_REPEATS,
             member);
    each_bit(TARE_KIND_ENCODER, &encoder.flags, 0, member);
    each_bit(TARE_KIND_CODEBOOK, &codebook.flags, 0, member);
    each_bit(TARE_KIND_OBJECTIVE, &objective.flags,
             TARE_OBJECTIVE_OWN_CLIP | TARE_OBJECTIVE_OWN_DUAL_CLIP | TARE_OBJECTIVE_LOOKS_AHEAD |
                 TARE_OBJECTIVE_TREATS_OFF_POLICY | TARE_OBJECTIVE_GIVES_DKL | TARE_OBJECTIVE_ZERO_AT_ZERO,
             member);
    each_bit(TARE_KIND_CURRICULUM, &curriculum.flags, TARE_CURRICULUM_READS_WEIGHTS, member);
    each_bit(TARE_KIND_ENVIRONMENT, &environment.flags, TARE_ENVIRONMENT_TOGETHER | TARE_ENVIRONMENT_REPEATS, member);
}

/* ---------------------------------------------------------------- numbers */

static void numbers__of_descriptors_are_refused(void **state)
{
    (void)state;
    static const int32_t OTHERS[] = {-1, 7, 99, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        const int32_t x = OTHERS[i];
        char number[16];
        snprintf(number, sizeof number, "%d", x);
        make_valid(TARE_KIND_ESTIMATOR);
        param.type = x;
        refused("parameter key has the unknown type", number, x);
        make_valid(TARE_KIND_ESTIMATOR);
        want.axis = x;
        refused("want \"finish\" has the unknown axis", number, x);
        make_valid(TARE_KIND_ESTIMATOR);
        want.type = x == 7 ? 8 : x;
        snprintf(number, sizeof number, "type %d", want.type);
        refused("want \"finish\" has the unknown axis", number, x);
        make_valid(TARE_KIND_ESTIMATOR);
        descriptor.calls = (uint32_t)x;
        snprintf(number, sizeof number, "%u", descriptor.calls);
        refused("for calls", number, x);
    }
    make_valid(TARE_KIND_ESTIMATOR);
    param.type = 0; /* none */
    refused("parameter key has the unknown type", "0", 0);
    make_valid(TARE_KIND_ESTIMATOR);
    want.type = 0;
    refused("want \"finish\" has the unknown axis", "type 0", 0);
}

/* What a running plugin writes. */
static void numbers__of_verdicts_are_refused(void **state)
{
    (void)state;
    struct plugin *p;
    struct plugin_instance *i;
    const tare_value value = {.f = 1};
    const int64_t ticket = 1;
    uint8_t ticket_of = 0;
    const tare_waiting waiting = {.struct_size = sizeof waiting, .n = 1, .ticket = &ticket, .state = &ticket_of};
    const tare_completion completion = {.struct_size = sizeof completion};
    const tare_completion *completions[] = {&completion};
    tare_verdict verdict = {.struct_size = sizeof verdict}, *verdicts[] = {&verdict};
    static const int32_t CODES[] = {TARE_VERDICT_NONE, TARE_VERDICT_CRASHED, TARE_VERDICT_PARTIAL + 1, -1, INT32_MAX};
    make_valid(TARE_KIND_VERIFIER);
    assert_ok(validate(&p), &e);
    assert_ok(plugin_create(p, &value, 0, NULL, &i, &e), &e);
    for (size_t k = 0; k < sizeof CODES / sizeof *CODES; k++) {
        char part[64];
        verdict_code = CODES[k];
        snprintf(part, sizeof part, "verdict code %d", verdict_code);
        assert_int_equal(plugin_verify(i, completions, verdicts, 1, &e), TARE_E_PLUGIN);
        assert_non_null(strstr(e.message, part));
        assert_int_equal(plugin_take(i, &completion, 1, &verdict, &e), TARE_E_PLUGIN);
        assert_non_null(strstr(e.message, part));
    }
    verdict_code = TARE_VERDICT_CORRECT;
    for (int k = TARE_TICKET_DONE + 1; k < 256; k++) {
        char part[64];
        ticket_state = (uint8_t)k;
        snprintf(part, sizeof part, "unknown state %d", k);
        assert_int_equal(plugin_poll(i, &waiting, &e), TARE_E_PLUGIN);
        assert_non_null(strstr(e.message, part));
    }
    for (int bit = 3; bit < 32; bit++) {
        char part[64];
        uint32_t out;
        uses_bits = 1u << bit;
        snprintf(part, sizeof part, "the bits 0x%x", uses_bits);
        assert_int_equal(plugin_uses(p, &value, &out, &e), TARE_E_PLUGIN);
        assert_non_null(strstr(e.message, part));
    }
    plugin_destroy(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits__of_flags_are_refused), cmocka_unit_test(bits__of_tables_are_refused),
                                       cmocka_unit_test(numbers__of_descriptors_are_refused),
                                       cmocka_unit_test(numbers__of_verdicts_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
