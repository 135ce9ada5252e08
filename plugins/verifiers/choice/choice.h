/* Internal to the choice verifier: finds the option that a text names. Pure functions. */
#ifndef TARE_CHOICE_H
#define TARE_CHOICE_H

#include "common/text.h"

enum { MAX_OPTIONS = 26 };

struct options {
    char letters[MAX_OPTIONS];
    int n, n_choices;
    tare_text choices[MAX_OPTIONS]; /* [n_choices] option texts */
    bool lowercase;
};

struct chosen {
    char letter;      /* 0: none */
    const char *rule; /* static text */
};

struct chosen choice_extract(const struct options *o, tare_text completion);
char choice_of_gold(const struct options *o, tare_text answer);

#endif
