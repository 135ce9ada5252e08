/* What a sentence does, for all verifiers that look for an answer in prose. Pure functions, linear
 * in the sentence. */
#ifndef TARE_VERIFIERS_SENTENCES_H
#define TARE_VERIFIERS_SENTENCES_H

#include "common/text.h"

/* Returns whether the sentence opens by taking back the one before it: "Wait", "Actually no", "No,
 * that is 3", "On second thought", "I made a mistake". */
bool sentence_takes_back(tare_text t);

/* Returns whether the value [begin, end) and words before it are quoted, and the sentence, which
 * begins at `from`, is about the quotation: '"The answer is 4," says Tom', 'write it as "The answer
 * is 4"'. */
bool sentence_quotes(tare_text t, int64_t from, int64_t begin, int64_t end);

/* Returns where the sentence that holds i begins, at most `most` bytes before i: behind a line
 * break, or behind a full stop, a question or exclamation mark and a blank, but not
 * behind "e.g.". */
int64_t sentence_start(tare_text t, int64_t i, int64_t most);

/* Returns the size of the sign at i that is no letter of any alphabet: an emoji, an arrow, a
 * bullet, a dash, a mark that is not seen; 0: none. */
int64_t sentence_sign(tare_text t, int64_t i);

#endif
