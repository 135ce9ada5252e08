/* Tests of the file, and of what every kind of plugin has: loading, parameters, instances. */
#include "plugin/check/internal.h"

#include "base/clock.h"
#include "base/fs.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* ---------------------------------------------------------------- the process around it */

/* What loading or calling a plugin may not change. */
struct surroundings {
    unsigned fp;
    char locale[256], directory[1024];
    uint64_t signals;
    int64_t files, threads;
};

static int64_t entries(const char *folder)
{
    DIR *d = opendir(folder);
    int64_t n = 0;
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

static struct surroundings look_around(void)
{
    struct surroundings s = {.files = entries("/proc/self/fd"), .threads = entries("/proc/self/task")};
#if defined(__x86_64__)
    s.fp = _mm_getcsr() & ~0x3fu;
#else
    s.fp = (unsigned)fegetround();
#endif
    snprintf(s.locale, sizeof s.locale, "%s", setlocale(LC_ALL, NULL));
    if (!getcwd(s.directory, sizeof s.directory)) s.directory[0] = 0;
    for (int i = 1; i < 32; i++) {
        struct sigaction action;
        if (!sigaction(i, NULL, &action)) s.signals = s.signals * 1099511628211u ^ (uint64_t)(uintptr_t)action.sa_handler;
    }
    return s;
}

static tare_status same_surroundings(const struct surroundings *a, const struct surroundings *b, const char *when, struct err *e)
{
    if (a->fp != b->fp)
        FAIL(e, TARE_E_PLUGIN, "%s changed the floating-point mode (0x%x to 0x%x); was it linked with -ffast-math?", when, a->fp,
             b->fp);
    if (strcmp(a->locale, b->locale)) FAIL(e, TARE_E_PLUGIN, "%s changed the locale from %s to %s", when, a->locale, b->locale);
    if (strcmp(a->directory, b->directory)) FAIL(e, TARE_E_PLUGIN, "%s changed the working directory to %s", when, b->directory);
    if (a->signals != b->signals) FAIL(e, TARE_E_PLUGIN, "%s changed how a signal is handled", when);
    if (a->files != b->files) FAIL(e, TARE_E_PLUGIN, "%s left %lld files open", when, (long long)(b->files - a->files));
    if (a->threads != b->threads)
        FAIL(e, TARE_E_PLUGIN, "%s left %lld threads running", when, (long long)(b->threads - a->threads));
    return TARE_OK;
}

/* ---------------------------------------------------------------- the file */

static tare_status export_ok(void *ctx, const char *name, bool unique, struct err *e)
{
    (void)ctx;
    if (unique) FAIL(e, TARE_E_PLUGIN, "it exports the symbol %s as unique in the process; compile with -fno-gnu-unique", name);
    if (strncmp(name, "tare_plugin_v", 13))
        FAIL(e, TARE_E_PLUGIN,
             "it exports %s; only tare_plugin_v%d should be seen: compile with -fvisibility=hidden, or link with a version script",
             name, TARE_ABI_MAJOR);
    return TARE_OK;
}

static tare_status exports(struct check *c, struct err *e)
{
    return elf_exports(c->options->path, export_ok, NULL, e);
}

static tare_status loads(struct check *c, struct err *e)
{
    const struct plugin_file *f;
    const double start = clock_seconds();
    TRY(plugin_file_open(c->options->path, &f, e));
    return str_addf(&c->note, e, "%.2f ms", 1e3 * (clock_seconds() - start));
}

typedef const tare_plugin *(*entry_function)(const tare_host *, tare_error *);

static tare_status leaves_the_process_alone(struct check *c, struct err *e)
{
    char path[FS_PATH];
    entry_function entry = NULL;
    tare_error error = {.struct_size = sizeof error};
    if (!realpath(c->options->path, path)) FAIL(e, TARE_E_IO, "%s: not there", c->options->path);
    uint64_t hash;
    TRY(elf_check(path, &hash, e));
    const struct surroundings before = look_around();
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct surroundings opened = look_around();
    if (handle) *(void **)&entry = dlsym(handle, "tare_plugin_v1");
    if (!entry) FAIL(e, TARE_E_PLUGIN, "%s", dlerror());
    TRY(same_surroundings(&before, &opened, "loading it", e));
    const tare_plugin *first = entry(plugin_entry_host(), &error), *second = entry(plugin_entry_host(), &error);
    const struct surroundings called = look_around();
    TRY(same_surroundings(&before, &called, "tare_plugin_v1", e));
    if (first != second) FAIL(e, TARE_E_PLUGIN, "tare_plugin_v1 gives another pointer when it is called again; return a static");
    return TARE_OK;
}

const struct check_test CHECK_FILE[] = {
    {"exports", "one exported symbol, none unique", 0, exports},
    {"loads", "opened, and its descriptors make sense", 0, loads},
    {"process", "loading leaves FP mode, locale, folder, signals, files and threads alone", 0, leaves_the_process_alone},
    {0}};

/* ---------------------------------------------------------------- parameters and instances */

static tare_status make_and_drop(struct check *c, const tare_value *values, const char *what, bool may_refuse, struct err *e)
{
    struct plugin_instance *i;
    const struct surroundings before = look_around();
    const struct plugin_env env = check_env(c);
    const tare_status status =
        plugin_create(c->plugin, values, c->plugin->desc.kind == TARE_ESTIMATOR ? CHECK_CLUSTERS : 0, &env, &i, e);
    if (status && (!may_refuse || status == TARE_E_PLUGIN)) return err_prefix(e, "with %s", what);
    if (status && strstr(e->message, "and no message")) FAIL(e, TARE_E_PLUGIN, "with %s create fails without a message", what);
    plugin_destroy(status ? NULL : i);
    const struct surroundings after = look_around();
    return same_surroundings(&before, &after, "create and destroy", e);
}

/* Every parameter at its ends and its choices; a plugin may refuse a combination, with a message. */
static tare_status parameters(struct check *c, struct err *e)
{
    const struct plugin *p = c->plugin;
    tare_value *v;
    TRY(arena_new(&c->arena, tare_value, p->desc.n_params + 1, &v, e));
    TRY(make_and_drop(c, c->values, "the defaults", false, e));
    for (uint32_t j = 0; j < p->desc.n_params; j++) {
        const tare_param *q = &p->params[j];
        int64_t n = q->type == TARE_BOOL ? 2 : q->type == TARE_INT || q->type == TARE_FLOAT ? 2 : 0;
        for (; q->type == TARE_CHOICE && q->choices[n]; n++) continue;
        for (int64_t k = 0; k < n; k++) {
            char what[160], number[32];
            const double end = k ? q->max : q->min;
            memcpy(v, c->values, p->desc.n_params * sizeof *v);
            if (q->type == TARE_INT || q->type == TARE_FLOAT) {
                if ((q->min == 0 && q->max == 0) || fabs(end) > 1e6 || (q->flags & (k ? TARE_BELOW_MAX : TARE_ABOVE_MIN))) continue;
                if (q->type == TARE_INT)
                    v[j].i = (int64_t)end;
                else
                    v[j].f = end;
            } else {
                v[j].i = k;
            }
            snprintf(what, sizeof what, "%s = %s", q->key,
                     q->type == TARE_CHOICE ? q->choices[k] : str_from_double(number, q->type <= TARE_BOOL ? (double)k : end));
            TRY(make_and_drop(c, v, what, true, e));
        }
    }
    return TARE_OK;
}

static tare_status instances(struct check *c, struct err *e)
{
    struct plugin_instance *two[2];
    for (int round = 0; round < 100; round++) {
        TRY(check_instance(c, &two[0], e));
        TRY(check_instance(c, &two[1], e));
        plugin_destroy(two[round % 2]);
        plugin_destroy(two[1 - round % 2]);
    }
    return TARE_OK;
}

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

/* The other services do not know struct stingy. */
static void stingy_log(void *ctx, int32_t level, const char *message)
{
    (void)ctx, (void)level, (void)message;
}

static tare_status stingy_random(void *ctx, uint64_t stream, uint64_t counter, uint32_t *out, int64_t n)
{
    const struct stingy *s = ctx;
    return s->host.random(s->host.ctx, stream, counter, out, n);
}

static void stingy_metric(void *ctx, const char *name, double value)
{
    (void)ctx, (void)name, (void)value;
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

static tare_status create_raw(const struct plugin *p, const tare_host *host, const tare_value *v, void **self, tare_error *error)
{
    switch (p->desc.kind) {
    case TARE_ESTIMATOR:
        return p->estimator->create(host, v, CHECK_CLUSTERS, self, error);
    case TARE_VERIFIER:
        return p->verifier->create(host, v, self, error);
    case TARE_ENCODER:
        return p->encoder->create(host, v, self, error);
    default:
        return p->codebook->create(host, v, self, error);
    }
}

static void destroy_raw(const struct plugin *p, void *self)
{
    switch (p->desc.kind) {
    case TARE_ESTIMATOR:
        p->estimator->destroy(self);
        break;
    case TARE_VERIFIER:
        p->verifier->destroy(self);
        break;
    case TARE_ENCODER:
        p->encoder->destroy(self);
        break;
    default:
        p->codebook->destroy(self);
        break;
    }
}

static tare_status out_of_memory(struct check *c, struct err *e)
{
    struct plugin_instance *plain;
    TRY(check_instance(c, &plain, e));
    plugin_destroy(plain);
    for (int64_t n = 0; n < 64; n++) {
        struct stingy s = {.host = plugin_host(NULL), .env = check_env(c), .left = n};
        tare_host host = s.host;
        tare_error error = {.struct_size = sizeof error};
        void *self = NULL;
        host.ctx = &s;
        host.alloc = stingy_alloc;
        host.release = stingy_release;
        host.log = stingy_log;
        host.random = stingy_random;
        host.metric = stingy_metric;
        host.cancelled = stingy_cancelled;
        host.extension = stingy_extension;
        const tare_status status = create_raw(c->plugin, &host, c->values, &self, &error);
        if (status && s.held)
            FAIL(e, TARE_E_PLUGIN, "create failed at its allocation %lld, and left %lld pieces of memory", (long long)n + 1,
                 (long long)s.held);
        if (status) continue;
        if (s.left < 0) FAIL(e, TARE_E_PLUGIN, "create says it worked, though its allocation %lld failed", (long long)n + 1);
        destroy_raw(c->plugin, self);
        if (s.held) FAIL(e, TARE_E_PLUGIN, "destroy left %lld pieces of memory", (long long)s.held);
        return TARE_OK;
    }
    FAIL(e, TARE_E_PLUGIN, "create fails even with 64 allocations granted");
}

const struct check_test CHECK_ANY[] = {{"parameters", "every parameter at its ends and choices", -1, parameters},
                                       {"instances", "made and dropped 100 times, two at once", -1, instances},
                                       {"memory", "an allocation that fails is reported, and nothing leaks", -1, out_of_memory},
                                       {0}};
