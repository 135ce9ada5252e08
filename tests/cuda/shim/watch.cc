/* Watches the reads and writes of a kernel's threads. The kernels are compiled with gcc's or
 * clang's instrumentation for ThreadSanitizer, which calls a function before every access to memory
 * that another thread could see. Those functions are here; ThreadSanitizer itself is not linked.
 *
 * Shared memory that a block has not written reads as NaN. Every 2 bytes of shared memory and of
 * device allocations have a cell with the last writer, the last reader and their times. Time is a
 * counter that advances at the beginning of a launch, of a block, and at each barrier. Two accesses
 * race if
 *   their times are equal and their threads differ (unless a __syncwarp of their warp is
 *   between), or they belong to the same launch and to different blocks,
 * and one of them writes and not both are atomic.
 *
 * A launch may begin before the preceding one has ended (cuda.h, CUDA_LAUNCH_AFTER). Until one of
 * its threads has waited, it must write nothing, and must not read memory written by a launch since
 * the last one that began after all earlier launches had ended. */
#include "internal.h"

#include <stdio.h>
#include <sys/mman.h>

enum { GRANULE = 2, ALLOCATIONS_MOST = 4096, MANY = 0xffff };

struct cell { /* time 0: never */
    uint32_t write_time, read_time, write_sync, read_sync;
    uint16_t writer, reader; /* thread; or MANY */
    uint16_t write_atomic, read_atomic;
};

struct region {
    uintptr_t begin, end;
    struct cell *cells; /* created at the first access by a kernel */
};

static struct region regions[ALLOCATIONS_MOST]; /* sorted by address */
static int n_regions;
static struct region shared_static, shared_dynamic;
/* chain: begin of the last launch that began after all earlier ones had ended */
static uint32_t now = 1, launch_begin, block_begin, chain_begin;
static bool atomic_now, quiet;

/* A kernel's __shared__ variables are static variables of this program. Kernels have no other
 * variables, so they may access all of its data. The program's image below that is constant. */
extern "C" char __executable_start[], __data_start[], _end[];

void watch_launch(bool follows)
{
    launch_begin = ++now;
    if (!follows) chain_begin = now;
}

void watch_block(void)
{
    block_begin = ++now;
    /* shared memory is new in every block */
    shared_static.begin = (uintptr_t)__data_start, shared_static.end = (uintptr_t)_end;
    shared_dynamic.begin = shim_view.shared_begin, shared_dynamic.end = shim_view.shared_end;
}

void watch_barrier(void)
{
    now++;
}

