/* Compares two runs bit by bit: where they differ first, in which part of a step, and by how much;
 * and the paired differences of a metric along the curve.
 *
 * The result is a JSON object, which `tare diff --json` prints and compare_print turns into text:
 *
 *   a, b            the folders
 *   same            true if everything compared is equal and nothing is damaged; keys that do not
 *                   change the training are ignored
 *   first_step      the first step with a difference; null: none
 *   configuration   [{key, a, b, changes_training}]; for data.train and data.eval also rows: "same",
 *                   "other" or "unknown". a and b are equal if the file had other rows for run b
 *   differences     the first of each kind, by step, then in the order of a step's stages:
 *                   [{what, step, where, a, b, by, count}]
 *                   what: rollout, token, reward, baseline, scale, confidence, advantage,
 *                   rollout_weight, estimator_state, metric, tensor, section, file, length
 *                   by: b - a if both are numbers; count: differences of this kind in that step
 *   compared        {steps, rollouts, estimator_states, checkpoints}: number that both runs have
 *   only_a, only_b  the same numbers of the records that one run has and the other lacks, among the
 *                   steps that both have: log.rollouts, checkpoint.keep, or records that are gone
 *   damaged, notes  [text]; damaged includes records that chain.jsonl lists and that are missing
 *   curve           {metric, fork, rows: [[step, a, b, b - a]], n, mean, low, high}
 *                   fork: the last step that one run copied from the other, or both from a third;
 *                   the curve begins after it. 0: none
 *
 * Times, memory, speculation and tokens_per_second are not compared, because they depend on the machine. */
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

/* TARE_E_NOT_FOUND: a run is missing; TARE_E_CORRUPT: metrics.jsonl is damaged, with file:line.
 * Other damaged files are listed in the result. */
tare_status compare_runs(const struct compare_options *o, json_t **out, struct err *e);
tare_status compare_print(const json_t *result, struct str *out, struct err *e);

/* Prints the differences alone. */
tare_status compare_print_differences(const json_t *result, struct str *out, struct err *e);

#endif
