/* One region of memory that is handed out in pieces: what a device backend took at the start of a run (kernels.h, reserve). Only the accounting: pieces are
 * offsets, the memory itself is never touched, so it may lie where the host cannot go. The smallest free piece that is large enough is taken, at its
 * lower end; a piece that is given back joins its free neighbours. Not thread-safe. Header only, C and C++: libtare_cuda.so links nothing of the engine. */
#ifndef TARE_KERNELS_REGION_H
#define TARE_KERNELS_REGION_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { REGION_ALIGN = 256 };

struct region_piece {
    int64_t at, size; /* bytes, multiples of REGION_ALIGN */
    int used;
};

struct region {
    int64_t size, held, most;    /* bytes: all, handed out, the most ever handed out */
    struct region_piece *pieces; /* [n] by address, covering everything; no two free neighbours */
    int64_t n, room;
};

static inline int64_t region_round(int64_t bytes)
{
    return ((bytes > 0 ? bytes : 1) + REGION_ALIGN - 1) / REGION_ALIGN * REGION_ALIGN;
}

static inline void region_close(struct region *r)
{
    free(r->pieces);
    memset(r, 0, sizeof *r);
}

/* Of `size` bytes, a multiple of REGION_ALIGN; 0: no memory for the accounting. */
static inline int region_open(struct region *r, int64_t size)
{
    memset(r, 0, sizeof *r);
    r->pieces = (struct region_piece *)calloc(64, sizeof *r->pieces);
    if (!r->pieces) return 0;
    r->room = 64;
    r->size = r->pieces[0].size = size;
    r->n = 1;
    return 1;
}

static inline int64_t region_largest(const struct region *r)
{
    int64_t largest = 0;
    for (int64_t i = 0; i < r->n; i++)
        if (!r->pieces[i].used && r->pieces[i].size > largest) largest = r->pieces[i].size;
    return largest;
}

/* A place among the pieces at i. */
static inline int region_insert(struct region *r, int64_t i)
{
    if (r->n == r->room) {
        struct region_piece *grown = (struct region_piece *)realloc(r->pieces, (size_t)(2 * r->room) * sizeof *grown);
        if (!grown) return 0;
        r->pieces = grown;
        r->room *= 2;
    }
    memmove(r->pieces + i + 1, r->pieces + i, (size_t)(r->n++ - i) * sizeof *r->pieces);
    return 1;
}

static inline void region_remove(struct region *r, int64_t i)
{
    memmove(r->pieces + i, r->pieces + i + 1, (size_t)(--r->n - i) * sizeof *r->pieces);
}

/* Where a piece of at least that many bytes starts, or -1: there is none. */
static inline int64_t region_take(struct region *r, int64_t bytes)
{
    const int64_t size = bytes < r->size ? region_round(bytes) : bytes;
    int64_t best = -1;
    for (int64_t i = 0; i < r->n; i++) {
        const struct region_piece *p = &r->pieces[i];
        if (!p->used && p->size >= size && (best < 0 || p->size < r->pieces[best].size)) best = i;
    }
    if (best < 0) return -1;
    if (r->pieces[best].size > size) {
        if (!region_insert(r, best)) return -1;
        r->pieces[best].size = size;
        r->pieces[best + 1].at += size;
        r->pieces[best + 1].size -= size;
    }
    r->pieces[best].used = 1;
    r->held += size;
    if (r->held > r->most) r->most = r->held;
    return r->pieces[best].at;
}

/* The bytes of the piece that starts at `at`; 0: none does. */
static inline int64_t region_give(struct region *r, int64_t at)
{
    int64_t low = 0, high = r->n;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (r->pieces[middle].at <= at)
            low = middle;
        else
            high = middle;
    }
    if (!r->n || r->pieces[low].at != at || !r->pieces[low].used) return 0;
    const int64_t size = r->pieces[low].size;
    r->pieces[low].used = 0;
    r->held -= size;
    if (low + 1 < r->n && !r->pieces[low + 1].used) {
        r->pieces[low].size += r->pieces[low + 1].size;
        region_remove(r, low + 1);
    }
    if (low > 0 && !r->pieces[low - 1].used) {
        r->pieces[low - 1].size += r->pieces[low].size;
        region_remove(r, low);
    }
    return size;
}

#endif
