/* Added tokens: matched in the text before any other step, leftmost first and the longest at each
 * position. Internal to core/data. */
#ifndef TARE_CORE_DATA_ADDED_TOKENS_H
#define TARE_CORE_DATA_ADDED_TOKENS_H

#include "data/trie.h"

/* the token also takes the white space before or after it */
enum { ADDED_LSTRIP = 1, ADDED_RSTRIP = 2 };

struct added_token {
    int32_t id;
    int flags;
};

struct added {
    struct trie trie; /* maps contents to indices into tokens */
    struct added_token *tokens;
    int64_t n, capacity;
    bool begins[256]; /* true if some token begins with this byte */
    int only;         /* the byte that all tokens begin with, or -1 */
};

/* content must not be empty. */
tare_status added_insert(struct added *a, const char *content, int64_t n, struct added_token token, struct err *e);
void added_free(struct added *a);

/* Iterates over a text. Zero-initialise, then fill in set, text and n. */
struct added_walk {
    const struct added *set;
    const unsigned char *text;
    int64_t n;
    int64_t searched; /* the text before this offset was searched */
    /* the text before this offset was returned, including what tokens take with them */
    int64_t done;
};
/* Returns true with the next token's id and the text before it, which may be empty; false at the
 * end, with the remaining text. */
bool added_next(struct added_walk *w, int64_t *before, int64_t *before_size, int32_t *id);

#endif
