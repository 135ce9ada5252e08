#include "data/bpe.h"

#include "base/arena.h"
#include "base/utf8.h"

#include <string.h>

/* ---------------------------------------------------------------- the table of merges */

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static int64_t home_of(const struct merges *m, uint64_t pair)
{
    uint64_t h = pair * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
    return (int64_t)(h & (uint64_t)(m->n_slots - 1));
}

static int64_t place_of(const struct merges *m, uint64_t pair)
{
    int64_t i = home_of(m, pair);
    while (m->slots[i].pair != pair && m->slots[i].pair != UINT64_MAX) i = (i + 1) & (m->n_slots - 1);
    return i;
}

tare_status bpe_merges_new(struct merges *m, int64_t n, struct err *e)
{
    *m = (struct merges){.n_slots = 64};
    while (m->n_slots < n + n / 2) m->n_slots *= 2;
    TRY(mem_new(m->n_slots * (int64_t)sizeof *m->slots, (void **)&m->slots, e));
    for (int64_t i = 0; i < m->n_slots; i++) m->slots[i].pair = UINT64_MAX;
    return TARE_OK;
}

void bpe_merges_add(struct merges *m, int32_t left, int32_t right, int32_t rank, int32_t joined)
{
    struct merge_slot *slot = &m->slots[place_of(m, pair_of(left, right))];
    if (slot->pair == UINT64_MAX) *slot = (struct merge_slot){pair_of(left, right), rank, joined};
}

const struct merge_slot *bpe_merges_find(const struct merges *m, int32_t left, int32_t right)
{
    const struct merge_slot *slot = &m->slots[place_of(m, pair_of(left, right))];
    return slot->pair == UINT64_MAX ? NULL : slot;
}

void bpe_merges_free(struct merges *m)
{
    mem_free(m->slots);
    *m = (struct merges){0};
}

/* ---------------------------------------------------------------- merging */

enum { NONE = INT32_MAX, SHORT_PIECE = 48 };

struct bpe_node { /* a symbol and the pair it forms with the next one */
    int32_t id, rank, joined;
    int32_t before, after; /* linked list for long pieces; -1 ends it */
};

struct bpe_heap_item {
    int32_t rank, node, left, right; /* left, right: ids when the item was queued */
};

static void look_up(const struct merges *m, struct bpe_node *left, int32_t right)
{
    const struct merge_slot *s = bpe_merges_find(m, left->id, right);
    left->rank = s ? s->rank : NONE;
    left->joined = s ? s->joined : 0;
}

/* Merges a short piece: scans for the lowest rank, closes the gap and repeats. */
static int64_t merge_short(const struct merges *m, struct bpe_node *nodes, int64_t n)
{
    for (int64_t i = 0; i + 1 < n; i++) look_up(m, &nodes[i], nodes[i + 1].id);
    while (n > 1) {
        int64_t best = 0;
        for (int64_t i = 1; i + 1 < n; i++)
            if (nodes[i].rank < nodes[best].rank) best = i;
        if (nodes[best].rank == NONE) break;
        nodes[best].id = nodes[best].joined;
        n--;
        memmove(&nodes[best + 1], &nodes[best + 2], (size_t)(n - best - 1) * sizeof *nodes);
        if (best + 1 < n) look_up(m, &nodes[best], nodes[best + 1].id);
        if (best > 0) look_up(m, &nodes[best - 1], nodes[best].id);
    }
    return n;
}

static bool merges_before(const struct bpe_heap_item *a, const struct bpe_heap_item *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->node < b->node;
}

