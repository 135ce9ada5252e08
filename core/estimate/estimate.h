/* Rewards to advantages, through an estimator plugin: the phases prepare, compute, collect before the policy step, apply after it.
 *
 *   TRY(estimate_open(&options, &est, e));
 *   each step:  TRY(estimate_run(est, batch, arena, e));  ...update the policy...  TRY(estimate_apply(est, step, e));
 *
 * prepare and collect are called once a group; the groups' vectors are added in global prompt order, in double. On several ranks each
 * rank has the whole batch (dist/deal.h) and makes the same sums, so they have the same bits for every number of ranks. Not thread-safe.
 *
 * A rollout that some verifier did not judge (verdict timeout or crashed) has no reward, and the plugin is not shown it, nor a group without any
 * other: its advantage and its weight in the loss are 0. The same holds of those that the curriculum left out (batch column fate); the weight of
 * those that it only counts is 0.
 *
 * Groups that leave the step (dynamic sampling) are gone for the loss, and still count in the sums and records, after those that stayed and in
 * the order in which they left: what was seen of a prompt does not depend on whether it was learnt from.
 *
 * A plugin that took the extension tare.logprob/1 collects in estimate_apply: for it the batch's arrays have to live until then.
 * It is not shown the groups that left, whose new logprobs nobody computes. */
#ifndef TARE_CORE_ESTIMATE_ESTIMATE_H
#define TARE_CORE_ESTIMATE_ESTIMATE_H

#include "base/json.h"
#include "batch/batch.h"
#include "plugin/plugin.h"

struct estimator;

struct estimate_options {
    const char *plugin;                  /* name or file */
    const struct plugin_search *search;  /* or NULL */
    const struct config_param *settings; /* config.params, or NULL */
    int64_t n_clusters;                  /* K of the run's codebook; 0: none */
    struct plugin_env env;               /* env.metric gets the metrics below, and the plugin's own */
};

/* Of the last estimate_run. Also given to env.metric. */
struct estimate_metrics {
    double
        effective_signal_ratio; /* estimator/effective_signal_ratio: share of groups with scale > 1e-6; without a scale: any |A| > 1e-6 */
    double nonzero_advantage_ratio; /* estimator/nonzero_advantage_ratio: share of groups with any |A| > 1e-6 */
    double confidence_mean;         /* estimator/confidence_mean */
    double advantage_max;           /* estimator/advantage_max: largest |A| */
    int64_t refill_groups;          /* how many groups the plugin wants sampled in addition */
};

tare_status estimate_open(const struct estimate_options *o, struct estimator **out, struct err *e);
void estimate_free(struct estimator *est); /* NULL: nothing */
void estimate_free_at(struct estimator **est);
/* TARE_NEED_... and TARE_GIVES_TOKENS: which columns of the batch estimate_run needs. */
uint32_t estimate_needs(const struct estimator *est);
const struct plugin *estimate_plugin(const struct estimator *est);
/* Refuses a row (the text of a JSON object) of which the estimator reads a field as a number that is none. where: "file:line". seen: 0 before the
 * first row; which fields some row has. */
tare_status estimate_check_row(const struct estimator *est, tare_text row, const char *where, uint64_t *seen, struct err *e);
/* After the last row: refuses a field that none of them has. data: what they are rows of. */
tare_status estimate_check_seen(const struct estimator *est, uint64_t seen, const char *data, struct err *e);

/* Fills advantage, rollout_weight, baseline, scale, confidence and token_advantage (NULL where the plugin gives none) of the batch, in the
 * arena. The state is not changed. Errors: a reward that is not finite, a cluster that the codebook does not have, a missing column, an output that was not written or is not
 * finite, a write outside of the buffers: with plugin, phase, group and rollout. */
tare_status estimate_run(struct estimator *est, struct batch *batch, struct arena *arena, struct err *e);
/* Forgets what left: a step begins. */
void estimate_begin(struct estimator *est);
/* Before the next estimate_run of the step: these groups leave. */
tare_status estimate_left(struct estimator *est, const struct batch *groups, struct arena *arena, struct err *e);
const struct estimate_metrics *estimate_metrics(const struct estimator *est);
/* After the policy step: the only change of state. TARE_E_STATE when estimate_run did not come before. */
tare_status estimate_apply(struct estimator *est, int64_t step, struct err *e);

/* The plugin's state, framed (plugin.h): for checkpoints, and before a step for a replay. Between run and apply: as before the step. */
tare_status estimate_save(const struct estimator *est, struct str *out, struct err *e);
tare_status estimate_load(struct estimator *est, const void *data, int64_t n, const char *where, struct err *e);
/* The state as one JSON object, appended. */
tare_status estimate_describe(const struct estimator *est, struct str *out, struct err *e);

/* {"groups":[{"cluster":0,"rewards":[...]}]} -> a batch in the arena. A group may have "uid", "lengths" (tokens of each rollout, 1 when
 * absent), "components" [[C] of each rollout], "entropy", "logprob", "ref_logprob" [[tokens] of each rollout]; and what only some
 * estimators need: "row" (an object), "finish", "completions", "ids", "verdicts", "component_verdicts", "off_policy",
 * "policy_version", "segments", "segment_rewards" [of each rollout]. */
tare_status estimate_parse(const json_t *object, const char *where, struct arena *arena, struct batch *out, struct err *e);

/* The step's outcome and the state as it is now, as one JSON line: {"advantages":[[...]],"baseline":[...],"scale":[...],
 * "confidence":[...],"state":{...}}. scale is 1 for an estimator that divides by nothing. Only where there are such: "rollout_weight",
 * "token_advantages", "refill_groups". */
tare_status estimate_print(const struct estimator *est, const struct batch *b, struct str *out, struct err *e);

#endif
