/* A verifier for tests that reads a row's answer only with its parameter `compare`: the reward
 * is 1 for a completion of at least `least` bytes. */
#include <tare/sdk.h>

#include <string.h>

enum { P_COMPARE, P_LEAST, N_PARAMS };
static const tare_param PARAMS[N_PARAMS] = {
    [P_COMPARE] = TARE_BOOL_PARAM("compare", "false", "the completion must equal the answer, too", 0),
    [P_LEAST] = TARE_INT_PARAM("least", "1", "minimum number of bytes of a completion", 0, 1000, 0),
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

static tare_status verify(void *self, const tare_completion *const *completions, tare_verdict *const *verdicts, int64_t n,
                          tare_error *error)
{
    const tare_value *p = self;
    (void)error;
    for (int64_t i = 0; i < n; i++) {
        const tare_text said = completions[i]->text, gold = completions[i]->answer;
        const int equal = said.size == gold.size && (!said.size || !memcmp(said.data, gold.data, (size_t)said.size));
        const int right = said.size >= p[P_LEAST].i && (equal || !p[P_COMPARE].i);
        verdicts[i]->code = right ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
        verdicts[i]->reward = right;
    }
    return TARE_OK;
}

static uint32_t uses(const tare_value *values)
{
    return values[P_COMPARE].i ? TARE_USES_ANSWER : 0;
}

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                        .flags = TARE_VERIFIER_REPEATS,
                                        .create = create,
                                        .destroy = destroy,
                                        .verify = verify,
                                        .uses = uses};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_VERIFIER,
                                           .name = "answerless",
                                           .version = "1.0.0",
                                           .summary = "long enough",
                                           .license = "Apache-2.0",
                                           TARE_PARAMS(PARAMS, N_PARAMS),
                                           .calls = TARE_CALLS_CONCURRENT,
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
