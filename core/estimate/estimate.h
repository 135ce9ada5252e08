/* Turns rewards into advantages through an estimator plugin: the phases prepare, compute and
 * collect before the policy step, apply after it.
 *
 *   TRY(estimate_open(&options, &est, e));
 *   each step:  TRY(estimate_run(est, batch, arena, e));
 *               ...update the policy...
 *               TRY(estimate_apply(est, &update, e));
 *
 * prepare and collect are called once for each group; the groups' vectors are added in global
 * prompt order, in double. On several ranks each rank has the whole batch (dist/deal.h) and
 * computes the same sums, so they are bit-identical for every number of ranks. Not thread-safe.
 *
 * A rollout without a verdict from some verifier (verdict timeout or crashed) has no reward. The
 * plugin is not shown it, nor a group without any other rollout: its advantage and its weight in
 * the loss are 0. The same applies to rollouts that the curriculum left out (batch column fate).
 * The weight of rollouts that it only counts is 0.
 *
 * Groups that are dropped from the step (dynamic sampling) do not enter the loss, but still count
 * in the sums and records, after the remaining groups and in the order in which they were dropped:
 * the statistics of a prompt do not depend on whether the policy learns from it.
 *
 * A plugin that wants the column updated_logprob collects in estimate_apply, so the batch's arrays
 * must live until then. It is not shown the dropped groups, whose new logprobs are not computed. */
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
    int64_t n_clusters;                  /* K of the run's codebook; 0: no codebook */
    /* [n_components] of the batches; lives as long as the estimator. NULL: unknown. */
    const tare_text *component_name;
    /* env.metric gets the metrics below and the plugin's own */
    struct plugin_env env;
};

/* Metrics of the last estimate_run. They are also given to env.metric. */
struct estimate_metrics {
    /* estimator/effective_signal_ratio: the share of groups with scale > 1e-6, or, without a scale,
     * with any |A| > 1e-6. */
    double effective_signal_ratio;
    /* estimator/nonzero_advantage_ratio: the share of groups with any |A| > 1e-6. */
    double nonzero_advantage_ratio;
    double confidence_mean; /* estimator/confidence_mean */
    double advantage_max;   /* estimator/advantage_max: largest |A| */
    int64_t extra_groups;   /* number of groups that the plugin wants sampled in addition */
};

tare_status estimate_open(const struct estimate_options *o, struct estimator **out, struct err *e);
void estimate_free(struct estimator *est); /* no-op for NULL */
void estimate_free_at(struct estimator **est);
/* True if the estimator wants a column with its parameters. */
bool estimate_wants(const struct estimator *est, enum column_id column);
const struct plugin *estimate_plugin(const struct estimator *est);
const struct plugin_instance *estimate_instance(const struct estimator *est);
/* Checks a row (the text of a JSON object). Refuses one in which a field that the estimator reads
 * as a number is something else. where: "file:line". seen: 0 before the first row; collects the
 * fields that some row has. */
tare_status estimate_check_row(const struct estimator *est, tare_text row, const char *where, uint64_t *seen, struct err *e);
/* Refuses, after the last row, a required field that no row has. data: the data set's name for
 * messages. */
tare_status estimate_check_seen(const struct estimator *est, uint64_t seen, const char *data, struct err *e);

/* Fills advantage, rollout_weight, baseline, scale, confidence and token_advantage (NULL where the
 * plugin gives none) of the batch, in the arena. Does not change the state. Errors name plugin,
 * phase, group and rollout: a reward that is not finite, a cluster that the codebook does not have,
 * a missing column, an output that was not written or is not finite, a write outside of the
 * buffers. */
tare_status estimate_run(struct estimator *est, struct batch *batch, struct arena *arena, struct err *e);
/* Begins a step: forgets the dropped groups. */
void estimate_begin(struct estimator *est);
/* Drops these groups from the step, before its next estimate_run. */
tare_status estimate_drop(struct estimator *est, const struct batch *groups, struct arena *arena, struct err *e);
const struct estimate_metrics *estimate_metrics(const struct estimator *est);
struct estimate_update {
    int64_t step, updates, skipped; /* as in tare_update */
    const float *logprob;           /* [T] updated_logprob of the batch of estimate_run; NULL: none */
};
/* Applies the step after the policy step: the only change of state. TARE_E_STATE when estimate_run
 * did not come before. */
tare_status estimate_apply(struct estimator *est, const struct estimate_update *u, struct err *e);

/* Save and load the plugin's state, framed (plugin.h): for checkpoints, and before a step for a
 * replay. Between run and apply the state is the one before the step. */
tare_status estimate_save(const struct estimator *est, struct str *out, struct err *e);
tare_status estimate_load(struct estimator *est, const void *data, int64_t n, const char *where, struct err *e);
/* Appends the state as one JSON object. */
tare_status estimate_describe(const struct estimator *est, struct str *out, struct err *e);

/* Reads {"groups":[{"cluster":0,"rewards":[...]}]} into a batch in the arena. A group may have
 * "uid", "lengths" (tokens of each rollout, 1 when absent), "components" [[C] of each rollout],
 * "entropy", "logprob", "ref_logprob" [[tokens] of each rollout], and columns that only some
 * estimators need: "row" (an object), "finish", "completions", "ids", "verdicts",
 * "component_verdicts", "off_policy", "policy_version", "segments", "segment_rewards" [of each
 * rollout]. */
tare_status estimate_parse(const json_t *object, const char *where, struct arena *arena, struct batch *out, struct err *e);

/* Writes the step's outcome and the current state as one JSON line:
 * {"advantages":[[...]],"baseline":[...],"scale":[...], "confidence":[...],"state":{...}}. scale is
 * 1 for an estimator without a scale. Optional members: "rollout_weight", "token_advantages",
 * "extra_groups". */
tare_status estimate_print(const struct estimator *est, const struct batch *b, struct str *out, struct err *e);

#endif
