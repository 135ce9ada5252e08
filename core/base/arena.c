#include "base/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGN 64
#define BLOCK_MIN (1 << 20)
#define HUGE_PAGE (2 << 20)
/* a request of a terabyte is an error in the caller; below it, rounding up cannot overflow */
#define BLOCK_MOST (INT64_C(1) << 40)

struct arena_block {
    struct arena_block *next;
    int64_t size, used;
    char *data; /* follows this header, or points to the source's memory */
    char pad[ALIGN - 4 * 8];
};

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Allocate n bytes, aligned to 64. Large blocks use huge pages where the kernel allows it, because
 * weights and activations are read sequentially. */
static void *take_block(int64_t n)
{
    const int64_t align = n >= 2 * HUGE_PAGE ? HUGE_PAGE : ALIGN;
    void *p = NULL;
    if (n >= BLOCK_MOST) return NULL;
    if (posix_memalign(&p, (size_t)align, (size_t)round_up(n, align))) return NULL;
    if (align == HUGE_PAGE) madvise(p, (size_t)round_up(n, align), MADV_HUGEPAGE);
    return p;
}

/* Zero a block from take_block(). The pages of a large block are returned to the kernel, which
 * provides zeroed ones on first access: gradients, moments and a key/value cache take no time
 * before they are used, and no memory if they never are. */
static void clear_block(void *p, int64_t n)
{
    if (n >= 2 * HUGE_PAGE && !madvise(p, (size_t)round_up(n, HUGE_PAGE), MADV_DONTNEED)) return;
    memset(p, 0, (size_t)n);
}

void arena_init(struct arena *a, const char *name)
{
    *a = (struct arena){.name = name};
}

void arena_init_from(struct arena *a, const char *name, const struct arena_source *source)
{
    *a = (struct arena){.name = name, .source = source};
}

/* An arena of tensors has a source and is itself the `tensors` of another arena. The headers of its
 * blocks stay on the host. */
static struct arena_block *block_new(const struct arena *a, int64_t size)
{
    const bool far = a->source && a->tensors == a;
    struct arena_block *b = take_block((int64_t)sizeof *b + (far ? 0 : size));
    if (!b) return NULL;
    *b = (struct arena_block){.size = size, .data = (char *)(b + 1)};
    if (!far) return b;
    b->data = a->source->take(a->source->ctx, size);
    if (b->data) return b;
    free(b);
    return NULL;
}

tare_status arena_push_raw(struct arena *a, int64_t n, void **out, struct err *e)
{
    *out = NULL;
    if (n < 0 || n > INT64_MAX / 2) FAIL(e, TARE_E_NOMEM, "%s: invalid request of %lld bytes", a->name, (long long)n);
    const int64_t need = round_up(n ? n : 1, ALIGN);
    struct arena_block *b = a->current;
    while (b && b->size - b->used < need) {
        b = b->next;
        if (b) b->used = 0;
    }
    if (!b) {
        const int64_t size = need > BLOCK_MIN ? need : BLOCK_MIN;
        b = block_new(a, size);
        if (!b && a->source && a->source->none) return a->source->none(a->source->ctx, a->name, size, e);
        if (!b) FAIL(e, TARE_E_NOMEM, "%s: no memory for %lld bytes (%lld in use)", a->name, (long long)n, (long long)a->used);
        struct arena_block **tail = a->current ? &a->current->next : &a->first;
        /* move blocks that are too small for this request behind it, for later requests */
        b->next = *tail;
        *tail = b;
        a->grown++;
    }
    a->current = b;
    *out = b->data + b->used;
    b->used += need;
    a->used += need;
    if (a->used > a->high_water) a->high_water = a->used;
    return TARE_OK;
}

tare_status arena_push(struct arena *a, int64_t n, void **out, struct err *e)
{
    TRY(arena_push_raw(a, n, out, e));
    memset(*out, 0, (size_t)n);
    return TARE_OK;
}

tare_status arena_strdup(struct arena *a, const char *s, int64_t n, char **out, struct err *e)
{
    if (n < 0) n = (int64_t)strlen(s);
    TRY(arena_push_raw(a, n + 1, (void **)out, e));
    memcpy(*out, s, (size_t)n);
    (*out)[n] = 0;
    return TARE_OK;
}

tare_status arena_push_tensor_raw(struct arena *a, int64_t n, void **out, struct err *e)
{
    if (!a->source) return arena_push_raw(a, n, out, e);
    if (!a->tensors) {
        TRY(mem_new((int64_t)sizeof *a->tensors, (void **)&a->tensors, e));
        *a->tensors = (struct arena){.name = a->name, .source = a->source, .tensors = a->tensors};
    }
    const int64_t grown = a->tensors->grown;
    const tare_status status = arena_push_raw(a->tensors, n, out, e);
    a->grown += a->tensors->grown - grown;
    return status;
}

tare_status arena_push_tensor(struct arena *a, int64_t n, void **out, struct err *e)
{
    TRY(arena_push_tensor_raw(a, n, out, e));
    if (a->source)
        a->source->zero(a->source->ctx, *out, n);
    else
        memset(*out, 0, (size_t)n);
    return TARE_OK;
}

int64_t arena_tensor_bytes(const struct arena *a)
{
    return a->source ? (a->tensors ? a->tensors->high_water : 0) : a->high_water;
}

static void give_blocks(struct arena *a)
{
    for (struct arena_block *b = a->first, *next; b; b = next) {
        next = b->next;
        if (a->tensors == a) a->source->give(a->source->ctx, b->data);
        free(b);
    }
    a->first = a->current = NULL;
}

void arena_reset(struct arena *a)
{
    if (a->tensors && a->tensors != a) {
        const int64_t grown = a->tensors->grown;
        arena_reset(a->tensors);
        a->grown += a->tensors->grown - grown;
    }
    if (a->tensors == a && a->first && a->first->next) {
        give_blocks(a);
        /* if this fails, first is NULL and the next request reports it */
        a->first = block_new(a, a->high_water > BLOCK_MIN ? a->high_water : BLOCK_MIN);
        a->grown++;
    }
    for (struct arena_block *b = a->first; b; b = b->next) b->used = 0;
    a->current = a->first;
    a->used = 0;
}

void arena_free(struct arena *a)
{
    if (a->tensors && a->tensors != a) {
        arena_free(a->tensors);
        mem_free(a->tensors);
        a->tensors = NULL;
    }
    give_blocks(a);
    a->used = 0;
}

tare_status mem_new(int64_t n, void **out, struct err *e)
{
    *out = n >= 0 ? take_block(n ? n : 1) : NULL;
    if (!*out) FAIL(e, TARE_E_NOMEM, "no memory for %lld bytes", (long long)n);
    clear_block(*out, n);
    return TARE_OK;
}

tare_status mem_grow(void **p, int64_t *capacity, int64_t n, int64_t size, struct err *e)
{
    if (n <= *capacity) return TARE_OK;
    int64_t wanted = *capacity ? *capacity : 16;
    while (wanted < n) wanted *= 2;
    void *bigger;
    TRY(mem_new(wanted * size, &bigger, e));
    if (*p) memcpy(bigger, *p, (size_t)(*capacity * size));
    mem_free(*p);
    *p = bigger;
    *capacity = wanted;
    return TARE_OK;
}

void mem_free(void *p)
{
    free(p);
}

void mem_free_at(void *at)
{
    void *p;
    memcpy(&p, at, sizeof p); /* *at may be a pointer of any type */
    free(p);
}
