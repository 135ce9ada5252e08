/* Splits a text into words at white space, including Unicode's, as Python's str.split(). Invalid
 * UTF-8 belongs to a word. */
#ifndef TARE_VERIFIERS_WORDS_H
#define TARE_VERIFIERS_WORDS_H

#include <stdint.h>
#include <tare/plugin.h>

/* Returns the next word from *at on and moves *at behind it; size 0: none. */
tare_text words_next(tare_text t, int64_t *at);
int64_t words_count(tare_text t);
int64_t words_characters(tare_text t); /* Counts code points; an invalid byte counts as one. */
/* Reads the units in which repetition shows, in scripts without blanks too: a word without the
 * punctuation around it; a character of Han, kana, Thai, Lao, Khmer or Burmese; of a word of more
 * than 24 characters its runs of letters and digits and its signs, and the characters of a run of
 * more than 24 with at most 8 different ones. Begin with {.t = text}; size 0: no further unit. */
struct words_units {
    tare_text t;
    int64_t at, end; /* end: of the long word that is being cut, if at < end */
    int64_t run;     /* end of the run that is read by its characters, if at < run */
};
tare_text words_unit(struct words_units *u);
/* Returns the text in lower case, letter by letter (utf8proc), in memory the caller frees; data
 * NULL: no memory. */
tare_text words_lower(tare_text t);

#endif
