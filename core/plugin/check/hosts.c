/* The tests "oldest" and "future": the plugin is run again under hosts whose structs have other sizes,
 * and all of its outputs must be the same bits.
 *
 *   oldest   the structs end where those of the plugin's minor version end
 *   future   the structs are larger by a few members, and every unknown flag is set
 *
 * In both, the bytes behind what the plugin may read are poisoned. The tests put a table of functions
 * between the host and the plugin, which copies each struct of the host into such a place, calls the
 * plugin, and adds its outputs to a hash. They then run the other tests of the plugin's kind. */
#include "plugin/check/hosts.h"

#include "base/fs.h"

#include <stdio.h>
#include <string.h>

struct host_run HOST_RUN;

void host_add(const void *data, int64_t size)
{
    if (data && size > 0) HOST_RUN.hash = fs_hash(data, size, HOST_RUN.hash);
}

/* ---------------------------------------------------------------- structs in other places */

void *host_space(int64_t size)
{
    char *p = NULL;
    struct err e;
    return arena_new(&HOST_RUN.check->arena, &p, size, &e) ? NULL : p;
}

void *host_lend(const void *from, int64_t size, bool flags)
{
    void *same = (void *)(uintptr_t)from;
    if (!from || HOST_RUN.age == HOST_TODAY) return same;
    unsigned char *copy = host_space(size + BEHIND);
    if (!copy) return same;
    const uint32_t told = (uint32_t)(size + (HOST_RUN.age == HOST_FUTURE ? BEHIND : 0));
    memcpy(copy, from, (size_t)size);
    memcpy(copy, &told, sizeof told);
    memset(copy + size, POISON, BEHIND);
    if (flags && HOST_RUN.age == HOST_FUTURE) memset(copy + 4, 0xff, 4);
    return copy;
}

void host_take_back(void *to, const void *copy, int64_t size, int64_t head, const char *what)
{
    const unsigned char *p = copy;
    if (!copy || copy == to) return;
    for (int64_t k = 0; k < BEHIND; k++)
        if (p[size + k] != POISON && !HOST_RUN.fault.code)
            (void)err_set(
                &HOST_RUN.fault, TARE_E_PLUGIN, __FILE__, __LINE__,
                "it wrote behind the host's %s, %lld bytes after its start; write only members for which TARE_KNOWS is true", what,
                (long long)(size + k));
    memcpy((char *)to + head, p + head, (size_t)(size - head));
}

/* A stream that passes the bytes on and adds them to the hash. */
static tare_status pass_on(void *ctx, const void *data, int64_t size)
{
    const tare_stream *to = ctx;
    host_add(data, size);
    return to->write(to->ctx, data, size);
}

static tare_status read_on(void *ctx, void *data, int64_t size)
{
    const tare_stream *from = ctx;
    return from->read(from->ctx, data, size);
}

const tare_stream *host_lend_stream(const tare_stream *s)
{
    if (!s) return NULL;
    tare_stream *mine = host_space(SIZE_STREAM);
    if (!mine) return s;
    *mine = *s;
    mine->ctx = (void *)(uintptr_t)s;
    if (s->write) mine->write = pass_on;
    if (s->read) mine->read = read_on;
    return host_lend(mine, SIZE_STREAM, true);
}

tare_status host_ended(const char *function, tare_status status, tare_error *error, const tare_error *mine)
{
    HOST_RUN.calls++;
    host_take_back(error, mine, SIZE_ERROR, 4, "tare_error");
    host_add(function, (int64_t)strlen(function));
    host_add(&status, sizeof status);
    if (status && error) host_add(error->message, (int64_t)strnlen(error->message, sizeof error->message));
    return status;
}

/* The tests that run: those that show a plugin every function of its kind, in one thread. */
static const char *const TESTS[] = {"phases", "state", "texts", "encode", "assign", "fit", "repeats", "sessions", "session_state"};