static void heap_push(struct bpe_heap_item *heap, int64_t *n, struct bpe_heap_item item)
{
    int64_t i = (*n)++;
    for (; i > 0 && merges_before(&item, &heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = item;
}

static struct bpe_heap_item heap_pop(struct bpe_heap_item *heap, int64_t *n)
{
    const struct bpe_heap_item top = heap[0], last = heap[--*n];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < *n; i = child) {
        if (child + 1 < *n && merges_before(&heap[child + 1], &heap[child])) child++;
        if (!merges_before(&heap[child], &last)) break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

static void queue_pair(const struct merges *m, struct bpe_node *nodes, int32_t at, struct bpe_heap_item *heap, int64_t *n_heap)
{
    const int32_t next = nodes[at].after;
    if (next < 0) return;
    look_up(m, &nodes[at], nodes[next].id);
    if (nodes[at].rank != NONE) heap_push(heap, n_heap, (struct bpe_heap_item){nodes[at].rank, at, nodes[at].id, nodes[next].id});
}

/* Merges a long piece in O(n log n): pairs wait in a heap, and an item is dropped if either of its
 * symbols has changed since. Each merge queues at most two pairs, so the heap holds at most 3n
 * items. */
static int64_t merge_long(const struct merges *m, struct bpe_scratch *s, int64_t n)
{
    struct bpe_node *nodes = s->nodes;
    int64_t n_heap = 0, count = 0;
    for (int32_t i = 0; i < n; i++) {
        nodes[i].before = i - 1;
        nodes[i].after = i + 1 < n ? i + 1 : -1;
    }
    for (int32_t i = 0; i < n; i++) queue_pair(m, nodes, i, s->heap, &n_heap);
    while (n_heap) {
        const struct bpe_heap_item top = heap_pop(s->heap, &n_heap);
        struct bpe_node *left = &nodes[top.node];
        if (left->id != top.left || left->after < 0 || nodes[left->after].id != top.right) continue;
        const struct bpe_node *right = &nodes[left->after];
        const int32_t after = right->after;
        nodes[left->after].id = -1;
        left->id = left->joined;
        left->after = after;
        if (after >= 0) nodes[after].before = top.node;
        if (left->before >= 0) queue_pair(m, nodes, left->before, s->heap, &n_heap);
        queue_pair(m, nodes, top.node, s->heap, &n_heap);
    }
    for (int32_t i = 0; i >= 0 && i < n; i = nodes[i].after) nodes[count++].id = nodes[i].id;
    return count;
}

void bpe_scratch_free(struct bpe_scratch *s)
{
    mem_free(s->nodes);
    mem_free(s->heap);
    *s = (struct bpe_scratch){0};
}

static int64_t byte_symbols(const struct symbols *symbols, const unsigned char *piece, int64_t n, struct bpe_node *nodes)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (symbols->byte_id[piece[i]] >= 0) nodes[count++].id = symbols->byte_id[piece[i]];
    return count;
}

/* Emits the token of a character, else its byte tokens, else the unknown token; without one the
 * character vanishes. An unknown character waits for the next known one, and byte tokens in between
 * precede it, as in HF. */
static int64_t char_symbols(const struct bpe *b, const unsigned char *piece, int64_t n, struct bpe_node *nodes)
{
    const struct symbols *symbols = b->symbols;
    int64_t count = 0;
    bool unknown = false;
    for (const unsigned char *p = piece, *at; p < piece + n;) {
        at = p;
        utf8_next(&p);
        const int32_t id = symbols_char(symbols, b->vocab, at, p - at);
        if (id < 0 && symbols_have_bytes(symbols, at, p - at)) {
            for (; at < p; at++) nodes[count++].id = symbols->fallback_id[*at];
            continue;
        }
        if (id < 0 && symbols->unknown < 0) continue;
        if (unknown && (id >= 0 || !symbols->fuse_unknown)) nodes[count++].id = symbols->unknown;
        unknown = id < 0;
        if (id >= 0) nodes[count++].id = id;
    }
    if (unknown) nodes[count++].id = symbols->unknown;
    return count;
}

tare_status bpe_encode(const struct bpe *b, struct bpe_scratch *s, const unsigned char *piece, int64_t n, struct token_ids *out,
                       struct err *e)
{
    if (n > INT32_MAX / 4) FAIL(e, TARE_E_RANGE, "a text of %lld bytes that cannot be split is too long to encode", (long long)n);
    TRY(mem_grow((void **)&s->nodes, &s->n_nodes, n, sizeof *s->nodes, e));
    int64_t count = b->symbols->characters ? char_symbols(b, piece, n, s->nodes) : byte_symbols(b->symbols, piece, n, s->nodes);
    if (count > SHORT_PIECE) {
        TRY(mem_grow((void **)&s->heap, &s->n_heap, 3 * count, sizeof *s->heap, e));
        count = merge_long(b->merges, s, count);
    } else {
        count = merge_short(b->merges, s->nodes, count);
    }
    if (out->n + count > out->capacity) TRY(mem_grow((void **)&out->data, &out->capacity, out->n + count, sizeof *out->data, e));
    for (int64_t i = 0; i < count; i++) out->data[out->n + i] = s->nodes[i].id;
    out->n += count;
    return TARE_OK;
}
