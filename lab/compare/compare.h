/* Two runs compared to the bit: where they part, in which part of a step, and by how much; and the paired differences of a metric along the
 * curve.
 *
 * What is found is a JSON object, which `tare diff --json` prints and compare_print turns into text:
 *
 *   a, b            the folders
 *   same            whether everything that was compared is the same and nothing is damaged; keys that change no training do not count
 *   first_step      the first step with a difference; null: none
 *   configuration   [{key, a, b, changes_training}]; of data.train and data.eval also rows: "same", "other" or "unknown". a and b are equal where the
 *                   file of a path held other rows for the second run
 *   differences     the first of each kind, by step and then as a step makes them: [{what, step, where, a, b, by, count}]
 *                   what: rollout, token, reward, baseline, scale, confidence, advantage, rollout_weight, estimator_state, metric, tensor, section,
 *                   file, length; by: b - a where both are numbers; count: how many of this kind differ in that step
 *   compared        {steps, rollouts, estimator_states, checkpoints}: how many of each both runs have
 *   damaged, notes  [text]
 *   curve           {metric, rows: [[step, a, b, b - a]], n, mean, low, high}
 *
 * Times, memory and tokens_per_second are not compared: they are the machine's. */
#ifndef TARE_LAB_COMPARE_COMPARE_H
#define TARE_LAB_COMPARE_COMPARE_H

#include "base/json.h"

#include <stdbool.h>

struct compare_options {
    const char *run[2];
    const char *metric;  /* of the curve */
    int64_t first, last; /* steps that are compared */
    bool configuration;  /* compare config.ini and the runs' lengths too */
};

/* TARE_E_NOT_FOUND: no run is there; TARE_E_CORRUPT: metrics.jsonl cannot be read, with file:line. Other damaged files are listed. */
tare_status compare_runs(const struct compare_options *o, json_t **out, struct err *e);
tare_status compare_print(const json_t *result, struct str *out, struct err *e);

/* The differences alone. */
tare_status compare_print_differences(const json_t *result, struct str *out, struct err *e);

#endif
