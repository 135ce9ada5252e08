/* Multiple choice: how the options are shown to the model, and their order.
 *
 * A row with "choices" and without "messages" is shown as
 *
 *     QUESTION
 *
 *     A. first option
 *     B. second option
 *
 * (question, empty line, one line per option; no newline at the end, data.suffix follows). At most
 * 26 options. */
#ifndef TARE_CORE_DATA_CHOICES_H
#define TARE_CORE_DATA_CHOICES_H

#include "data/dataset.h"

enum { MAX_CHOICES = 26 };

/* Appends the options as above, starting with the empty line. No-op for a row without choices or
 * with messages. */
tare_status choices_render(const struct row *row, struct str *out, struct err *e);

/* Returns how many options, counted from the first, may change places. Options that speak of their
 * place at the end of the list ("all of the above") stay behind the others; a row in which an option
 * names others by their letters ("both A and B"), carries its own letter ("A. 10"), or speaks of its
 * place further up keeps its order: 0. *why: the reason for a number below n_choices, static text. */
int64_t choices_movable(const struct row *row, const char **why);

/* Shuffles the options of every such row with Philox keyed by (seed, the row's uid), so a row has
 * the same order in every file, split and run. The answer's letter is changed with them. The row's
 * JSON gets the new "choices" and "answer", and "choice_order": the old letters in the new order
 * ("CADB": C of the file is now A). Options that may not change places
 * (choices_movable) keep theirs. Fails if the answer is not the letter of an option. */
tare_status choices_permute(struct dataset *d, uint64_t seed, struct err *e);

#endif
