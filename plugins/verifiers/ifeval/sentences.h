/* Counts sentences and words in capitals. */
#ifndef TARE_VERIFIERS_IFEVAL_SENTENCES_H
#define TARE_VERIFIERS_IFEVAL_SENTENCES_H

#include "ifeval.h"

/* A sentence ends at ". ! ?" before a blank, except after titles, initials, abbreviations with
 * inner full stops, and before a lower-case letter. The reference uses nltk's trained splitter,
 * which differs on learnt abbreviations. */
int64_t count_sentences(tare_text t);
/* Counts tokens of the Penn Treebank rules that are all capitals. */
int64_t count_capital_words(tare_text t);
/* As Python's str.isupper and str.islower: at least one cased letter, and none of the other
 * case. */
bool is_upper(tare_text t);
bool is_lower(tare_text t);

#endif
