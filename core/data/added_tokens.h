/* Added tokens: found in the text before anything else is done with it, the leftmost first, the longest of those that begin there.
 * Internal to the data folder. */
#ifndef TARE_CORE_DATA_ADDED_TOKENS_H
#define TARE_CORE_DATA_ADDED_TOKENS_H

#include "data/trie.h"

enum { ADDED_LSTRIP = 1, ADDED_RSTRIP = 2 }; /* takes the white space before, after it as well */

struct added_token {
    int32_t id;
    int flags;
};

struct added {
    struct trie trie; /* its numbers: places in tokens */
    struct added_token *tokens;
    int64_t n, capacity;
    bool begins[256]; /* some token begins with this byte */
    int only;         /* the byte that all tokens begin with, or -1 */
};

/* content is not empty. */
tare_status added_insert(struct added *a, const char *content, int64_t n, struct added_token token, struct err *e);
void added_free(struct added *a);

/* Walks over a text: zero-initialise but for set, text and n. */
struct added_walk {
    const struct added *set;
    const unsigned char *text;
    int64_t n;
    int64_t searched; /* up to here tokens were looked for */
    int64_t done;     /* up to here the text was given out; what a token takes with it counts */
};
/* The next token: true, its id, and what is before it, which may be empty. False: the text before is all that is left. */
bool added_next(struct added_walk *w, int64_t *before, int64_t *before_size, int32_t *id);

#endif
