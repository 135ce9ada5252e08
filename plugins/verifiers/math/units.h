/* Units of measure: read, multiplied, written in one order. Names are static. */
#ifndef TARE_MATH_UNITS_H
#define TARE_MATH_UNITS_H

#include "tokens.h"

enum { UNIT_PARTS = 12, UNIT_TEXT = 32 * UNIT_PARTS };

struct unit {
    struct {
        const char *name;
        int power;
    } part[UNIT_PARTS];
    int n;
};

/* Reads a product of units at the start of s; in_text: single letters are units too. Bytes used; 0: none. */
int64_t unit_read(const char *s, int64_t n, bool in_text, struct unit *u);
bool unit_multiply(struct unit *u, const char *name, int power); /* false: too many parts */
void unit_raise_last(struct unit *u, int power);                 /* the last factor, one that divides if there is one */
int unit_print(const struct unit *u, char *out);                 /* out: UNIT_TEXT bytes; returns the length */

/* convert.c: the value x of the unit in its base units, whose name goes to out (UNIT_TEXT bytes); -1: not a unit that is known */
int unit_convert(struct math *m, int x, const char *text, int n, char *out, int *size);

#endif
