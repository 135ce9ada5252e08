/* Multiple choice: the options as the model sees them, and their order.
 *
 * A row with "choices" and without "messages" is shown as
 *
 *     QUESTION
 *
 *     A. first option
 *     B. second option
 *
 * (question, empty line, one line an option; no newline at the end, data.suffix follows). At most 26 options. */
#ifndef TARE_CORE_DATA_CHOICES_H
#define TARE_CORE_DATA_CHOICES_H

#include "data/dataset.h"

enum { MAX_CHOICES = 26 };

/* Appends the options as above, beginning with the empty line; nothing for a row without choices, or with messages. */
tare_status choices_render(const struct row *row, struct str *out, struct err *e);

/* Puts the options of every such row in an order drawn by Philox from (seed, the row's uid), so the same for a row in every file, split and
 * run; the answer's letter goes along. The row's JSON gets the new "choices" and "answer", and "choice_order": the old letters in the new order
 * ("CADB": C of the file is now A). Fails where the answer is not the letter of one of the options. */
tare_status choices_permute(struct dataset *d, uint64_t seed, struct err *e);

#endif
