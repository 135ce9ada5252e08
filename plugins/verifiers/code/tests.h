/* Reads the tests of a row, in the formats used by data sets. */
#ifndef TARE_VERIFIERS_CODE_TESTS_H
#define TARE_VERIFIERS_CODE_TESTS_H

#include <jansson.h>
#include <stdbool.h>
#include <tare/sdk.h>

struct tests {
    json_t *row, *list; /* list: of {"input","output"} objects or of texts; row owns the texts */
    bool programs;      /* true: Python code that runs after the program; false: input and output */
};

tare_status tests_read(tare_text row, const char *field, struct tests *out, tare_error *error);
void tests_free(struct tests *t);

/* Compares two outputs line by line, ignoring blanks at line ends and empty lines at the end, or
 * word by word. */
bool tests_same(tare_text a, tare_text b, bool words);

#endif
