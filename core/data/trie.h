/* A map from byte strings to numbers, matched by walking over a text. Internal to core/data. */
#ifndef TARE_CORE_DATA_TRIE_H
#define TARE_CORE_DATA_TRIE_H

#include "base/err.h"

#include <stdbool.h>

struct trie_node {
    int32_t child, sibling; /* 0: none */
    int32_t id;             /* number of the string that ends here; -1: none */
    unsigned char byte;
};

struct trie { /* node 0 is the root */
    struct trie_node *nodes;
    int64_t n, capacity;
};

tare_status trie_insert(struct trie *t, const char *content, int64_t n, int32_t id, struct err *e);
void trie_free(struct trie *t);
/* Returns the node after byte; 0: no string continues this way, or the trie is empty. */
int32_t trie_step(const struct trie *t, int32_t node, unsigned char byte);

#endif
