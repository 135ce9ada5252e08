/* A verifier that breaks the contract in the way that the completion, or the parameter `always`,
 * names. */
#include <tare/sdk.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const tare_param PARAMS[] = {{"always", "", "action of every call", NULL, NULL, 0, 0, TARE_STRING, 0}};
static const char *always = "";

static tare_status create(const tare_host *host, const tare_value *values, void **self, tare_error *error)
{
    (void)host, (void)error;
    *self = NULL;
    always = values[0].s;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static int asks(const tare_answer *a, const char *what)
{
    if (!strcmp(always, what)) return 1;
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
        static int *volatile nowhere;
        if (asks(answers[i], "segfault")) *nowhere = 1;
        if (asks(answers[i], "exit")) exit(0);
        if (asks(answers[i], "print")) {
            char line[8];
            puts("{\"id\":\"printed\"}");
            fflush(stdout);
            /* It must not read the engine's requests. */
            if (read(STDIN_FILENO, line, sizeof line) > 0) abort();
            if (write(STDIN_FILENO, "nonsense", 8) > 0) fputs("this is never read\n", stderr);
        }
        for (volatile int turns = 0; asks(answers[i], "hang");) turns = 1 - turns;
        v->code = asks(answers[i], "crashed") ? TARE_CRASHED : asks(answers[i], "code") ? 99 : TARE_CORRECT;
        v->reward = asks(answers[i], "nan") ? NAN : 1;
        if (asks(answers[i], "long")) v->size = v->capacity + 1;
    }
    return TARE_OK;
}

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .verify = verify};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_VERIFIER,
                                           .name = "verdicts",
                                           .version = "0.1.0",
                                           .summary = "a fixture of the tests",
                                           .params = PARAMS,
                                           .n_params = 1,
                                           .param_size = sizeof(tare_param),
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(DESCRIPTOR)
