/* Internal to the verifier number: numbers as they are written, and their values. */
#ifndef TARE_NUMBER_H
#define TARE_NUMBER_H

#include "common/text.h"

struct options {
    bool thousands, hundredth, opened;
    bool comma; /* 1,5 is a decimal, as the answer of the row is not whole */
};

/* A number as written, as spans of the text. den.size 0: no denominator; whole.size > 0: a mixed
 * number. */
struct written {
    tare_text all, whole, num, den;
    int64_t shift; /* the value is times 10^shift: "x 10^5", "million" */
    char point;    /* the decimal sign of num: . or , */
    bool negative, percent, readable;
};

/* Writes t to `to`, which has capacity for 2 t.size + 1 bytes, with ASCII for the digits, signs, blanks
 * and fractions of Unicode, and without programs in fences. */
tare_text number_plain(tare_text t, char *to);

/* Finds the last number of a plain text as written; false: no digits that could be one. */
bool number_last(tare_text t, const struct options *o, struct written *last);

/* d[0..n) decimal digits, most significant first, without zeros at either end, times 10^exponent; n
 * 0: zero. d is allocated. */
struct digits {
    char *d;
    int64_t n, exponent;
};

struct rational {
    struct digits num, den; /* den > 0 */
    bool negative;
};

void rational_free(struct rational *r);
/* 1: read; 0: not a number (division by zero, too long, "2 .5/2"); -1: no memory */
int rational_read(const struct written *w, const struct options *o, struct rational *r);
bool rational_is_whole(const struct rational *r);
/* 1, 0, or -1: no memory */
int rational_equal(const struct rational *a, const struct rational *b);

#endif
