#include "data/added_tokens.h"

#include "base/arena.h"

#include <string.h>

static int32_t child_of(const struct added *a, int32_t node, unsigned char byte)
{
    int32_t c = a->nodes[node].child;
    while (c && a->nodes[c].byte != byte) c = a->nodes[c].sibling;
    return c;
}

static tare_status new_node(struct added *a, unsigned char byte, int32_t *out, struct err *e)
{
    TRY(mem_grow((void **)&a->nodes, &a->capacity, a->n + 1, sizeof *a->nodes, e));
    *out = (int32_t)a->n++;
    a->nodes[*out] = (struct added_node){.id = -1, .byte = byte};
    return TARE_OK;
}

tare_status added_insert(struct added *a, const char *content, int64_t n, int32_t id, struct err *e)
{
    int32_t node = 0;
    if (!a->n) {
        TRY(new_node(a, 0, &node, e));
        a->only = (unsigned char)content[0];
    }
    if (a->only != (unsigned char)content[0]) a->only = -1;
    a->begins[(unsigned char)content[0]] = true;
    for (int64_t i = 0; i < n; i++) {
        const unsigned char byte = (unsigned char)content[i];
        int32_t next = child_of(a, node, byte);
        if (!next) {
            TRY(new_node(a, byte, &next, e));
            a->nodes[next].sibling = a->nodes[node].child;
            a->nodes[node].child = next;
        }
        node = next;
    }
    a->nodes[node].id = id;
    return TARE_OK;
}

void added_free(struct added *a)
{
    mem_free(a->nodes);
    *a = (struct added){0};
}

static int64_t longest_at(const struct added *a, const unsigned char *p, const unsigned char *end, int32_t *id)
{
    const unsigned char *begin = p;
    int64_t size = 0;
    for (int32_t node = 0; p < end && (node = child_of(a, node, *p));) {
        p++;
        if (a->nodes[node].id < 0) continue;
        *id = a->nodes[node].id;
        size = p - begin;
    }
    return size;
}

bool added_find(const struct added *a, const unsigned char *text, int64_t n, int64_t *at, int64_t *size, int32_t *id)
{
    if (!a->n) return false;
    for (const unsigned char *p = text, *end = text + n; p < end; p++) {
        if (a->only >= 0) {
            p = memchr(p, a->only, (size_t)(end - p));
            if (!p) return false;
        } else if (!a->begins[*p]) {
            continue;
        }
        *size = longest_at(a, p, end, id);
        *at = p - text;
        if (*size) return true;
    }
    return false;
}
