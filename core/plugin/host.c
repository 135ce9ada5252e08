/* Services that the host offers to an instance: messages, counted memory, random numbers, metrics,
 * and the engine's extensions. */
#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "plugin/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void host_log(void *ctx, int32_t level, const char *message)
{
    const struct plugin_instance *i = ctx;
    const enum log_level shown = level < TARE_LOG_DEBUG ? LOG_DEBUG : level > TARE_LOG_ERROR ? LOG_ERROR : (enum log_level)level;
    if (!i) {
        log_message(shown, "plugin: %s", message ? message : "");
        return;
    }
    char *copy = strdup(message ? message : "");
    if (!copy) return;
    plugin_hide_secrets(i, copy, (int64_t)strlen(copy));
    log_message(shown, "%s %s: %s", plugin_kind_name(i->plugin->desc.kind), i->name, copy);
    free(copy);
}

/* Header in front of each block of memory: where the block starts, and its size in bytes. */
struct block {
    void *start;
    int64_t size;
};

static void *host_alloc(void *ctx, int64_t size, int64_t align)
{
    struct plugin_instance *i = ctx;
    if (size < 0 || size > INT64_MAX / 4 || align < 0 || align > 1 << 20 || (align & (align - 1))) return NULL;
    if (align < 16) align = 16;
    const int64_t header = (int64_t)sizeof(struct block) + align;
    char *start = calloc(1, (size_t)(size + header));
    if (!start) return NULL;
    char *memory = start + header - (uintptr_t)(start + header) % (uintptr_t)align;
    const struct block block = {start, size};
    memcpy(memory - sizeof block, &block, sizeof block);
    if (i) __atomic_fetch_add(&i->allocated, size, __ATOMIC_RELAXED);
    return memory;
}

static void host_release(void *ctx, void *memory)
{
    struct plugin_instance *i = ctx;
    struct block block;
    if (!memory) return;
    memcpy(&block, (char *)memory - sizeof block, sizeof block);
    if (i) __atomic_fetch_sub(&i->allocated, block.size, __ATOMIC_RELAXED);
    free(block.start);
}

static tare_status host_random(void *ctx, uint64_t stream, uint64_t counter, uint32_t *out, int64_t n)
{
    const struct plugin_instance *i = ctx;
    if (n < 0 || (n && !out)) return TARE_E_INVALID;
    struct rng_key key = rng_key(i ? i->env.seed : 0, RNG_PLUGIN);
    if (i) {
        key = rng_derive(key, (uint64_t)i->plugin->desc.kind);
        for (const char *c = i->name; *c; c++) key = rng_derive(key, (uint64_t)(unsigned char)*c);
    }
    key = rng_derive(key, stream);
    for (int64_t at = 0; at < n; at += 4) {
        uint32_t block[4];
        rng_block(key, counter, (uint64_t)at / 4, block);
        memcpy(out + at, block, (size_t)(n - at < 4 ? n - at : 4) * sizeof *out);
    }
    return TARE_OK;
}

/* Copies the beginning of a name for a message, without secrets and control characters. */
static const char *shown_name(const struct plugin_instance *i, const char *name, char copy[64])
{
    snprintf(copy, 64, "%s", name);
    plugin_hide_secrets(i, copy, (int64_t)strlen(copy));
    for (char *c = copy; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    return copy;
}

/* A metric's name becomes a column of tables and a path of charts: letters, digits and "_.-/", where
 * "/" separates parts that are not empty. */
static bool metric_name_ok(const char *name)
{
    static const char ALLOWED[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/";
    const size_t n = strlen(name);
    return n && n <= TARE_LIMIT_METRIC && strspn(name, ALLOWED) == n && name[n - 1] != '/' && *name != '/' && *name != '.' &&
           !strstr(name, "//") && !strstr(name, "/.");
}

static void host_metric(void *ctx, const char *name, double value, int32_t how)
{
    struct plugin_instance *i = ctx;
    char full[TARE_LIMIT_METRIC + 160];
    if (!i || !i->env.metric || !name) return;
    if (!metric_name_ok(name)) {
        if (!__atomic_exchange_n(&i->misnamed, true, __ATOMIC_RELAXED))
            log_warn(
                "%s %s: a metric's name must have 1 to %d letters, digits and characters of \"_.-/\"; the metric '%.*s' and others of such names are left out",
                plugin_kind_name(i->plugin->desc.kind), i->name, TARE_LIMIT_METRIC, 40, shown_name(i, name, (char[64]){0}));
        return;
    }
    const char *kind = plugin_kind_name(i->plugin->desc.kind);
    char own[TARE_LIMIT_METRIC + 1];
    snprintf(own, sizeof own, "%s", name);
    plugin_hide_secrets(i, own, (int64_t)strlen(own));
    const bool renamed = strcmp(i->name, i->plugin->desc.name) != 0;
    snprintf(full, sizeof full, "%s%s%s/%s", kind, renamed ? "." : "", renamed ? i->name : "", own);
    i->env.metric(i->env.ctx, full, value, how);
}

static int64_t host_now_ns(void *ctx)
{
    (void)ctx;
    return clock_ns();
}

static int32_t host_cancelled(void *ctx)
{
    const struct plugin_instance *i = ctx;
    return i && i->env.cancelled ? i->env.cancelled(i->env.ctx) : 0;
}

static const void *host_extension(void *ctx, const char *id)
{
    const struct plugin_instance *i = ctx;
    if (i && id && !strcmp(id, "tare.row_fields/1")) return i->env.row_fields;
    return i && id && i->env.extension ? i->env.extension(i->env.ctx, id) : NULL;
}

#define HOST(INSTANCE)                                                                                                             \
    {                                                                                                                              \
        .struct_size = sizeof(tare_host), .abi_minor = TARE_ABI_MINOR, .ctx = INSTANCE, .name = "tare", .version = TARE_VERSION,   \
        .log = host_log, .alloc = host_alloc, .release = host_release, .random = host_random, .metric = host_metric,               \
        .cancelled = host_cancelled, .now_ns = host_now_ns, .extension = host_extension                                            \
    }

tare_host plugin_host(struct plugin_instance *i)
{
    return (tare_host)HOST(i);
}

const tare_host *plugin_entry_host(void)
{
    static const tare_host host = HOST(NULL);
    return &host;
}
