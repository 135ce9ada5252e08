/* Writes one step's outcome as a JSON line. */
#include "estimate/estimate.h"

#include <math.h>

static tare_status add_number(struct str *out, double x, struct err *e)
{
    if (isnan(x)) return str_add(out, "null", -1, e);
    return str_addf(out, e, "%.17g", x);
}

static tare_status add_list(struct str *out, const double *x, int64_t n, struct err *e)
{
    TRY(str_add(out, "[", 1, e));
    for (int64_t i = 0; i < n; i++) {
        if (i) TRY(str_add(out, ",", 1, e));
        TRY(add_number(out, x[i], e));
    }
    return str_add(out, "]", 1, e);
}

static tare_status add_groups(struct str *out, const char *key, const struct batch *b, const double *x, struct err *e)
{
    TRY(str_addf(out, e, "\"%s\":[", key));
    for (int64_t m = 0; m < b->n_groups; m++) {
        if (m) TRY(str_add(out, ",", 1, e));
        TRY(add_list(out, x + b->group_begin[m], b->group_begin[m + 1] - b->group_begin[m], e));
    }
    return str_add(out, "],", 2, e);
}

static tare_status add_tokens(struct str *out, const struct batch *b, struct err *e)
{
    TRY(str_add(out, "\"token_advantages\":[", -1, e));
    for (int64_t m = 0; m < b->n_groups; m++) {
        TRY(str_add(out, m ? ",[" : "[", -1, e));
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) {
            TRY(str_add(out, i > b->group_begin[m] ? ",[" : "[", -1, e));
            for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++)
                TRY(str_addf(out, e, "%s%.9g", t > b->token_begin[i] ? "," : "", (double)b->token_advantage[t]));
            TRY(str_add(out, "]", 1, e));
        }
        TRY(str_add(out, "]", 1, e));
    }
    return str_add(out, "],", 2, e);
}

tare_status estimate_print(const struct estimator *est, const struct batch *b, struct str *out, struct err *e)
{
    bool weighted = false;
    for (int64_t i = 0; i < b->n_rollouts; i++) weighted = weighted || b->rollout_weight[i] != 1;
    TRY(str_add(out, "{", 1, e));
    TRY(add_groups(out, "advantages", b, b->advantage, e));
    if (b->token_advantage) TRY(add_tokens(out, b, e));
    if (weighted) TRY(add_groups(out, "rollout_weight", b, b->rollout_weight, e));
    if (estimate_metrics(est)->extra_groups)
        TRY(str_addf(out, e, "\"extra_groups\":%lld,", (long long)estimate_metrics(est)->extra_groups));
    TRY(str_add(out, "\"baseline\":", -1, e));
    TRY(add_list(out, b->baseline, b->n_groups, e));
    TRY(str_add(out, ",\"scale\":[", -1, e));
    for (int64_t m = 0; m < b->n_groups; m++) {
        if (m) TRY(str_add(out, ",", 1, e));
        TRY(add_number(out, isnan(b->scale[m]) ? 1 : b->scale[m], e));
    }
    TRY(str_add(out, "],\"confidence\":", -1, e));
    TRY(add_list(out, b->confidence, b->n_groups, e));
    TRY(str_add(out, ",\"state\":", -1, e));
    TRY(estimate_describe(est, out, e));
    return str_add(out, "}\n", 2, e);
}
