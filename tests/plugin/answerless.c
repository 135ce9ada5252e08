/* A verifier for tests that reads a row's answer only with its parameter `compare`: the reward
 * is 1 for a completion of at least `least` bytes. */
#include <tare/sdk.h>

#include <string.h>

enum { P_COMPARE, P_LEAST, N_PARAMS };
static const tare_param PARAMS[N_PARAMS] = {
    [P_COMPARE] = {.key = "compare", .type = TARE_BOOL, .fallback = "false", .doc = "the completion must equal the answer, too"},
    [P_LEAST] = {.key = "least", .type = TARE_INT, .fallback = "1", .max = 1000, .doc = "minimum number of bytes of a completion"},
};

static tare_status create(const tare_host *host, const tare_value *values, void **self, tare_error *error)
{
    (void)host, (void)error;
    *self = (void *)(uintptr_t)values;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status verify(void *self, const tare_answer *const *answers, tare_verdict *const *verdicts, int64_t n,
                          tare_error *error)
{
    const tare_value *p = self;
    (void)error;
    for (int64_t i = 0; i < n; i++) {
        const tare_text said = answers[i]->completion, gold = answers[i]->answer;
        const int equal = said.size == gold.size && (!said.size || !memcmp(said.data, gold.data, (size_t)said.size));
        const int right = said.size >= p[P_LEAST].i && (equal || !p[P_COMPARE].i);
        verdicts[i]->code = right ? TARE_CORRECT : TARE_WRONG;
        verdicts[i]->reward = right;
    }
    return TARE_OK;
}

static uint32_t uses(const tare_value *values)
{
    return values[P_COMPARE].i ? TARE_USES_ANSWER : 0;
}

static const tare_verifier FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .verify = verify, .uses = uses};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_VERIFIER,
                                           .name = "answerless",
                                           .version = "1.0.0",
                                           .summary = "long enough",
                                           .license = "Apache-2.0",
                                           .params = PARAMS,
                                           .n_params = N_PARAMS,
                                           .param_size = sizeof(tare_param),
                                           .threading = TARE_REENTRANT,
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(DESCRIPTOR)
