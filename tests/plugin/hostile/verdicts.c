/* A verifier that breaks the contract as the completion tells it to. */
#include <tare/sdk.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static tare_status create(const tare_host *host, const tare_value *values, void **self, tare_error *error)
{
    (void)host, (void)values, (void)error;
    *self = NULL;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static int asks(const tare_answer *a, const char *what)
{
    return a->completion.size == (int64_t)strlen(what) && !memcmp(a->completion.data, what, strlen(what));
}

static tare_status verify(void *self, const tare_answer *const *answers, tare_verdict *const *verdicts, int64_t n,
                          tare_error *error)
{
    (void)self;
    for (int64_t i = 0; i < n; i++) {
        tare_verdict *v = verdicts[i];
        if (asks(answers[i], "fail")) return tare_fail(error, TARE_E_IO, "answer %lld: the judge is out", (long long)i);
        if (asks(answers[i], "nothing")) continue;
        if (asks(answers[i], "abort")) abort();
        for (volatile int turns = 0; asks(answers[i], "hang");) turns = 1 - turns;
        v->code = asks(answers[i], "crashed") ? TARE_CRASHED : asks(answers[i], "code") ? 99 : TARE_CORRECT;
        v->reward = asks(answers[i], "nan") ? NAN : 1;
        if (asks(answers[i], "long")) v->size = v->capacity + 1;
    }
    return TARE_OK;
}

static const tare_verifier FUNCTIONS = {sizeof FUNCTIONS, 0, create, destroy, verify, NULL};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_VERIFIER,
                                           .name = "verdicts",
                                           .version = "0.1.0",
                                           .summary = "a fixture of the tests",
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(DESCRIPTOR)
