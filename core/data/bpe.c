#include "data/bpe.h"

#include "base/arena.h"

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

tare_status merges_new(struct merges *m, int64_t n, struct err *e)
{
    *m = (struct merges){.n_slots = 64};
    while (m->n_slots < n + n / 2) m->n_slots *= 2;
    TRY(mem_new(m->n_slots * (int64_t)sizeof *m->slots, (void **)&m->slots, e));
    for (int64_t i = 0; i < m->n_slots; i++) m->slots[i].pair = UINT64_MAX;
    return TARE_OK;
}

void merges_add(struct merges *m, int32_t left, int32_t right, int32_t rank, int32_t joined)
{
    struct merge_slot *slot = &m->slots[place_of(m, pair_of(left, right))];
    if (slot->pair == UINT64_MAX) *slot = (struct merge_slot){pair_of(left, right), rank, joined};
}

const struct merge_slot *merges_find(const struct merges *m, int32_t left, int32_t right)
{
    const struct merge_slot *slot = &m->slots[place_of(m, pair_of(left, right))];
    return slot->pair == UINT64_MAX ? NULL : slot;
}

void merges_free(struct merges *m)
{
    mem_free(m->slots);
    *m = (struct merges){0};
}

/* ---------------------------------------------------------------- merging */

enum { NONE = INT32_MAX, SHORT_PIECE = 48 };

struct bpe_node { /* a symbol, and its pair with the next one */
    int32_t id, rank, joined;
    int32_t before, after; /* long pieces: linked; -1 ends */
};

struct bpe_heap_item {
    int32_t rank, node, left, right; /* left, right: ids when it was queued */
};

static void look_up(const struct merges *m, struct bpe_node *left, int32_t right)
{
    const struct merge_slot *s = merges_find(m, left->id, right);
    left->rank = s ? s->rank : NONE;
    left->joined = s ? s->joined : 0;
}

/* A short piece: scan for the lowest rank, close the gap, again. */
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

static bool earlier(const struct bpe_heap_item *a, const struct bpe_heap_item *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->node < b->node;
}

static void heap_push(struct bpe_heap_item *heap, int64_t *n, struct bpe_heap_item item)
{
    int64_t i = (*n)++;
    for (; i > 0 && earlier(&item, &heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = item;
}

static struct bpe_heap_item heap_pop(struct bpe_heap_item *heap, int64_t *n)
{
    const struct bpe_heap_item top = heap[0], last = heap[--*n];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < *n; i = child) {
        if (child + 1 < *n && earlier(&heap[child + 1], &heap[child])) child++;
        if (!earlier(&heap[child], &last)) break;
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

/* A long piece: pairs wait in a heap, O(n log n). An item whose two symbols have changed since is dropped. Each merge queues two
 * pairs at most, so the heap never holds more than 3n. */
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

/* ---------------------------------------------------------------- pieces met before */

enum { CACHE_TEXT = 28, CACHE_IDS = 8, CACHE_SLOTS = 1 << 14 };

struct bpe_cached { /* one cache line */
    uint8_t size, n;
    unsigned char text[CACHE_TEXT + 2];
    int32_t ids[CACHE_IDS];
};

static uint64_t read_word(const unsigned char *p, int64_t n)
{
    uint64_t w = 0;
    memcpy(&w, p, (size_t)n);
    return w;
}

static struct bpe_cached *cache_slot(struct bpe_scratch *s, const unsigned char *piece, int64_t n)
{
    uint64_t h = (uint64_t)n * 0xA0761D6478BD642Fu;
    for (; n >= 8; piece += 8, n -= 8) {
        h = (h ^ read_word(piece, 8)) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    h = (h ^ read_word(piece, n)) * 0xE7037ED1A0B428DBu;
    return &s->cache[(h >> 40) & (CACHE_SLOTS - 1)];
}

tare_status bpe_scratch_new(struct bpe_scratch **out, struct err *e)
{
    struct bpe_scratch *s;
    TRY(mem_new(sizeof *s, (void **)&s, e));
    const tare_status status = mem_new(CACHE_SLOTS * (int64_t)sizeof *s->cache, (void **)&s->cache, e);
    if (status) mem_free(s);
    *out = status ? NULL : s;
    return status;
}

void bpe_scratch_free(struct bpe_scratch *s)
{
    if (!s) return;
    mem_free(s->nodes);
    mem_free(s->heap);
    mem_free(s->cache);
    mem_free(s);
}

static tare_status append(struct token_ids *out, const int32_t *ids, int64_t n, struct err *e)
{
    if (out->n + n > out->capacity) TRY(mem_grow((void **)&out->data, &out->capacity, out->n + n, sizeof *out->data, e));
    if (n) memcpy(out->data + out->n, ids, (size_t)n * sizeof *ids);
    out->n += n;
    return TARE_OK;
}

static tare_status merge_piece(const struct bpe *b, struct bpe_scratch *s, const unsigned char *piece, int64_t n,
                               struct token_ids *out, struct err *e)
{
    const int32_t *byte_id = b->vocab->byte_id;
    if (n > INT32_MAX / 4) FAIL(e, TARE_E_RANGE, "a text of %lld bytes without a place to cut is too long to encode", (long long)n);
    TRY(mem_grow((void **)&s->nodes, &s->n_nodes, n, sizeof *s->nodes, e));
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (byte_id[piece[i]] >= 0) s->nodes[count++].id = byte_id[piece[i]];
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

tare_status bpe_encode(const struct bpe *b, struct bpe_scratch *s, const unsigned char *piece, int64_t n, struct token_ids *out,
                       struct err *e)
{
    struct bpe_cached *c = n <= CACHE_TEXT ? cache_slot(s, piece, n) : NULL;
    if (c && c->size == n && !memcmp(c->text, piece, (size_t)n)) return append(out, c->ids, c->n, e);
    const int64_t begin = out->n;
    const int32_t id = b->whole ? vocab_find_bytes(b->vocab, piece, n) : -1;
    TRY(id >= 0 ? append(out, &id, 1, e) : merge_piece(b, s, piece, n, out, e));
    if (!c || out->n - begin > CACHE_IDS) return TARE_OK;
    c->size = (uint8_t)n;
    c->n = (uint8_t)(out->n - begin);
    memcpy(c->text, piece, (size_t)n);
    if (c->n) memcpy(c->ids, out->data + begin, c->n * sizeof *c->ids);
    return TARE_OK;
}
