/* A verifier for tests with process rewards: every line is a step, worth the number of letters
 * "a" in it, and the completion is worth the sum. A text that begins with "!" makes it break the
 * contract: "!back" gives steps in reverse order, "!far" one past the end, "!nan" a reward of
 * NaN, "!many" more steps than fit, "!abort" the end of the process. */
#include <tare/sdk.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    static int nothing;
    (void)setup, (void)error;
    *self = &nothing;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static int is(tare_text t, const char *word)
{
    return t.size == (int64_t)strlen(word) && !memcmp(t.data, word, (size_t)t.size);
}

static void break_contract(tare_text t, tare_verdict *v)
{
    if (is(t, "!abort")) abort();
    if (is(t, "!nan")) tare_add_segment(v, 1, (double)NAN);
    if (is(t, "!far")) tare_add_segment(v, t.size + 1, 1);
    if (is(t, "!many")) v->n_segments = v->segment_capacity + 1;
    if (is(t, "!back")) tare_add_segment(v, 2, 1), tare_add_segment(v, 2, 1);
}

static tare_status verify(void *self, const tare_completion *const *completion, tare_verdict *const *out, int64_t n,
                          tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = 0; i < n; i++) {
        const tare_text t = completion[i]->text;
        double all = 0, step = 0;
        for (int64_t k = 0; k < t.size; k++) {
            step += t.data[k] == 'a';
            if (t.data[k] != '\n' && k + 1 < t.size) continue;
            if (t.data[0] != '!') tare_add_segment(out[i], k + 1, step);
            all += step, step = 0;
        }
        break_contract(t, out[i]);
        out[i]->code = TARE_VERDICT_PARTIAL;
        out[i]->reward = all;
    }
    return TARE_OK;
}

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                        .flags = TARE_VERIFIER_GIVES_SEGMENTS | TARE_VERIFIER_REPEATS,
                                        .create = create,
                                        .destroy = destroy,
                                        .verify = verify};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_VERIFIER,
                                           .name = "steps",
                                           .version = "1.0.0",
                                           .summary = "letters a in each line",
                                           .license = "Apache-2.0",
                                           .calls = TARE_CALLS_CONCURRENT,
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
