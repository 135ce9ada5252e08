/* The normalizer of tokenizer.json: what is done with a text before it is cut into pieces. Internal to the data folder. Text is valid
 * UTF-8 before and after. */
#ifndef TARE_CORE_DATA_NORMALIZE_H
#define TARE_CORE_DATA_NORMALIZE_H

#include "base/json.h"
#include "base/str.h"
#include "data/regex.h"

enum { MAX_NORMALIZERS = 12 };
enum normalizer_kind { NORMALIZE_UNICODE, NORMALIZE_PREPEND, NORMALIZE_REPLACE, NORMALIZE_STRIP };

struct normalizer_step {
    enum normalizer_kind kind;
    int form;           /* NORMALIZE_UNICODE: utf8proc's options */
    struct str text;    /* NORMALIZE_PREPEND; NORMALIZE_REPLACE: what a match becomes */
    struct regex regex; /* NORMALIZE_REPLACE */
    bool left, right;   /* NORMALIZE_STRIP: white space is taken from this end */
};

struct normalizer {
    struct normalizer_step steps[MAX_NORMALIZERS];
    int64_t n;
};

/* json: tokenizer.json's "normalizer", NULL: none. */
tare_status normalizer_read(struct normalizer *z, const json_t *json, const char *where, struct err *e);
void normalizer_free(struct normalizer *z);
/* True when the text stays as it is for certain, found without a copy. */
bool normalizer_keeps(const struct normalizer *z, const unsigned char *text, int64_t n);
/* Appends the normalised text. */
tare_status normalizer_apply(const struct normalizer *z, const unsigned char *text, int64_t n, struct str *out, struct err *e);

#endif
