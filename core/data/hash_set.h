/* A set of 64-bit hashes, each with the index where it was met first. Internal to the data folder. Zero-initialise. */
#ifndef TARE_CORE_DATA_HASH_SET_H
#define TARE_CORE_DATA_HASH_SET_H

#include "base/err.h"

struct seen {
    struct seen_slot {
        uint64_t hash;
        int64_t index; /* plus 1; 0: free */
    } * slots;
    int64_t n, capacity; /* a power of two */
};

/* earlier: the index the hash was added with before, or -1 when it is new (and is added). */
tare_status hash_set_add(struct seen *s, uint64_t hash, int64_t index, int64_t *earlier, struct err *e);
void hash_set_free(struct seen *s);

#endif
