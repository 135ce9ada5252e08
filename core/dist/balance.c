#include "dist/balance.h"

#include <stdlib.h>

struct item {
    int64_t cost, index;
};

static int dearest_first(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? 1 : -1;
    return x->index < y->index ? -1 : 1;
}

tare_status balance(const int64_t *cost, int64_t n, int64_t hands, int64_t *to, struct arena *arena, struct err *e)
{
    struct item *items;
    int64_t *load;
    TRY(arena_new(arena, &items, n, e));
    TRY(arena_new(arena, &load, hands, e));
    for (int64_t i = 0; i < n; i++) items[i] = (struct item){cost[i], i};
    qsort(items, (size_t)n, sizeof *items, dearest_first);
    for (int64_t i = 0; i < n; i++) {
        int64_t least = 0;
        for (int64_t h = 1; h < hands; h++)
            if (load[h] < load[least]) least = h;
        load[least] += items[i].cost;
        to[items[i].index] = least;
    }
    return TARE_OK;
}
