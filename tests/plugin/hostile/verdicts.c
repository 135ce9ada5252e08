/* A verifier that breaks the contract in the way that the completion, or the parameter `always`,
 * names. */
#include <tare/sdk.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const tare_param PARAMS[] = {TARE_STRING_PARAM("always", "", "action of every call", 0)};
static const char *always = "";

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = NULL;
    always = setup->values[0].s;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static int asks(const tare_completion *a, const char *what)
{
    if (!strcmp(always, what)) return 1;
    return a->text.size == (int64_t)strlen(what) && !memcmp(a->text.data, what, strlen(what));
}

/* Answers in the worker's place, as a fork of it does: a failure without a message. */
static void forge(void)
{
    const int64_t reply[] = {16, 5, 0};
    for (int fd = 3; fd < 64; fd++) {
        struct stat s;
        if (!fstat(fd, &s) && S_ISSOCK(s.st_mode) && write(fd, reply, sizeof reply) < 0) perror("write");
    }
    _exit(0);
}

static tare_status verify(void *self, const tare_completion *const *completions, tare_verdict *const *verdicts, int64_t n,
                          tare_error *error)
{
    (void)self;
    for (int64_t i = 0; i < n; i++) {
        tare_verdict *v = verdicts[i];
        if (asks(completions[i], "fail")) return tare_fail(error, TARE_E_IO, "completion %lld: the judge is out", (long long)i);
        if (asks(completions[i], "nothing")) continue;
        if (asks(completions[i], "abort")) abort();
        static int *volatile nowhere;
        if (asks(completions[i], "segfault")) *nowhere = 1;
        if (asks(completions[i], "exit")) exit(0);
        if (asks(completions[i], "forge")) forge();
        if (asks(completions[i], "print")) {
            char line[8];
            puts("{\"id\":\"printed\"}");
            fflush(stdout);
            /* It must not read the engine's requests. */
            if (read(STDIN_FILENO, line, sizeof line) > 0) abort();
            if (write(STDIN_FILENO, "nonsense", 8) > 0) fputs("this is never read\n", stderr);
        }
        for (volatile int turns = 0; asks(completions[i], "hang");) turns = 1 - turns;
        v->code = asks(completions[i], "crashed") ? TARE_VERDICT_CRASHED : asks(completions[i], "code") ? 99 : TARE_VERDICT_CORRECT;
        v->reward = asks(completions[i], "nan") ? NAN : 1;
        for (int k = 0; asks(completions[i], "long") && k < 1000; k++) tare_say(v->extracted, "more than anyone wants ");
    }
    return TARE_OK;
}

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .verify = verify};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_VERIFIER,
                                           .name = "verdicts",
                                           .version = "0.1.0",
                                           .summary = "a fixture of the tests",
                                           TARE_PARAMS(PARAMS, 1),
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
