/* @NAME@: correct when the completion contains the answer.
 *
 * Replace this with your rule. A verdict is not a status: verify fails only when the call could
 * not be served at all. Long loops check deadline_ns. The text taken as the answer is written to
 * `extracted`, the reason to `note`; the host cuts both. Other fields of the row are in `row`, as
 * JSON (tare/json.h reads it). A verifier that does not read the answer says so with uses. */
#include <tare/sdk.h>

enum { P_REWARD, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_REWARD] = TARE_FLOAT_PARAM("reward", "1", "reward of a correct completion", TARE_NO_MIN, TARE_NO_MAX, 0),
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = (void *)(uintptr_t)setup->values; /* no state: the values live as long as the instance */
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static int contains(tare_text text, tare_text part)
{
    for (int64_t at = 0; part.size > 0 && at + part.size <= text.size; at++)
        if (!memcmp(text.data + at, part.data, (size_t)part.size)) return 1;
    return 0;
}

static tare_status verify(void *self, const tare_completion *const *completion, tare_verdict *const *out, int64_t n,
                          tare_error *error)
{
    const tare_value *v = self;
    (void)error;
    for (int64_t i = 0; i < n; i++) {
        const tare_text answer = completion[i]->answer, none = {NULL, 0};
        const int right = contains(completion[i]->text, answer);
        tare_status status = right ? tare_judge(out[i], TARE_VERDICT_CORRECT, v[P_REWARD].f, answer)
                                   : tare_judge(out[i], TARE_VERDICT_WRONG, 0, none);
        if (!status)
            status =
                tare_say(out[i]->note, right ? "the completion contains the answer" : "the completion does not contain the answer");
        if (status) return status;
    }
    return TARE_OK;
}

static const tare_verifier FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .flags = TARE_VERIFIER_REPEATS, .verify = verify};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_KIND_VERIFIER,
    .name = "@NAME@",
    .version = "0.1.0",
    .summary = "correct when the completion contains the answer",
    .license = "Apache-2.0",
    TARE_PARAMS(PARAMS, P_COUNT),
    .calls = TARE_CALLS_CONCURRENT, /* an instance changes nothing, so any thread may call it */
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
