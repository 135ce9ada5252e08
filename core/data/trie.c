#include "data/trie.h"

#include "base/arena.h"

int32_t trie_step(const struct trie *t, int32_t node, unsigned char byte)
{
    if (!t->n) return 0;
    int32_t c = t->nodes[node].child;
    while (c && t->nodes[c].byte != byte) c = t->nodes[c].sibling;
    return c;
}

static tare_status new_node(struct trie *t, unsigned char byte, int32_t *out, struct err *e)
{
    TRY(mem_grow((void **)&t->nodes, &t->capacity, t->n + 1, sizeof *t->nodes, e));
    *out = (int32_t)t->n++;
    t->nodes[*out] = (struct trie_node){.id = -1, .byte = byte};
    return TARE_OK;
}

tare_status trie_insert(struct trie *t, const char *content, int64_t n, int32_t id, struct err *e)
{
    int32_t node = 0;
    if (!t->n) TRY(new_node(t, 0, &node, e));
    for (int64_t i = 0; i < n; i++) {
        const unsigned char byte = (unsigned char)content[i];
        int32_t next = trie_step(t, node, byte);
        if (!next) {
            TRY(new_node(t, byte, &next, e));
            t->nodes[next].sibling = t->nodes[node].child;
            t->nodes[node].child = next;
        }
        node = next;
    }
    t->nodes[node].id = id;
    return TARE_OK;
}

void trie_free(struct trie *t)
{
    mem_free(t->nodes);
    *t = (struct trie){0};
}
