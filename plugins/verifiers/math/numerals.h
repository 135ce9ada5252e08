/* Numbers in English words. */
#ifndef TARE_MATH_NUMERALS_H
#define TARE_MATH_NUMERALS_H

#include "math.h"

enum { NUMERAL_TEXT = 64 };

/* Is w a word of a number: seven, thirty, hundred, half, thirds? Lower case or with a capital. */
bool is_numeral_word(tare_text w);

/* The number that starts at words[0]: twenty one, two thirds, two and a half, three point five. Its TeX in out, with its end by 0. Returns
 * how many words it takes; 0: none starts here. last: words[n - 1] ends the text, so that "third" may be the ordinal 3. */
int read_numeral(const tare_text *words, int n, bool last, char out[NUMERAL_TEXT]);

#endif
