/* The words of a text: what stands between blanks, Unicode's too, as Python's str.split() counts. Bytes that are no UTF-8 belong to a word. */
#ifndef TARE_VERIFIERS_WORDS_H
#define TARE_VERIFIERS_WORDS_H

#include <tare/plugin.h>

/* The next word from *at on; size 0: there is none. *at is then after it. */
tare_text words_next(tare_text t, int64_t *at);
int64_t words_count(tare_text t);
int64_t words_characters(tare_text t); /* code points; a byte that is no UTF-8 is one */
/* The text in lower case, letter by letter (utf8proc), in memory of its own; data NULL: no memory. */
tare_text words_lower(tare_text t);

#endif
