/* Added tokens: found in the text before anything else is done with it, the leftmost first, the longest of those that begin there.
 * Internal to the data folder. */
#ifndef TARE_CORE_ADDED_TOKENS_H
#define TARE_CORE_ADDED_TOKENS_H

#include "base/err.h"

#include <stdbool.h>

struct added_node {
    int32_t child, sibling; /* 0: none */
    int32_t id;             /* of the token that ends here, -1: none */
    unsigned char byte;
};

struct added { /* a trie over bytes; node 0 is the root */
    struct added_node *nodes;
    int64_t n, capacity;
    bool begins[256]; /* some token begins with this byte */
    int only;         /* the byte that all tokens begin with, or -1 */
};

tare_status added_insert(struct added *a, const char *content, int64_t n, int32_t id, struct err *e);
void added_free(struct added *a);
/* The first token in [text, text + n): true, with its place, size and id. */
bool added_find(const struct added *a, const unsigned char *text, int64_t n, int64_t *at, int64_t *size, int32_t *id);

#endif
