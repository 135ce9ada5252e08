/* @NAME@: correct when the completion contains the answer.
 *
 * Replace this with your rule. A verdict is not a status: verify fails only when the call could not
 * be served at all. Check deadline_ns in long loops. The text taken as the answer goes into
 * `extracted`, cut to its capacity at a UTF-8 boundary. */
#include <string.h>
#include <tare/sdk.h>

enum { P_REWARD, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_REWARD] = {"reward", "1", "reward of a right completion", NULL, NULL, 0, 0, TARE_FLOAT, 0},
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

/* Returns the position of b's first occurrence in a, or -1. */
static int64_t find(tare_text a, tare_text b)
{
    for (int64_t at = 0; at + b.size <= a.size; at++)
        if (!memcmp(a.data + at, b.data, (size_t)b.size)) return at;
    return -1;
}

/* Copies text, at most capacity bytes, without ending inside a character. */
static void extract(tare_text text, tare_verdict *v)
{
    int64_t n = text.size < v->capacity ? text.size : v->capacity;
    while (n > 0 && n < text.size && ((unsigned char)text.data[n] & 0xc0) == 0x80) n--;
    if (n) memcpy(v->extracted, text.data, (size_t)n);
    v->size = n;
}

static tare_status verify(void *self, const tare_answer *const *answers, tare_verdict *const *verdicts, int64_t n, tare_error *error)
{
    const tare_value *values = self;
    (void)error;
    for (int64_t i = 0; i < n; i++) {
        const tare_text answer = answers[i]->answer;
        tare_verdict *v = verdicts[i];
        const int64_t at = answer.size ? find(answers[i]->completion, answer) : -1;
        v->code = at >= 0 ? TARE_CORRECT : TARE_WRONG;
        v->reward = at >= 0 ? values[P_REWARD].f : 0;
        v->reason = at >= 0 ? "the completion contains the answer" : "the completion does not contain the answer";
        extract(at >= 0 ? answer : (tare_text){"", 0}, v);
    }
    return TARE_OK;
}

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .verify = verify};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_VERIFIER,
    .name = "@NAME@",
    .version = "0.1.0",
    .summary = "right when the completion contains the answer",
    .license = "Apache-2.0",
    .params = PARAMS,
    .n_params = P_COUNT,
    .param_size = sizeof(tare_param),
    .threading = TARE_REENTRANT,
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(DESCRIPTOR)
