/* A set of 64-bit hashes, each with the index at which it was first added. Internal to core/data.
 * Zero-initialise. */
#ifndef TARE_CORE_DATA_HASH_SET_H
#define TARE_CORE_DATA_HASH_SET_H

#include "base/err.h"

struct seen {
    struct seen_slot {
        uint64_t hash;
        int64_t index; /* index + 1; 0: empty slot */
    } * slots;
    int64_t n, capacity; /* a power of two */
};

/* earlier: the index with which the hash was added before, or -1 if it is new. */
tare_status hash_set_add(struct seen *s, uint64_t hash, int64_t index, int64_t *earlier, struct err *e);
void hash_set_free(struct seen *s);

#endif
