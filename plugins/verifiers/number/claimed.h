/* Where a text gives its number. */
#ifndef TARE_NUMBER_CLAIMED_H
#define TARE_NUMBER_CLAIMED_H

#include "common/text.h"

/* Returns the part of a plain text (number_plain) whose last number is its answer: what follows
 * "the answer is", else the text up to the last number of the main clause. Size 0: none, as in a
 * question, a request, a denial, a bound, or several numbers. */
tare_text number_claimed(tare_text t);

/* Returns whether the text stops in the middle: behind an operator, in a box that is not closed, at
 * the label of a list. */
bool number_is_cut(tare_text t);

#endif
