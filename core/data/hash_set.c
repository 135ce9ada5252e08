#include "data/hash_set.h"

#include "base/arena.h"

static struct seen_slot *slot_of(const struct seen *s, uint64_t hash)
{
    const uint64_t mask = (uint64_t)s->capacity - 1;
    uint64_t i = hash & mask;
    while (s->slots[i].index && s->slots[i].hash != hash) i = (i + 1) & mask;
    return &s->slots[i];
}

static tare_status grow_table(struct seen *s, struct err *e)
{
    struct seen bigger = {.n = s->n, .capacity = s->capacity ? 2 * s->capacity : 256};
    TRY(mem_new(bigger.capacity * (int64_t)sizeof *bigger.slots, (void **)&bigger.slots, e));
    for (int64_t i = 0; i < s->capacity; i++)
        if (s->slots[i].index) *slot_of(&bigger, s->slots[i].hash) = s->slots[i];
    mem_free(s->slots);
    *s = bigger;
    return TARE_OK;
}

tare_status hash_set_add(struct seen *s, uint64_t hash, int64_t index, int64_t *earlier, struct err *e)
{
    if (2 * s->n >= s->capacity) TRY(grow_table(s, e));
    struct seen_slot *slot = slot_of(s, hash);
    *earlier = slot->index - 1;
    if (slot->index) return TARE_OK;
    *slot = (struct seen_slot){hash, index + 1};
    s->n++;
    return TARE_OK;
}

void hash_set_free(struct seen *s)
{
    mem_free(s->slots);
    *s = (struct seen){0};
}
