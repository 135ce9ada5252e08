/* Splits a text into words at white space, including Unicode's, as Python's str.split(). Invalid
 * UTF-8 belongs to a word. */
#ifndef TARE_VERIFIERS_WORDS_H
#define TARE_VERIFIERS_WORDS_H

#include <tare/plugin.h>

/* Returns the next word from *at on and moves *at behind it; size 0: none. */
tare_text words_next(tare_text t, int64_t *at);
int64_t words_count(tare_text t);
int64_t words_characters(tare_text t); /* Counts code points; an invalid byte counts as one. */
/* Returns the text in lower case, letter by letter (utf8proc), in memory the caller frees; data
 * NULL: no memory. */
tare_text words_lower(tare_text t);

#endif
