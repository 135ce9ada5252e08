/* Estimators for tests of context tokens, which are not the policy's: CASE is skips_context (the
 * right one), counts_context (divides by all tokens), reads_context (sums all logprobs) or
 * spreads_context (gives context tokens a share of the advantage). */
#include <tare/sdk.h>

enum { skips_context, counts_context, reads_context, spreads_context };

enum { W_LOGPROB, N_WANTS };
static const tare_want WANTS[N_WANTS] = {
    [W_LOGPROB] = {.name = "logprob", .axis = TARE_AXIS_TOKEN, .type = TARE_F32, .width = 1},
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

/* Computes A[i] = reward + mean logprob of the rollout's tokens. */
static tare_status compute(const void *self, const tare_batch *b, const double *prepared, tare_advantages *out, tare_error *error)
{
    const float *logprob = TARE_COLUMN(b, W_LOGPROB, float);
    (void)self, (void)prepared, (void)error;
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        const int64_t begin = b->token_begin[i], end = b->token_begin[i + 1];
        const int64_t length = CASE == counts_context ? end - begin : b->length[i];
        double sum = 0, share = b->reward[i];
        for (int64_t t = begin; t < end; t++)
            if (b->sampled[t] || CASE == reads_context) sum += (double)logprob[t];
        out->advantage[i] = b->reward[i] + sum / (double)length;
        for (int64_t t = begin; t < end; t++) {
            if (!b->sampled[t] && CASE != spreads_context) continue;
            out->token_advantage[t] = (float)(share /= 2);
        }
    }
    return TARE_OK;
}

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                         .flags = TARE_ESTIMATOR_GIVES_TOKENS,
                                         .create = create,
                                         .destroy = destroy,
                                         .compute = compute};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_ESTIMATOR,
                                           .name = "context",
                                           .version = "1.0.0",
                                           .summary = "rewards and mean logprobs",
                                           .license = "Apache-2.0",
                                           TARE_WANTS(WANTS, N_WANTS),
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
