/* An estimator for tests that asks for every column of ABI 1.2. An advantage is a sum in which
 * each column has its own digits, so that a test sees which one is wrong. It refuses a batch
 * whose columns do not fit together. */
#include <tare/sdk.h>

enum {
    NEEDS = TARE_NEED_FINISH | TARE_NEED_ROW | TARE_NEED_COMPLETION | TARE_NEED_TOKEN_ID | TARE_NEED_VERDICTS |
            TARE_NEED_OFF_POLICY | TARE_NEED_POLICY_VERSION
};

static tare_status create(const tare_host *host, const tare_value *values, int64_t n_clusters, void **self, tare_error *error)
{
    static int nothing;
    (void)host, (void)values, (void)n_clusters, (void)error;
    *self = &nothing;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status consistent(const tare_batch *b, int64_t m, int64_t i, tare_error *error)
{
    if (b->row[m].size < 2 || b->row[m].data[0] != '{')
        return tare_fail(error, TARE_E_INVALID, "group %lld has no row", (long long)m);
    if (b->n_components && b->component_verdict[i * b->n_components] != b->verdict[i])
        return tare_fail(error, TARE_E_INVALID, "rollout %lld: the first verifier's verdict is not the verdict", (long long)i);
    if (b->off_policy[i] ? b->policy_version[i] != -1 : b->policy_version[i] < 0)
        return tare_fail(error, TARE_E_INVALID, "rollout %lld: version %lld", (long long)i, (long long)b->policy_version[i]);
    return TARE_OK;
}

static double digits(const tare_batch *b, int64_t m, int64_t i)
{
    double ids = 0, verdicts = 0;
    for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) ids += b->token_id[t];
    for (int64_t c = 0; c < b->n_components; c++) verdicts += b->component_verdict[i * b->n_components + c];
    return b->finish[i] + 10 * b->off_policy[i] + 100 * (double)(b->policy_version[i] + 2) +
           1e3 * (double)(b->row[m].size + b->completion[i].size) + 1e6 * ids + 1e8 * verdicts;
}

static tare_status compute(const void *self, const tare_batch *b, const double *prepared, tare_advantages *out, tare_error *error)
{
    (void)self, (void)prepared;
    for (int64_t m = 0; m < b->n_groups; m++) {
        out->baseline[m] = out->confidence[m] = 0;
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) {
            const tare_status status = consistent(b, m, i, error);
            if (status) return status;
            out->advantage[i] = digits(b, m, i);
        }
    }
    return TARE_OK;
}

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .compute = compute};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_ESTIMATOR,
                                           .name = "facts",
                                           .version = "1.0.0",
                                           .summary = "sums of a rollout's columns",
                                           .license = "Apache-2.0",
                                           .param_size = sizeof(tare_param),
                                           .needs = NEEDS,
                                           .functions = &FUNCTIONS};
#if CASE_FACTS_OF_BEFORE
TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 1)
#else
TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 2)
#endif
