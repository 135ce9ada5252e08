/* `tare audit`: recomputes answer, group, reward, advantage and loss scale of each row of a rollout
 * dump and compares them with the dump. A dump is JSON lines with a row for each rollout; a field
 * map (fields.c) names the columns.
 *
 * Each check uses the dumped inputs: advantages are computed from the dumped rewards, so a wrong
 * reward is a single disagreement and does not spread over its group. The result is a JSON object,
 * which `tare audit --json` prints and audit_print turns into text:
 *
 *   format, files, steps, rows, groups, group_size
 *   verifier, estimator, as, aggregation   used for the recomputation; as: null for none
 *   judged, disputed, unjudged   rewards that the verifier computed, those that differ from the dump, and
 *                   those that it could not compute
 *   agrees          true if no row disagrees in a checked field
 *   computed        true if the reward or the advantage of a row was recomputed
 *   first           the first disagreement: {file, row, step, group, rollout, field, says, expected,
 *                   text}; null: none
 *   disagreements   those of the first 1,000 rows that disagree
 *   fields          {FIELD: {checked, disagree, why}}: rows; why: the reason why a field was not checked
 *   loss_scale      {least, most}: share of the loss of a rollout; null: the dump has no lengths */
#ifndef TARE_LAB_AUDIT_AUDIT_H
#define TARE_LAB_AUDIT_AUDIT_H

#include "base/json.h"
#include "config/config.h"

enum { AUDIT_DUMPS = 64, AUDIT_MAPS = 32 };

struct audit_options {
    const char *dumps[AUDIT_DUMPS]; /* files of JSON lines, folders of them, folders of runs */
    int64_t n_dumps;
    const struct config *config; /* verifier, estimator, loss, rollout.group_size, data.train */
    /* name of a field map; NULL: chosen by the first row's columns */
    const char *format;
    const char *fields[AUDIT_MAPS]; /* "reward=a+0.5*b": columns that override the map's */
    int64_t n_fields;
    double tolerance;    /* a and b agree if |a - b| <= tolerance max(1, |b|) */
    double wrong, right; /* rewards in the dump for the verifier's 0 and 1 */
};

/* TARE_E_NOT_FOUND, TARE_E_IO, TARE_E_CORRUPT name a file and line. TARE_E_CONFIG: the map does not
 * fit the rows. */
tare_status audit(const struct audit_options *o, json_t **out, struct err *e);
tare_status audit_print(const json_t *result, struct str *out, struct err *e);

#endif
