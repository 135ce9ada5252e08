/* Fields of a row that verifiers need: an answer to compare with, or separate fields such as
 * ifeval's instructions and json's schema. A plugin declares them (tare_verifier.uses); a plugin
 * that does not is assumed to compare with the answer. */
#ifndef TARE_CORE_VERIFY_ROWS_H
#define TARE_CORE_VERIFY_ROWS_H

#include "data/dataset.h"
#include "verify/verify.h"

enum row_answer {
    ROW_ANSWER_COMPARED, /* a row without an answer is an error */
    ROW_ANSWER_UNKNOWN,  /* decided by a user's program: python, command */
    ROW_ANSWER_UNUSED
};
/* Returns how verifier c uses the answer, given its parameters. */
enum row_answer verify_row_answer(const struct verify *v, int64_t c);

/* Judges a dummy completion to find out whether the verifiers can read the row. The error is the
 * verifier's, without a place. */
tare_status verify_try_row(struct verify *v, const struct row *row, struct err *e);

/* Refuses, with file:line, the first row that a verifier of verifier.plugins cannot verify: its
 * answer is missing although one is compared, or a field cannot be read. Call it before the
 * verifiers are opened; verify_open reports errors in verifier.plugins itself. */
tare_status verify_check_rows(const struct config *c, const struct dataset *d, struct err *e);

/* Prints the fields of the rows as the extension "tare.row_fields/1" has them (tare/base.h). data:
 * data.train and data.eval, NULL for one that is not read. *out = NULL: no verifier of
 * verifier.plugins runs a program of the user, which would read the fields by name. */
tare_status verify_row_fields(const struct config *c, const struct dataset *const data[2], struct arena *a, const char **out,
                              struct err *e);

/* Finds the first verifier of verifier.plugins that may give a completion another verdict the second
 * time, so that a recorded verdict counts and is not compared. *out: its name in the arena; NULL:
 * none. Creates no instance. */
tare_status verify_find_unrepeatable(const struct config *c, struct arena *a, const char **out, struct err *e);

#endif
