/* Verifiers that break the contract, each in one way: compiled once for each CASE
 * (tests/plugin/fixtures.cmake). CASE good_verifier breaks nothing: it compares the contents of
 * \\boxed{}, or the whole text. */
#include <tare/sdk.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum cases {
    good_verifier,
    first_verdict_only,
    depends_on_neighbours,
    drops_status,
    verdict_by_wishes,
    judges_by_call,
    shares_buffer,
    dies_of_row,
    explains_nothing,
    explains_half,
    ignores_deadline,
    overflows,
    names_no_answer,
    uses_by_call,
    unknown_uses
};
#define IS(X) (CASE == X)

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

static tare_text answer_in(tare_text t)
{
    static const char OPEN[] = "\\boxed{";
    for (int64_t i = 0; i + (int64_t)sizeof OPEN <= t.size; i++) {
        if (memcmp(t.data + i, OPEN, sizeof OPEN - 1)) continue;
        const char *from = t.data + i + sizeof OPEN - 1, *end = memchr(from, '}', (size_t)(t.data + t.size - from));
        return end ? (tare_text){from, end - from} : t;
    }
    return t;
}

static tare_status judge(const tare_completion *a, tare_verdict *v)
{
    static int calls;
    static char shared[64];
    const tare_text got = answer_in(a->text);
    int right = got.size == a->answer.size && !memcmp(got.data, a->answer.data, (size_t)got.size);
    if (IS(shares_buffer)) { /* like an instance for several threads */
        const size_t n = (size_t)(got.size < 63 ? got.size : 63);
        memcpy(shared, got.data, n);
        shared[n] = 0;
        sched_yield();
        right = strlen(shared) == (size_t)a->answer.size && !memcmp(shared, a->answer.data, (size_t)a->answer.size);
    }
    if (IS(judges_by_call)) right = ++calls % 7 != 0;
    if (IS(verdict_by_wishes) && !v->extracted) right = 0;
    if (IS(dies_of_row) && a->row.size > 1 && a->row.data[a->row.size - 1] != '}') abort();
    v->code = right ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
    v->reward = right;
    if (IS(overflows)) v->reward = (double)((a->text.size + a->index) % 2); /* a signal in nearly every group */
    if (IS(overflows) && a->answer.size == 4 && !a->index && !memcmp(a->answer.data, "huge", 4)) v->reward = 1e60;
    if (IS(overflows) && a->answer.size == 4 && !a->index && !memcmp(a->answer.data, "high", 4)) v->reward = 1e4;
    const tare_status status = got.size ? tare_put(v->extracted, got.data, got.size) : TARE_OK;
    return IS(drops_status) ? TARE_OK : status;
}

static tare_status verify(void *self, const tare_completion *const *completions, tare_verdict *const *verdicts, int64_t n,
                          tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = 0; i < (IS(first_verdict_only) && n > 1 ? 1 : n); i++) {
        const tare_status status = judge(completions[i], verdicts[i]);
        if (status) return status;
        if (IS(depends_on_neighbours) && i) verdicts[i]->reward = verdicts[0]->reward;
        if (IS(ignores_deadline) && completions[i]->text.size > 1 << 16) /* Longer than the checker waits, on any processor. */
            for (volatile int64_t k = 0; k < 40000000000; k++) continue;
    }
    return TARE_OK;
}

static tare_status explain(void *self, const tare_completion *completion, const tare_stream *out, tare_error *error)
{
    (void)self, (void)error;
    if (IS(explains_nothing)) return TARE_OK;
    return IS(explains_half) ? tare_print(out, "{\"bytes\":")
                             : tare_print(out, "{\"bytes\":%lld}", (long long)completion->text.size);
}

static uint32_t uses(const tare_value *values)
{
    static uint32_t calls;
    (void)values;
    if (IS(names_no_answer)) return 0;
    if (IS(uses_by_call)) return calls++ % 2 ? 0 : TARE_USES_ANSWER;
    return IS(unknown_uses) ? 1u << 20 : TARE_USES_ANSWER;
}

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                        .flags = TARE_VERIFIER_REPEATS,
                                        .create = create,
                                        .destroy = destroy,
                                        .verify = verify,
                                        .explain = explain,
                                        .uses = uses};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_VERIFIER,
                                           .name = "hostile",
                                           .version = "1.0.0",
                                           .summary = "a fixture of the tests",
                                           .calls = TARE_CALLS_CONCURRENT,
                                           .functions = &FUNCTIONS};

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
