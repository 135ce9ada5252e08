/* An estimator for tests that wants the columns of rollouts, rows and tokens. An advantage is a sum in
 * which each column has its own digits, so that a test sees which one is wrong. It refuses a batch
 * whose columns do not fit together. */
#include <tare/sdk.h>

enum { W_FINISH, W_ROW, W_COMPLETION, W_TOKEN, W_VERDICT, W_VERDICTS, W_OFF_POLICY, W_VERSION, N_WANTS };
static const tare_want WANTS[N_WANTS] = {
    [W_FINISH] = {.name = "finish", .axis = TARE_AXIS_ROLLOUT, .type = TARE_U8, .width = 1},
    [W_ROW] = {.name = "row.json", .axis = TARE_AXIS_GROUP, .type = TARE_TEXT, .width = 1},
    [W_COMPLETION] = {.name = "completion", .axis = TARE_AXIS_ROLLOUT, .type = TARE_TEXT, .width = 1},
    [W_TOKEN] = {.name = "token", .axis = TARE_AXIS_TOKEN, .type = TARE_I32, .width = 1},
    [W_VERDICT] = {.name = "verdict", .axis = TARE_AXIS_ROLLOUT, .type = TARE_I32, .width = 1},
    [W_VERDICTS] = {.name = "component.verdict", .axis = TARE_AXIS_ROLLOUT, .type = TARE_I32},
    [W_OFF_POLICY] = {.name = "off_policy", .axis = TARE_AXIS_ROLLOUT, .type = TARE_U8, .width = 1},
    [W_VERSION] = {.name = "policy_version", .axis = TARE_AXIS_ROLLOUT, .type = TARE_I64, .width = 1},
};

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

static tare_status consistent(const tare_batch *b, int64_t m, int64_t i, tare_error *error)
{
    const tare_text row = TARE_COLUMN(b, W_ROW, tare_text)[m];
    const int32_t *verdicts = TARE_COLUMN(b, W_VERDICTS, int32_t);
    const int64_t components = b->column[W_VERDICTS].width, version = TARE_COLUMN(b, W_VERSION, int64_t)[i];
    if (row.size < 2 || row.data[0] != '{') return tare_fail(error, TARE_E_INVALID, "group %lld has no row", (long long)m);
    if (components && verdicts[i * components] != TARE_COLUMN(b, W_VERDICT, int32_t)[i])
        return tare_fail(error, TARE_E_INVALID, "rollout %lld: the first verifier's verdict is not the verdict", (long long)i);
    if (TARE_COLUMN(b, W_OFF_POLICY, uint8_t)[i] ? version != -1 : version < 0)
        return tare_fail(error, TARE_E_INVALID, "rollout %lld: version %lld", (long long)i, (long long)version);
    return TARE_OK;
}

static double digits(const tare_batch *b, int64_t m, int64_t i)
{
    const int64_t components = b->column[W_VERDICTS].width;
    double ids = 0, verdicts = 0;
    for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++)
        if (b->sampled[t]) ids += TARE_COLUMN(b, W_TOKEN, int32_t)[t];
    for (int64_t c = 0; c < components; c++) verdicts += TARE_COLUMN(b, W_VERDICTS, int32_t)[i * components + c];
    return TARE_COLUMN(b, W_FINISH, uint8_t)[i] + 10 * TARE_COLUMN(b, W_OFF_POLICY, uint8_t)[i] +
           100 * (double)(TARE_COLUMN(b, W_VERSION, int64_t)[i] + 2) +
           1e3 * (double)(TARE_COLUMN(b, W_ROW, tare_text)[m].size + TARE_COLUMN(b, W_COMPLETION, tare_text)[i].size) + 1e6 * ids +
           1e8 * verdicts;
}

static tare_status compute(const void *self, const tare_batch *b, const double *prepared, tare_advantages *out, tare_error *error)
{
    (void)self, (void)prepared;
    for (int64_t m = 0; m < b->n_groups; m++) {
        out->baseline[m] = 0;
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
                                           .kind = TARE_KIND_ESTIMATOR,
                                           .name = "facts",
                                           .version = "1.0.0",
                                           .summary = "sums of a rollout's columns",
                                           .license = "Apache-2.0",
                                           TARE_WANTS(WANTS, N_WANTS),
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
