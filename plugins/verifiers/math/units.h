/* Units of measure: read, multiplied, written in one order, converted. */
#ifndef TARE_MATH_UNITS_H
#define TARE_MATH_UNITS_H

#include "tokens.h"

enum { UNIT_PARTS = 12, UNIT_TEXT = 32 * UNIT_PARTS };

struct unit_name {
    uint8_t kind; /* 0: no unit */
    int8_t prefix;
};

struct unit {
    struct {
        struct unit_name name;
        int power;
    } part[UNIT_PARTS];
    int n;
};

/* unit_names.c. in_text: inside \text, where single letters are units too. */
struct unit_name find_unit(const char *s, int64_t n, bool in_text);
bool unit_is(struct unit_name u, const char *symbol);
bool unit_is_money(struct unit_name u);
/* The prefix and the symbol that it is written with; returns the length of the symbol. */
int unit_spell(struct unit_name u, const char **prefix, const char **symbol);
/* by / over * 10^ten of the product of base units that is returned; NULL: of itself */
const char *unit_base(struct unit_name u, int64_t *by, int64_t *over, int *ten);

/* Reads a product of units at the start of s. Bytes used; 0: none. */
int64_t unit_read(const char *s, int64_t n, bool in_text, struct unit *u);
bool unit_multiply(struct unit *u, struct unit_name name, int power); /* false: too many parts */
void unit_raise_last(struct unit *u, int power);                      /* the last factor, one that divides if there is one */
int unit_print(const struct unit *u, char *out);                      /* out: UNIT_TEXT bytes; returns the length */

/* convert.c: a value with its unit, or several that are added (5 h 30 min), as a value in base units, whose product goes to out (UNIT_TEXT
 * bytes); -1: not units that are known. sterling: a pound is money, and no mass */
int measure_in_base(struct math *m, int x, bool sterling, char *out, int *size);
bool mentions_sterling(const struct math *m, int x);

/* measures.c */
bool compare_said(struct math *m, int gold, int pred); /* words after a unit: on both sides they have to agree */
bool compare_measures(struct math *m, int gold, int pred);
/* 5 hours 30 minutes, 7:30 pm against each other and their like; UNKNOWN: neither is a composite measure or a time of day */
enum truth compare_composites(struct math *m, int gold, int pred);

#endif
