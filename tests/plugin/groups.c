/* A verifier for tests that compares completions: the reward of a rollout is the share of its
 * group with a different text (diversity). It refuses a call whose completions are not ordered by
 * group, and reports their number. On the completion "abort" it aborts. */
#include <tare/sdk.h>

#include <stdlib.h>
#include <string.h>

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = (void *)(uintptr_t)setup->host;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static int same(tare_text a, tare_text b)
{
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, (size_t)a.size));
}

/* The group of completion i is first .. end-1. */
static tare_status group_of(const tare_completion *const *completions, int64_t n, int64_t i, int64_t *end, tare_error *error)
{
    for (*end = i; *end < n && completions[*end]->group == completions[i]->group; ++*end) {
        const tare_completion *a = completions[*end];
        if (a->prompt_uid != completions[i]->prompt_uid)
            return tare_fail(error, TARE_E_INVALID, "completion %lld belongs to another prompt", (long long)*end);
        if (a->index != *end - i || a->n_tokens < 1 || (a->finish != TARE_FINISH_STOP && a->finish != TARE_FINISH_LENGTH))
            return tare_fail(error, TARE_E_INVALID, "completion %lld: index %lld, %lld tokens, finish %d", (long long)*end,
                             (long long)a->index, (long long)a->n_tokens, a->finish);
        if (a->text.size == 5 && !memcmp(a->text.data, "abort", 5)) abort();
    }
    return TARE_OK;
}

static tare_status verify(void *self, const tare_completion *const *completions, tare_verdict *const *verdicts, int64_t n,
                          tare_error *error)
{
    const tare_host *host = self;
    for (int64_t first = 0, end; first < n; first = end) {
        const tare_status status = group_of(completions, n, first, &end, error);
        if (status) return status;
        for (int64_t i = first; i < end; i++) {
            int64_t others = 0;
            for (int64_t k = first; k < end; k++) others += !same(completions[i]->text, completions[k]->text);
            verdicts[i]->code = TARE_VERDICT_PARTIAL;
            verdicts[i]->reward = (double)others / (double)(end - first);
        }
    }
    host->metric(host->ctx, "answers_at_once", (double)n, TARE_METRIC_MAX);
    return TARE_OK;
}

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                        .flags = TARE_VERIFIER_TOGETHER | TARE_VERIFIER_REPEATS,
                                        .create = create,
                                        .destroy = destroy,
                                        .verify = verify};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_VERIFIER,
                                           .name = "groups",
                                           .version = "1.0.0",
                                           .summary = "differences within a group",
                                           .license = "Apache-2.0",
                                           .calls = TARE_CALLS_CONCURRENT,
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
