/* A rollout dump checked: `tare audit`. Each row's answer, group, reward, advantage and loss scale are computed again, and what the dump has is
 * compared with that. A dump is JSON lines, a row for each rollout; which column holds what is said by a field map (fields.c).
 *
 * Each check takes what stands before it from the dump: advantages are computed from the dumped rewards, so a wrong reward is one disagreement
 * and not a group of them. What is found is a JSON object, which `tare audit --json` prints and audit_print turns into text:
 *
 *   format, files, steps, rows, groups, group_size
 *   verifier, estimator, as, aggregation what it was computed again with; as: null for none
 *   judged, disputed, unjudged           rewards that the verifier gave, those of them that the dump has otherwise, and those it could not give
 *   agrees          whether no row disagrees in what was checked
 *   computed        whether the reward or the advantage of some row was computed again
 *   first           the first disagreement: {file, row, step, group, rollout, field, says, expected, text}; null: none
 *   disagreements   the same of the first 1,000 rows that disagree
 *   fields          {FIELD: {checked, disagree, why}}: rows; why: the reason for which a field could not be checked
 *   loss_scale      {least, most}: the share of the loss that a rollout has; null: the dump has no lengths */
#ifndef TARE_LAB_AUDIT_AUDIT_H
#define TARE_LAB_AUDIT_AUDIT_H

#include "base/json.h"
#include "config/config.h"

enum { AUDIT_DUMPS = 64, AUDIT_MAPS = 32 };

struct audit_options {
    const char *dumps[AUDIT_DUMPS]; /* files of JSON lines, folders of such, a run's folder */
    int64_t n_dumps;
    const struct config *config;    /* verifier, estimator, loss, rollout.group_size, data.train */
    const char *format;             /* a field map's name; NULL: by the first row's columns */
    const char *fields[AUDIT_MAPS]; /* "reward=a+0.5*b": columns that go before the map's */
    int64_t n_fields;
    double tolerance;    /* |a - b| <= tolerance max(1, |b|) is agreement */
    double wrong, right; /* the dump's rewards for the verifier's 0 and 1 */
};

/* TARE_E_NOT_FOUND, TARE_E_IO, TARE_E_CORRUPT: a file with its line; TARE_E_CONFIG: the map does not fit the rows. */
tare_status audit(const struct audit_options *o, json_t **out, struct err *e);
tare_status audit_print(const json_t *result, struct str *out, struct err *e);

#endif
