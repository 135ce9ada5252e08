/* The tests of a row, in the forms that data sets have them. */
#ifndef TARE_VERIFIERS_CODE_TESTS_H
#define TARE_VERIFIERS_CODE_TESTS_H

#include <jansson.h>
#include <stdbool.h>
#include <tare/sdk.h>

struct tests {
    json_t *row, *list; /* list: of {"input","output"} objects or of texts; row keeps the texts alive */
    bool programs;      /* texts: Python that runs after the program; else input and output */
};

tare_status tests_read(tare_text row, const char *field, struct tests *out, tare_error *error);
void tests_free(struct tests *t);

/* Whether two outputs are the same: line by line without blanks at the ends of lines and empty lines at the end, or word by word. */
bool tests_same(tare_text a, tare_text b, bool words);

#endif
