/* What verifiers need of a row: an answer to compare with, or fields of their own (ifeval's instructions, json's schema). A plugin says so itself
 * (tare_verifier.uses); one that does not is taken to compare with the answer. */
#ifndef TARE_CORE_VERIFY_ROWS_H
#define TARE_CORE_VERIFY_ROWS_H

#include "data/dataset.h"
#include "verify/verify.h"

enum row_answer {
    ROW_ANSWER_COMPARED, /* a row without an answer cannot be judged */
    ROW_ANSWER_UNKNOWN,  /* a program of the user decides: python, command */
    ROW_ANSWER_UNUSED
};
/* Of verifier c, by its name and its parameters. */
enum row_answer verify_row_answer(const struct verify *v, int64_t c);

/* Judges a completion of no meaning, to learn whether the verifiers can read the row; the message is theirs, without a place. */
tare_status verify_try_row(struct verify *v, const struct row *row, struct err *e);

/* Refuses, with file:line, the first row that a verifier of verifier.plugins could not judge: no answer where one is compared with, or
 * fields that it cannot read. Before verifiers are opened: what is wrong with those themselves is left to verify_open. */
tare_status verify_check_rows(const struct config *c, const struct dataset *d, struct err *e);

#endif
