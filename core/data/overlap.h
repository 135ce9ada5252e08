/* Checks whether a question also occurs in an evaluation file. Questions are compared by their
 * first 80 letters and digits (ASCII, lower case; everything else is skipped), so spacing,
 * punctuation and markup do not hide a copy. Bytes of other scripts count as letters. */
#ifndef TARE_CORE_DATA_OVERLAP_H
#define TARE_CORE_DATA_OVERLAP_H

#include "data/dataset.h"
#include "data/hash_set.h"

enum { OVERLAP_CHARACTERS = 80 };

struct overlap {
    struct seen seen; /* of rows [n_rows] */
    char **names;     /* [n] "id of FILE" */
    int64_t n, capacity, extra;
    struct arena arena;
};

/* out: at least OVERLAP_CHARACTERS + 1 bytes. Returns the length. */
int64_t overlap_normalise(tare_text question, char *out);
void overlap_init(struct overlap *o);
/* Adds every question of a file. */
tare_status overlap_add(struct overlap *o, const char *path, struct err *e);
/* name: "id of FILE" if the question is in one of the files, else NULL. Questions without a letter
 * or digit never match. */
tare_status overlap_find(struct overlap *o, tare_text question, const char **name, struct err *e);
void overlap_free(struct overlap *o);

#endif
