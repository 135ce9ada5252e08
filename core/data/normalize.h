/* The normalizer of tokenizer.json: transforms a text before it is split into pieces. Internal to
 * core/data. Text is valid UTF-8 before and after. */
#ifndef TARE_CORE_DATA_NORMALIZE_H
#define TARE_CORE_DATA_NORMALIZE_H

#include "base/json.h"
#include "base/str.h"
#include "data/regex.h"

enum { MAX_NORMALIZERS = 12 };
enum normalizer_kind { NORMALIZE_UNICODE, NORMALIZE_PREPEND, NORMALIZE_REPLACE, NORMALIZE_STRIP };

struct normalizer_step {
    enum normalizer_kind kind;
    int form; /* NORMALIZE_UNICODE: utf8proc's options */
    /* NORMALIZE_PREPEND: the prefix; NORMALIZE_REPLACE: the replacement of a match */
    struct str text;
    struct regex regex; /* NORMALIZE_REPLACE */
    bool left, right;   /* NORMALIZE_STRIP: strip white space at this end */
};

struct normalizer {
    struct normalizer_step steps[MAX_NORMALIZERS];
    int64_t n;
};

/* json: "normalizer" of tokenizer.json; NULL: none. */
tare_status normalizer_read(struct normalizer *z, const json_t *json, const char *where, struct err *e);
void normalizer_free(struct normalizer *z);
/* Returns true if the text is certainly unchanged, without making a copy. */
bool normalizer_keeps(const struct normalizer *z, const unsigned char *text, int64_t n);
/* Appends the normalised text. */
tare_status normalizer_apply(const struct normalizer *z, const unsigned char *text, int64_t n, struct str *out, struct err *e);

#endif
