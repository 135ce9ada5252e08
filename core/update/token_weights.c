#include "update/token_weights.h"

#include "batch/turns.h"

tare_status token_weights(const struct batch *b, const struct loss_config *c, const struct minibatch *part, double *weight,
                          struct err *e)
{
    const int64_t *groups = part->groups, n = part->n;
    double m = 0, rows = 0, tokens = 0;
    for (int64_t g = 0; g < n; g++) {
        double in_group = 0;
        for (int64_t i = b->group_begin[groups[g]]; i < b->group_begin[groups[g] + 1]; i++) {
            in_group += b->rollout_weight[i];
            tokens += b->rollout_weight[i] * (double)batch_length(b, i);
        }
        rows += in_group;
        m += in_group > 0;
    }
    for (int64_t g = 0; g < n; g++) {
        double in_group = 0;
        for (int64_t i = b->group_begin[groups[g]]; i < b->group_begin[groups[g] + 1]; i++) in_group += b->rollout_weight[i];
        for (int64_t i = b->group_begin[groups[g]]; i < b->group_begin[groups[g] + 1]; i++) {
            const double count = (double)batch_length(b, i);
            if (!(count > 0)) FAIL(e, TARE_E_INVALID, "rollout %lld has no sampled token", (long long)i);
            double w = b->rollout_weight[i];
            if (w > 0) {
                if (c->aggregation == AGGREGATE_TOKEN)
                    w /= tokens;
                else if (c->aggregation == AGGREGATE_CONSTANT)
                    w /= rows * (double)(c->aggregation_length ? c->aggregation_length : part->length);
                else
                    w /= count * in_group * m;
            }
            for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) weight[t] = batch_is_sampled(b, t) ? w : 0;
        }
    }
    return TARE_OK;
}
