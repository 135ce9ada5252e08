/* Tests of memory: failing allocations, and leaks. */
#include "plugin/check/internal.h"

#include "base/clock.h"

#include <malloc.h>
#include <string.h>

/* A host whose nth allocation fails. */
struct stingy {
    tare_host host;
    struct plugin_env env;
    int64_t left, held;
};

static void *stingy_alloc(void *ctx, int64_t size, int64_t align)
{
    struct stingy *s = ctx;
    if (s->left-- <= 0) return NULL;
    void *p = s->host.alloc(s->host.ctx, size, align);
    s->held += p != NULL;
    return p;
}

static void stingy_release(void *ctx, void *memory)
{
    struct stingy *s = ctx;
    s->held -= memory != NULL;
    s->host.release(s->host.ctx, memory);
}

/* Forwards: the other services do not know struct stingy. */
static void stingy_log(void *ctx, int32_t level, const char *message)
{
    (void)ctx, (void)level, (void)message;
}

static tare_status stingy_random(void *ctx, uint64_t stream, uint64_t counter, uint32_t *out, int64_t n)
{
    const struct stingy *s = ctx;
    return s->host.random(s->host.ctx, stream, counter, out, n);
}

static void stingy_metric(void *ctx, const char *name, double value, int32_t how)
{
    (void)ctx, (void)name, (void)value, (void)how;
}

static int32_t stingy_cancelled(void *ctx)
{
    (void)ctx;
    return 0;
}

static const void *stingy_extension(void *ctx, const char *id)
{
    const struct stingy *s = ctx;
    return s->env.extension(s->env.ctx, id);
}

/* Returns the bytes that malloc has allocated in the whole process; -1: unknown. */
static int64_t heap_bytes(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return -1; /* these have their own allocators, which find leaks */
#else
    return (int64_t)mallinfo2().uordblks;
#endif
}

/* WARM: the first rounds may fill caches. PIECE: the smallest block of malloc; a smaller difference
 * comes from how it splits blocks. */
enum { WARM = 16, ROUNDS = 256, FEW = 16, PIECE = 32 };

/* Returns the bytes that each round leaves behind. grown: the heap before round 0, 1, ..., rounds. A
 * buffer that is enlarged once grows one quarter of the rounds, a leak all of them. */
static int64_t leaked_each(const int64_t *grown, int64_t rounds)
{
    const int64_t quarter = (rounds - WARM) / 4;
    int64_t fewest = INT64_MAX;
    for (int64_t q = 0; q < 4; q++) {
        const int64_t n = grown[WARM + (q + 1) * quarter] - grown[WARM + q * quarter];
        if (n < fewest) fewest = n;
    }
    return fewest / quarter;
}

/* Tests memory that plugins of any language allocate with malloc directly: each of many rounds must
 * free all of it. A slow plugin passes after fewer rounds, but it fails only after all of them: the
 * blocks that malloc keeps for later look like a leak of a few rounds. */
static tare_status same_heap(struct check *c, struct err *e)
{
    const double start = clock_seconds();
    int64_t grown[WARM + ROUNDS + 1] = {heap_bytes()}, rounds = 0;
    while (rounds < WARM + ROUNDS) {
        struct plugin_instance *i;
        TRY(check_instance(c, &i, e));
        plugin_destroy(i);
        grown[++rounds] = heap_bytes();
        if (rounds % FEW == 0 && rounds > WARM && clock_seconds() - start > 2 && leaked_each(grown, rounds) < PIECE) break;
    }
    const int64_t each = leaked_each(grown, rounds);
    if (grown[0] >= 0 && each >= PIECE) FAIL(e, TARE_E_PLUGIN, "create and destroy leak %lld bytes each time", (long long)each);
    return TARE_OK;
}

static tare_status failing_allocations(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    TRY(check_instance(c, &i, e));
    for (int64_t n = 0; n < 64; n++) {
        struct stingy s = {.host = plugin_host(NULL), .env = i->env, .left = n};
        tare_host host = s.host;
        tare_error error = {.struct_size = sizeof error};
        void *self = NULL;
        tare_setup setup = i->setup;
        setup.host = &host;
        host.ctx = &s;
        host.alloc = stingy_alloc;
        host.release = stingy_release;
        host.log = stingy_log;
        host.random = stingy_random;
        host.metric = stingy_metric;
        host.cancelled = stingy_cancelled;
        host.extension = stingy_extension;
        const tare_status status = c->plugin->head->create(&setup, &self, &error);
        if (status && s.held)
            FAIL(e, TARE_E_PLUGIN, "create failed at its allocation %lld and leaked %lld blocks", (long long)n + 1,
                 (long long)s.held);
        if (status) continue;
        if (s.left < 0) FAIL(e, TARE_E_PLUGIN, "create succeeds although its allocation %lld failed", (long long)n + 1);
        c->plugin->head->destroy(self);
        if (s.held) FAIL(e, TARE_E_PLUGIN, "destroy leaked %lld blocks", (long long)s.held);
        return TARE_OK;
    }
    FAIL(e, TARE_E_PLUGIN, "create fails even with 64 allocations granted");
}

tare_status check_memory(struct check *c, struct err *e)
{
    TRY(same_heap(c, e));
    return failing_allocations(c, e);
}
