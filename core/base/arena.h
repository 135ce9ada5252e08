/* Memory with three lifetimes: run, step, scratch. An arena hands out pieces of large blocks and gives all back at once; after a
 * reset it keeps its blocks, so a loop whose shapes repeat allocates nothing after its first rounds (arena_grown counts). Of a source's memory it
 * keeps one block then, as large as all that was ever in use at once: pieces that grew from round to round leave no small blocks.
 * Not thread-safe: one thread owns an arena at a time. */
#ifndef TARE_CORE_BASE_ARENA_H
#define TARE_CORE_BASE_ARENA_H

#include "base/err.h"

struct arena_block;
/* Memory that the host does not touch (a GPU's). take returns NULL when none is left. */
struct arena_source {
    void *(*take)(const void *ctx, int64_t bytes);
    void (*give)(const void *ctx, void *p);
    void (*zero)(const void *ctx, void *p, int64_t bytes);
    tare_status (*none)(const void *ctx, const char *name, int64_t bytes, struct err *e); /* the error when take gave nothing */
    const void *ctx;
};
struct arena {
    struct arena_block *first, *current;
    int64_t used, high_water, grown; /* bytes handed out; the most ever; how many blocks were taken from the system */
    const char *name;
    const struct arena_source *source; /* NULL: everything on the host */
    struct arena *tensors;             /* with a source: the pieces that lie there */
};

void arena_init(struct arena *a, const char *name);
/* tensor_new's pieces come from source (which outlives the arena), all others from the host. source NULL: arena_init. */
void arena_init_from(struct arena *a, const char *name, const struct arena_source *source);
/* n bytes, aligned to 64, zeroed. */
tare_status arena_push(struct arena *a, int64_t n, void **out, struct err *e);
/* The same without zeroing. */
tare_status arena_push_raw(struct arena *a, int64_t n, void **out, struct err *e);
tare_status arena_strdup(struct arena *a, const char *s, int64_t n, char **out, struct err *e);
/* n bytes of the source's memory, of the host's without one. */
tare_status arena_push_tensor(struct arena *a, int64_t n, void **out, struct err *e);
tare_status arena_push_tensor_raw(struct arena *a, int64_t n, void **out, struct err *e);
/* The most that tensors ever took at once. */
int64_t arena_tensor_bytes(const struct arena *a);
void arena_reset(struct arena *a);
void arena_free(struct arena *a);

/* n of what pointer points to: arena_new(&arena, &pointer, n, e) */
#define arena_new(A, OUT, N, E) arena_push((A), (int64_t)sizeof **(OUT) * (int64_t)(N), (void **)(OUT), (E))
#define arena_new_raw(A, OUT, N, E) arena_push_raw((A), (int64_t)sizeof **(OUT) * (int64_t)(N), (void **)(OUT), (E))
#define tensor_new(A, OUT, N, E) arena_push_tensor((A), (int64_t)sizeof **(OUT) * (int64_t)(N), (void **)(OUT), (E))
#define tensor_new_raw(A, OUT, N, E) arena_push_tensor_raw((A), (int64_t)sizeof **(OUT) * (int64_t)(N), (void **)(OUT), (E))

/* Plain allocation for things that live on their own: zeroed, aligned to 64; free with mem_free. */
tare_status mem_new(int64_t n, void **out, struct err *e);
/* Grows *p (from mem_new or NULL) to hold at least n items of size; *capacity in items. Contents kept, the new part zeroed. */
tare_status mem_grow(void **p, int64_t *capacity, int64_t n, int64_t size, struct err *e);
void mem_free(void *p);     /* what malloc gave too */
void mem_free_at(void *at); /* what the pointer at this address points to */

#endif
