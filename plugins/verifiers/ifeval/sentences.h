/* Sentences and words in capitals. */
#ifndef TARE_VERIFIERS_IFEVAL_SENTENCES_H
#define TARE_VERIFIERS_IFEVAL_SENTENCES_H

#include "ifeval.h"

/* Ends are ". ! ?" before a blank, but for titles, initials, abbreviations with stops inside, and a full stop before a small letter. The reference asks
 * nltk's trained splitter, which differs on abbreviations that it has learnt. */
int64_t count_sentences(tare_text t);
/* Tokens of the Penn Treebank's rules that are all capitals. */
int64_t count_capital_words(tare_text t);
/* As Python's str.isupper and str.islower: some letters with case, none of the other. */
bool is_upper(tare_text t);
bool is_lower(tare_text t);

#endif
