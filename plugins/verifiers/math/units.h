/* Units of measure: parsing, products, a canonical order, conversion. */
#ifndef TARE_MATH_UNITS_H
#define TARE_MATH_UNITS_H

#include "tokens.h"

enum { UNIT_PARTS = 12, UNIT_TEXT = 32 * UNIT_PARTS };

struct unit_name {
    uint8_t kind; /* 0: not a unit */
    int8_t prefix;
};

struct unit {
    struct {
        struct unit_name name;
        int power;
    } part[UNIT_PARTS];
    int n;
};

/* unit_names.c. in_text: inside \text, where single letters are also units. */
struct unit_name find_unit(const char *s, int64_t n, bool in_text);
bool unit_is(struct unit_name u, const char *symbol);
bool unit_is_money(struct unit_name u);
/* Writes the prefix and its symbol; returns the length of the symbol. */
int unit_spell(struct unit_name u, const char **prefix, const char **symbol);
/* Returns the unit as a product of base units, times by / over * 10^ten; NULL: it is a base
 * unit. */
const char *unit_base(struct unit_name u, int64_t *by, int64_t *over, int *ten);

/* Reads a product of units at the start of s. Returns the bytes used; 0: none. */
int64_t unit_read(const char *s, int64_t n, bool in_text, struct unit *u);
bool unit_multiply(struct unit *u, struct unit_name name, int power); /* false: too many parts */
/* raises the last factor, or the last divisor if there is one */
void unit_raise_last(struct unit *u, int power);
int unit_print(const struct unit *u, char *out); /* out: UNIT_TEXT bytes; returns the length */

/* convert.c: converts a value with its unit, or a sum of several (5 h 30 min), to base units, whose
 * product is written to out (UNIT_TEXT bytes); -1: unknown units. sterling: a pound is money, not a
 * mass */
int measure_in_base(struct math *m, int x, bool sterling, char *out, int *size);
bool mentions_sterling(const struct math *m, int x);

/* measures.c */
/* words after a unit: must agree if both sides have them */
bool compare_said(struct math *m, int gold, int pred);
bool compare_measures(struct math *m, int gold, int pred);
/* compares 5 hours 30 minutes, 7:30 pm and similar values; UNKNOWN: neither is a composite measure
 * or a time of day */
enum truth compare_composites(struct math *m, int gold, int pred);

#endif