/* Index of the last region that begins at or below a. */
static int region_below(uintptr_t a)
{
    int low = 0, high = n_regions;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (regions[middle].begin <= a)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

static void cells_free(struct region *r)
{
    if (r->cells) munmap(r->cells, (r->end - r->begin + GRANULE) / GRANULE * sizeof *r->cells);
    r->cells = NULL;
}

static bool cells_new(struct region *r, size_t bytes)
{
    void *p = mmap(NULL, (bytes + GRANULE) / GRANULE * sizeof *r->cells, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    r->cells = p == MAP_FAILED ? NULL : (struct cell *)p;
    return r->cells != NULL;
}

void watch_add(void *p, size_t bytes)
{
    const int at = region_below((uintptr_t)p) + 1;
    if (n_regions == ALLOCATIONS_MOST) return;
    memmove(regions + at + 1, regions + at, (size_t)(n_regions++ - at) * sizeof *regions);
    regions[at] = {(uintptr_t)p, (uintptr_t)p + bytes, NULL};
}

void watch_remove(void *p)
{
    const int at = region_below((uintptr_t)p);
    if (at < 0 || regions[at].begin != (uintptr_t)p) {
        shim_report("freed memory was not allocated");
        return;
    }
    cells_free(&regions[at]);
    memmove(regions + at, regions + at + 1, (size_t)(--n_regions - at) * sizeof *regions);
}

/* ---- races */

/* True: ordered, or the same thread, or another launch. */
static bool apart(uint32_t time, uint32_t sync, uint16_t other, int thread)
{
    if (time == now) {
        if (other == thread) return true;
        return other != MANY && other / 32 == thread / 32 && sync != shim_view.warp_syncs;
    }
    return !(time >= launch_begin && time < block_begin);
}

static void race(const struct region *r, uintptr_t a, const char *before, const char *after, uint32_t time, uint16_t other)
{
    const bool shared = r == &shared_static || r == &shared_dynamic;
    char who[40];
    if (time != now)
        snprintf(who, sizeof who, "another block");
    else if (other == MANY)
        snprintf(who, sizeof who, "several threads");
    else
        snprintf(who, sizeof who, "thread %d", other);
    shim_report("race: %s %s byte %zu of %s, thread %d %s it, and nothing is between them", who, before, (size_t)(a - r->begin),
                shared ? "shared memory" : "device memory", shim_view.thread, after);
}

static void touch(struct region *r, uintptr_t a, bool write)
{
    struct cell *c = &r->cells[(a - r->begin) / GRANULE];
    const int thread = shim_view.thread;
    const bool shared = r == &shared_static || r == &shared_dynamic;
    if (shim_view.early && !shared && (write || c->write_time >= chain_begin))
        shim_report("thread %d %s byte %zu of device memory before it has waited for the preceding launches%s", thread,
                    write ? "writes" : "reads", (size_t)(a - r->begin), write ? "" : ", which write it");
    /* a shared word of an earlier block does not count */
    if (c->write_time && !(shared && c->write_time < block_begin) && !(atomic_now && c->write_atomic) &&
        !apart(c->write_time, c->write_sync, c->writer, thread))
        race(r, a, "wrote", write ? "writes" : "reads", c->write_time, c->writer);
    if (shared && !write && c->write_time < block_begin)
        memset((void *)(a / GRANULE * GRANULE), 0xff, GRANULE); /* never written: NaN */
    if (write && c->read_time && !(shared && c->read_time < block_begin) && !(atomic_now && c->read_atomic) &&
        !apart(c->read_time, c->read_sync, c->reader, thread))
        race(r, a, "read", "writes", c->read_time, c->reader);
    if (write) {
        c->write_time = now, c->writer = (uint16_t)thread, c->write_sync = shim_view.warp_syncs, c->write_atomic = atomic_now;
        return;
    }
    const bool others = c->read_time == now && c->reader != thread;
    c->reader = (uint16_t)(others ? MANY : thread);
    c->read_time = now, c->read_sync = shim_view.warp_syncs, c->read_atomic = atomic_now;
}

/* ---- accesses */

static void outside(uintptr_t a, int bytes, bool write)
{
    const int at = region_below(a);
    const char *what = write ? "writes" : "reads";
    if (at >= 0 && a < regions[at].end + 4096)
        shim_report("thread %d %s %d bytes, %zu bytes after the beginning of an allocation of %zu", shim_view.thread, what, bytes,
                    (size_t)(a - regions[at].begin), (size_t)(regions[at].end - regions[at].begin));
    else if (at + 1 < n_regions && a + 4096 > regions[at + 1].begin)
        shim_report("thread %d %s %d bytes, %zu bytes before an allocation of %zu", shim_view.thread, what, bytes,
                    (size_t)(regions[at + 1].begin - a), (size_t)(regions[at + 1].end - regions[at + 1].begin));
    else
        shim_report("thread %d %s %d bytes at %p, which is not device memory", shim_view.thread, what, bytes, (void *)a);
}

static bool within(const struct region *r, uintptr_t a, int bytes)
{
    return a >= r->begin && a + (uintptr_t)bytes <= r->end;
}

static struct region *region_of(uintptr_t a, int bytes)
{
    /* dynamic shared memory: only as much as the launch requested */
    if (a >= shim_view.shared_all_begin && a < shim_view.shared_all_end) {
        if (!within(&shared_dynamic, a, bytes)) return NULL;
        if (!shared_dynamic.cells && !cells_new(&shared_dynamic, 256 << 10)) return NULL;
        return &shared_dynamic;
    }
    if (within(&shared_static, a, bytes)) {
        if (!shared_static.cells && !cells_new(&shared_static, shared_static.end - shared_static.begin)) return NULL;
        return &shared_static;
    }
    const int at = region_below(a);
    if (at < 0 || !within(&regions[at], a, bytes)) return NULL;
    if (!regions[at].cells && !cells_new(&regions[at], regions[at].end - regions[at].begin)) return NULL;
    return &regions[at];
}

static void access(const void *p, int bytes, bool write)
{
    const uintptr_t a = (uintptr_t)p;
    if (quiet) return;
    if (!shim_view.running) {
        const int at = region_below(a);
        if (at >= 0 && a < regions[at].end) shim_report("host code accesses device memory");
        return;
    }
    if (a >= shim_view.stack_begin && a < shim_view.stack_end) return;
    if (a >= shim_view.args_begin && a < shim_view.args_end) return;
    if (a % (uintptr_t)bytes && bytes <= 16)
        shim_report("thread %d is at an address that is not a multiple of %d", shim_view.thread, bytes);
    if (a >= (uintptr_t)&shim_now && a < (uintptr_t)(&shim_now + 1) && !write) return;
    if (a >= (uintptr_t)__executable_start && a < (uintptr_t)__data_start && !write) return;
    struct region *r = region_of(a, bytes);
    if (!r) {
        outside(a, bytes, write);
        return;
    }
    for (uintptr_t at = a / GRANULE * GRANULE; at < a + (uintptr_t)bytes; at += GRANULE) touch(r, at < a ? a : at, write);
}

void shim_quiet(int on)
{
    quiet = on;
}

void shim_touch(const void *p, int bytes, int write)
{
#ifdef TARE_SHIM_WATCH
    const bool before = quiet;
    quiet = false;
    access(p, bytes, write);
    quiet = before;
#else
    (void)p, (void)bytes, (void)write;
#endif
}

void shim_asked(const void *p, int bytes)
{
    if (shim_view.early) shim_touch(p, bytes, 0);
}

void shim_atomic_begin(void *p, int bytes)
{
    (void)bytes;
    atomic_now = p != NULL;
}

int shim_watches(void)
{
#ifdef TARE_SHIM_WATCH
    return 1;
#else
    return 0;
#endif
}

#ifdef TARE_SHIM_WATCH
extern "C" {
#define HOOKS(N)                                                                                                                   \
    void __tsan_read##N(void *p)                                                                                                   \
    {                                                                                                                              \
        access(p, N, false);                                                                                                       \
    }                                                                                                                              \
    void __tsan_write##N(void *p)                                                                                                  \
    {                                                                                                                              \
        access(p, N, true);                                                                                                        \
    }                                                                                                                              \
    void __tsan_unaligned_read##N(void *p)                                                                                         \
    {                                                                                                                              \
        access(p, N, false);                                                                                                       \
    }                                                                                                                              \
    void __tsan_unaligned_write##N(void *p)                                                                                        \
    {                                                                                                                              \
        access(p, N, true);                                                                                                        \
    }                                                                                                                              \
    void __tsan_volatile_read##N(void *p)                                                                                          \
    {                                                                                                                              \
        access(p, N, false);                                                                                                       \
    }                                                                                                                              \
    void __tsan_volatile_write##N(void *p)                                                                                         \
    {                                                                                                                              \
        access(p, N, true);                                                                                                        \
    }                                                                                                                              \
    void __tsan_unaligned_volatile_read##N(void *p)                                                                                \
    {                                                                                                                              \
        access(p, N, false);                                                                                                       \
    }                                                                                                                              \
    void __tsan_unaligned_volatile_write##N(void *p)                                                                               \
    {                                                                                                                              \
        access(p, N, true);                                                                                                        \
    }                                                                                                                              \
    void __tsan_read_write##N(void *p)                                                                                             \
    {                                                                                                                              \
        access(p, N, false);                                                                                                       \
        access(p, N, true);                                                                                                        \
    }                                                                                                                              \
    void __tsan_unaligned_read_write##N(void *p)                                                                                   \
    {                                                                                                                              \
        __tsan_read_write##N(p);                                                                                                   \
    }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __tsan_read_range(void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) access((char *)p + i, 1, false);
}
void __tsan_write_range(void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) access((char *)p + i, 1, true);
}
void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
void *__tsan_memcpy(void *to, const void *from, size_t n)
{
    __tsan_read_range((void *)from, n);
    __tsan_write_range(to, n);
    return memcpy(to, from, n);
}
void *__tsan_memset(void *p, int x, size_t n)
{
    __tsan_write_range(p, n);
    return memset(p, x, n);
}
void *__tsan_memmove(void *to, const void *from, size_t n)
{
    __tsan_read_range((void *)from, n);
    __tsan_write_range(to, n);
    return memmove(to, from, n);
}
/* -fsanitize=bounds: an index beyond an array of known size (a kernel's __shared__ and local
 * arrays) */
void __ubsan_handle_out_of_bounds(void *, uintptr_t index)
{
    if (shim_view.running) shim_report("thread %d: index %zu is beyond its array", shim_view.thread, (size_t)index);
}
}
#endif
