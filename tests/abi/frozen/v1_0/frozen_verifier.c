/* frozen_verifier: right when the completion contains the answer.
 */
#include <string.h>
#include <tare/sdk.h>

enum { P_REWARD, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_REWARD] = TARE_FLOAT_PARAM("reward", "1", "reward of a right completion", TARE_NO_MIN, TARE_NO_MAX, 0),
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = (void *)(uintptr_t)setup->values;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

/* Returns where b is first found in a, or -1. */
static int64_t find(tare_text a, tare_text b)
{
    for (int64_t at = 0; at + b.size <= a.size; at++)
        if (!memcmp(a.data + at, b.data, (size_t)b.size)) return at;
    return -1;
}

static tare_status verify(void *self, const tare_completion *const *completion, tare_verdict *const *out, int64_t n,
                          tare_error *error)
{
    const tare_value *values = self;
    (void)error;
    for (int64_t i = 0; i < n; i++) {
        const tare_text answer = completion[i]->answer;
        const int64_t at = answer.size ? find(completion[i]->text, answer) : -1;
        tare_status status = tare_judge(out[i], at >= 0 ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG,
                                        at >= 0 ? values[P_REWARD].f : 0, at >= 0 ? answer : (tare_text){"", 0});
        if (!status)
            status = tare_say(out[i]->note, at >= 0 ? "the answer is in the completion" : "the answer is not in the completion");
        if (status) return status;
    }
    return TARE_OK;
}

static const tare_verifier FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS, .flags = TARE_VERIFIER_REPEATS, .create = create, .destroy = destroy, .verify = verify};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_KIND_VERIFIER,
    .name = "frozen_verifier",
    .version = "0.1.0",
    .summary = "right when the completion contains the answer",
    .license = "Apache-2.0",
    TARE_PARAMS(PARAMS, P_COUNT),
    .calls = TARE_CALLS_CONCURRENT,
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
