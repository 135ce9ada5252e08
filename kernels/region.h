/* Allocator for one region of memory that a device backend reserved at the start of a run
 * (kernels.h, reserve). It only does the accounting: blocks are offsets, and the memory itself is
 * never touched, so the host need not be able to access it. Best fit: the smallest free block that
 * is large enough is used, from its lower end. A released block joins its free neighbours. Not
 * thread-safe. Header only, for C and C++, because libtare_cuda.so does not link to the engine. */
#ifndef TARE_KERNELS_REGION_H
#define TARE_KERNELS_REGION_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { REGION_ALIGN = 256 };

struct region_block {
    int64_t at, size; /* bytes, multiples of REGION_ALIGN */
    int used;
};

struct region {
    int64_t size, held, most; /* bytes: total, handed out, peak */
    /* [n] by address, covering the region; no two adjacent free blocks */
    struct region_block *blocks;
    int64_t n, capacity;
};

static inline int64_t region_round(int64_t bytes)
{
    return ((bytes > 0 ? bytes : 1) + REGION_ALIGN - 1) / REGION_ALIGN * REGION_ALIGN;
}

static inline void region_close(struct region *r)
{
    free(r->blocks);
    memset(r, 0, sizeof *r);
}

/* Open a region of `size` bytes, a multiple of REGION_ALIGN; 0: no memory for the accounting. */
static inline int region_open(struct region *r, int64_t size)
{
    memset(r, 0, sizeof *r);
    r->blocks = (struct region_block *)calloc(64, sizeof *r->blocks);
    if (!r->blocks) return 0;
    r->capacity = 64;
    r->size = r->blocks[0].size = size;
    r->n = 1;
    return 1;
}

static inline int64_t region_largest(const struct region *r)
{
    int64_t largest = 0;
    for (int64_t i = 0; i < r->n; i++)
        if (!r->blocks[i].used && r->blocks[i].size > largest) largest = r->blocks[i].size;
    return largest;
}

/* Insert an entry at index i. */
static inline int region_insert(struct region *r, int64_t i)
{
    if (r->n == r->capacity) {
        struct region_block *grown = (struct region_block *)realloc(r->blocks, (size_t)(2 * r->capacity) * sizeof *grown);
        if (!grown) return 0;
        r->blocks = grown;
        r->capacity *= 2;
    }
    memmove(r->blocks + i + 1, r->blocks + i, (size_t)(r->n++ - i) * sizeof *r->blocks);
    return 1;
}

static inline void region_remove(struct region *r, int64_t i)
{
    memmove(r->blocks + i, r->blocks + i + 1, (size_t)(--r->n - i) * sizeof *r->blocks);
}

/* Allocate at least that many bytes and return their offset; -1: no free block is large enough. */
static inline int64_t region_take(struct region *r, int64_t bytes)
{
    const int64_t size = bytes < r->size ? region_round(bytes) : bytes;
    int64_t best = -1;
    for (int64_t i = 0; i < r->n; i++) {
        const struct region_block *p = &r->blocks[i];
        if (!p->used && p->size >= size && (best < 0 || p->size < r->blocks[best].size)) best = i;
    }
    if (best < 0) return -1;
    if (r->blocks[best].size > size) {
        if (!region_insert(r, best)) return -1;
        r->blocks[best].size = size;
        r->blocks[best + 1].at += size;
        r->blocks[best + 1].size -= size;
    }
    r->blocks[best].used = 1;
    r->held += size;
    if (r->held > r->most) r->most = r->held;
    return r->blocks[best].at;
}

/* Release the block that starts at `at` and return its bytes; 0: no block starts there. */
static inline int64_t region_give(struct region *r, int64_t at)
{
    int64_t low = 0, high = r->n;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (r->blocks[middle].at <= at)
            low = middle;
        else
            high = middle;
    }
    if (!r->n || r->blocks[low].at != at || !r->blocks[low].used) return 0;
    const int64_t size = r->blocks[low].size;
    r->blocks[low].used = 0;
    r->held -= size;
    if (low + 1 < r->n && !r->blocks[low + 1].used) {
        r->blocks[low].size += r->blocks[low + 1].size;
        region_remove(r, low + 1);
    }
    if (low > 0 && !r->blocks[low - 1].used) {
        r->blocks[low - 1].size += r->blocks[low].size;
        region_remove(r, low);
    }
    return size;
}

#endif
