/* Memory with three lifetimes: run, step and scratch. An arena hands out parts of large blocks and
 * releases all of them at once. After a reset it keeps its blocks, so a loop with repeating shapes
 * stops allocating after its first iterations (arena_grown counts). Of a source's memory it then
 * keeps a single block as large as the peak use, so that growing requests leave no small blocks
 * behind. Not thread-safe: one thread owns an arena at a time. */
#ifndef TARE_CORE_BASE_ARENA_H
#define TARE_CORE_BASE_ARENA_H

#include "base/err.h"

struct arena_block;
/* Memory that the host does not touch (a GPU's). take returns NULL when none is available. */
struct arena_source {
    void *(*take)(const void *ctx, int64_t bytes);
    void (*give)(const void *ctx, void *p);
    void (*zero)(const void *ctx, void *p, int64_t bytes);
    /* the error to report when take returned NULL */
    tare_status (*none)(const void *ctx, const char *name, int64_t bytes, struct err *e);
    const void *ctx;
};
struct arena {
    struct arena_block *first, *current;
    /* bytes handed out; peak; number of blocks allocated from the system */
    int64_t used, high_water, grown;
    const char *name;
    const struct arena_source *source; /* NULL: all memory is on the host */
    struct arena *tensors;             /* with a source: the arena of its memory */
};

void arena_init(struct arena *a, const char *name);
/* Memory of tensor_new comes from source, which outlives the arena; all other memory comes from the
 * host. source NULL: same as arena_init. */
void arena_init_from(struct arena *a, const char *name, const struct arena_source *source);
/* Hand out n bytes, aligned to 64 and zeroed. */
tare_status arena_push(struct arena *a, int64_t n, void **out, struct err *e);
/* Hand out n bytes, aligned to 64, not zeroed. */
tare_status arena_push_raw(struct arena *a, int64_t n, void **out, struct err *e);
tare_status arena_strdup(struct arena *a, const char *s, int64_t n, char **out, struct err *e);
/* Hand out n bytes of the source's memory, or the host's without a source. */
tare_status arena_push_tensor(struct arena *a, int64_t n, void **out, struct err *e);
tare_status arena_push_tensor_raw(struct arena *a, int64_t n, void **out, struct err *e);
/* Peak number of bytes that tensors used at once. */
int64_t arena_tensor_bytes(const struct arena *a);
void arena_reset(struct arena *a);
void arena_free(struct arena *a);

/* Allocate n items of the type that pointer points to: arena_new(&arena, &pointer, n, e) */
#define arena_new(A, OUT, N, E) arena_push((A), (int64_t)sizeof **(OUT) * (int64_t)(N), (void **)(OUT), (E))
#define arena_new_raw(A, OUT, N, E) arena_push_raw((A), (int64_t)sizeof **(OUT) * (int64_t)(N), (void **)(OUT), (E))
#define tensor_new(A, OUT, N, E) arena_push_tensor((A), (int64_t)sizeof **(OUT) * (int64_t)(N), (void **)(OUT), (E))
#define tensor_new_raw(A, OUT, N, E) arena_push_tensor_raw((A), (int64_t)sizeof **(OUT) * (int64_t)(N), (void **)(OUT), (E))

/* Separate allocation with its own lifetime: zeroed, aligned to 64; free with mem_free. */
tare_status mem_new(int64_t n, void **out, struct err *e);
/* Grow *p (from mem_new or NULL) to at least n items of size bytes; *capacity is in items. Keeps
 * the contents and zeroes the new part. */
tare_status mem_grow(void **p, int64_t *capacity, int64_t n, int64_t size, struct err *e);
void mem_free(void *p);     /* also frees memory from malloc */
void mem_free_at(void *at); /* frees the pointer stored at this address */

#endif