static const struct check_test *tests_of(int32_t kind)
{
    switch (kind) {
    case TARE_KIND_ESTIMATOR:
        return CHECK_ESTIMATOR;
    case TARE_KIND_VERIFIER:
        return CHECK_VERIFIER;
    case TARE_KIND_OBJECTIVE:
        return CHECK_OBJECTIVE;
    case TARE_KIND_CURRICULUM:
        return CHECK_CURRICULUM;
    case TARE_KIND_ENVIRONMENT:
        return CHECK_ENVIRONMENT;
    default:
        return CHECK_CLUSTERER;
    }
}

static tare_status run_tests(struct check *c, struct err *e)
{
    for (const struct check_test *t = tests_of(c->plugin->desc.kind); t->name; t++)
        for (size_t k = 0; k < sizeof TESTS / sizeof *TESTS; k++) {
            if (t->kind != c->plugin->desc.kind || strcmp(t->name, TESTS[k]) != 0) continue;
            c->drawn = 0;
            const tare_status status = t->run(c, e);
            if (c->skipped) {
                c->skipped = false;
                continue;
            }
            TRY(status);
        }
    return TARE_OK;
}

static tare_status run_under(struct check *c, enum host_age age, struct err *e)
{
    const struct plugin *real = c->plugin;
    const bool binary = c->binary; /* found out again, with the same draws */
    struct plugin shown = *real;
    union host_table table = {0};
    HOST_RUN.check = c;
    HOST_RUN.real = real;
    HOST_RUN.age = age;
    HOST_RUN.hash = 0;
    HOST_RUN.calls = 0;
    HOST_RUN.fault = (struct err){0};
    switch (real->desc.kind) {
#define COPY(CONSTANT, NAME, ...)                                                                                                  \
    case TARE_KIND_##CONSTANT:                                                                                                     \
        table.NAME = *real->NAME;                                                                                                  \
        break;
        PLUGIN_KINDS(COPY)
#undef COPY
    }
    host_between(real, &table);
    shown.head = &table.head;
    c->plugin = &shown;
    const tare_status status = run_tests(c, e);
    c->plugin = real;
    c->binary = binary;
    if (!HOST_RUN.fault.code) return status;
    *e = HOST_RUN.fault;
    return TARE_E_PLUGIN;
}

/* True if equal calls of this plugin give equal results. */
static bool repeats(const struct plugin *p)
{
    if (p->desc.kind == TARE_KIND_VERIFIER) return p->verifier->flags & TARE_VERIFIER_REPEATS;
    if (p->desc.kind == TARE_KIND_ENVIRONMENT) return p->environment->flags & TARE_ENVIRONMENT_REPEATS;
    return true;
}

static tare_status compare_hosts(struct check *c, enum host_age age, const char *host, struct err *e)
{
    /* the other tests report what fails under this host */
    if (run_under(c, HOST_TODAY, e)) return check_skip(c, e, "the plugin fails under this host too");
    const uint64_t hash = HOST_RUN.hash;
    const int64_t calls = HOST_RUN.calls;
    if (run_under(c, age, e)) return err_prefix(e, "under %s", host);
    if (repeats(c->plugin) && (hash != HOST_RUN.hash || calls != HOST_RUN.calls))
        FAIL(
            e, TARE_E_PLUGIN,
            "the results under %s are other ones: the plugin reads behind a struct of the host, or compares a struct_size or the flags of one; test a member with TARE_KNOWS",
            host);
    return str_addf(&c->note, e, "%lld calls", (long long)calls);
}

tare_status check_oldest(struct check *c, struct err *e)
{
    char host[64];
    snprintf(host, sizeof host, "a host of ABI %d.%u", TARE_ABI_MAJOR, c->plugin->desc.minor_needed);
    return compare_hosts(c, HOST_OLDEST, host, e);
}

tare_status check_future(struct check *c, struct err *e)
{
    return compare_hosts(c, HOST_FUTURE, "a later host, whose structs are larger and have more flags", e);
}
