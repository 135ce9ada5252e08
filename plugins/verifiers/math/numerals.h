/* Reads numbers in English words. */
#ifndef TARE_MATH_NUMERALS_H
#define TARE_MATH_NUMERALS_H

#include "math.h"

enum { NUMERAL_TEXT = 64 };

/* Returns whether w is part of a number: seven, thirty, hundred, half, thirds. Lower case or
 * capitalised. */
bool is_numeral_word(tare_text w);

/* Reads the number that starts at words[0]: twenty one, two thirds, two and a half, three point
 * five. Writes its TeX to out, NUL-terminated. Returns the number of words; 0: none starts here.
 * last: words[n - 1] ends the text, so "third" may be the ordinal 3. */
int read_numeral(const tare_text *words, int n, bool last, char out[NUMERAL_TEXT]);

#endif
