/* Instances, and the calls into them. Every call keeps the floating-point environment, puts the
 * plugin's name in front of the plugin's error, and checks the outputs before they are used. */
#include "base/fs.h"
#include "base/json.h"
#include "plugin/internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct plugin_watch *WATCH;

/* A call of exit() in a plugin would end a run as if it were complete. It runs this handler, in the
 * thread that called it. Each call of exit() takes the next entry of the C library's list of
 * handlers, and one that finds the list empty ends the process with the plugin's status. Several
 * threads may call exit() at once, so the list has an entry for each thread that is in a plugin. */
static _Thread_local int calls_of_thread;
static atomic_int threads_inside, handlers;
static atomic_bool guarded, reported;
static void report_exit(void)
{
    if (!calls_of_thread && !atomic_load(&guarded)) return;
    /* the thread that was first reports and ends the process */
    while (atomic_exchange(&reported, true)) pause();
    fprintf(stderr, "tare: %s called exit(), which is not allowed%s; work since the last checkpoint is lost\n",
            calls_of_thread ? "a plugin" : "a thread of a plugin, or a library,",
            calls_of_thread ? " (`tare plugin check FILE` names the function)" : "");
    fflush(NULL);
    _exit(err_exit_code(TARE_E_PLUGIN));
}

static void watch_exit(void)
{
    const int inside = atomic_fetch_add(&threads_inside, 1) + 1;
    for (int n = atomic_load(&handlers); n < inside;)
        if (atomic_compare_exchange_weak(&handlers, &n, n + 1)) n += !atexit(report_exit);
}

void plugin_guard_exit(bool on)
{
    atomic_store(&guarded, on);
}

void plugin_watch(const struct plugin_watch *watch)
{
    WATCH = watch;
}

void plugin_enter(struct plugin_call *c)
{
    if (!calls_of_thread++) watch_exit();
    if (WATCH) WATCH->enter(WATCH->ctx);
    fegetenv(&c->fenv);
    c->error.struct_size = sizeof c->error;
    c->error.code = 0;
    c->error.message[0] = 0;
}

tare_status plugin_leave(struct plugin_call *c, const struct plugin_instance *i, const char *phase, int64_t step,
                         tare_status status, struct err *e)
{
    if (!--calls_of_thread) atomic_fetch_sub(&threads_inside, 1);
    if (WATCH) WATCH->leave(WATCH->ctx, i, phase);
    fesetenv(&c->fenv);
    if (!status) return TARE_OK;
    char when[48] = "";
    if (step >= 0) snprintf(when, sizeof when, ", step %lld", (long long)step);
    c->error.message[sizeof c->error.message - 1] = 0;
    plugin_hide_secrets(i, c->error.message, (int64_t)strlen(c->error.message));
    const bool known = strcmp(err_name(status), "failed") != 0;
    const char *kind = plugin_kind_name(i->plugin->desc.kind), *name = i->name;
    if (c->error.message[0]) FAIL(e, known ? status : TARE_E_GENERIC, "%s %s: %s%s: %s", kind, name, phase, when, c->error.message);
    FAIL(e, known ? status : TARE_E_GENERIC, "%s %s: %s%s: failed with status %d (%s) and no message", kind, name, phase, when,
         status, err_name(status));
}

/* ---------------------------------------------------------------- values */

/* Default of an objective without an engine: the defaults of [loss]. */
static const tare_loss PLAIN_LOSS = {.struct_size = sizeof PLAIN_LOSS, .clip = 0.2, .clip_high = 0.2, .shaping = 0.1};

static bool is_text(const tare_param *p)
{
    return p->type == TARE_PARAM_STRING || p->type == TARE_PARAM_PATH;
}

/* True for [A-Za-z_][A-Za-z0-9_]*. */
static bool is_variable(const char *text)
{
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    const size_t first = strspn(text, LETTERS);
    return first && strspn(text + first, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") == strlen(text + first);
}

/* Writes the text that the plugin gets for a configured one: an absolute path, or the value of the
 * environment variable that a secret names. */
static tare_status given_text(const struct plugin_instance *i, const tare_param *p, const char *text, char out[FS_PATH],
                              const char **given, struct err *e)
{
    const char *kind = plugin_kind_name(i->plugin->desc.kind);
    *given = text;
    if (!*text) return TARE_OK;
    if (p->flags & TARE_PARAM_SECRET) {
        if (!is_variable(text)) /* perhaps the secret itself, which no message repeats */
            FAIL(
                e, TARE_E_CONFIG,
                "%s %s: %s is a secret: its value must be the name of an environment variable that has the secret, not the secret itself",
                kind, i->name, p->key);
        *given = getenv(text);
        if (!*given)
            FAIL(e, TARE_E_CONFIG, "%s %s: %s names the environment variable %s, which is not set; export it before tare starts",
                 kind, i->name, p->key, text);
    }
    if (p->type != TARE_PARAM_PATH || *text == '/') return TARE_OK;
    char folder[FS_PATH];
    if (!getcwd(folder, sizeof folder)) FAIL(e, TARE_E_IO, "the working folder: %s", strerror(errno));
    TRY(fs_join(out, folder, text, e));
    *given = out;
    return TARE_OK;
}

/* Makes the instance's copies of the values, as configured and as given. They live until destroy. */
static tare_status copy_values(struct plugin_instance *i, const tare_value *values, struct err *e)
{
    const int64_t n = i->plugin->desc.n_params;
    char path[FS_PATH];
    tare_value *copy;
    TRY(arena_new(&i->arena, &copy, n + 1, e));
    i->values = copy;
    for (int64_t j = 0; j < n; j++) {
        copy[j] = values[j];
        if (is_text(&i->plugin->params[j])) TRY(arena_strdup(&i->arena, values[j].s, -1, (char **)(uintptr_t)&copy[j].s, e));
    }
    TRY(arena_new(&i->arena, &copy, n + 1, e));
    i->given = copy;
    for (int64_t j = 0; j < n; j++) {
        copy[j] = i->values[j];
        if (!is_text(&i->plugin->params[j])) continue;
        const char *given;
        TRY(given_text(i, &i->plugin->params[j], values[j].s, path, &given, e));
        TRY(arena_strdup(&i->arena, given, -1, (char **)(uintptr_t)&copy[j].s, e));
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- wants */

enum { GUARD = 64, GUARD_BYTE = 0xa5 };

tare_status plugin_select(const struct plugin *p, const tare_value *values, uint8_t *wanted, struct err *e)
{
    const struct plugin_instance none = {.plugin = p, .name = p->desc.name, .values = values, .given = values};
    const char *kind = plugin_kind_name(p->desc.kind), *name = p->desc.name;
    struct plugin_call c;
    uint8_t own[TARE_LIMIT_WANTS + GUARD]; /* what is behind the wants shows a plugin that counts wrongly */
    memset(wanted, 1, p->desc.n_wants);
    for (uint32_t j = 0; j < p->desc.n_wants; j++) /* "row.$P" with an empty P */
        if (p->column[j] == COLUMN_ROW_FIELD) wanted[j] = plugin_row_key(p, values, j) != NULL;
    if (!p->head->select || !p->desc.n_wants) return TARE_OK;
    memset(own, GUARD_BYTE, sizeof own);
    memcpy(own, wanted, p->desc.n_wants);
    plugin_enter(&c);
    TRY(plugin_leave(&c, &none, "select", -1, p->head->select(values, own, &c.error), e));
    for (uint32_t j = p->desc.n_wants; j < sizeof own; j++)
        if (own[j] != GUARD_BYTE)
            FAIL(e, TARE_E_PLUGIN, "%s %s: select wrote entry %u of wanted, but the plugin has %u wants", kind, name, j,
                 p->desc.n_wants);
    for (uint32_t j = 0; j < p->desc.n_wants; j++)
        if (own[j] > 1)
            FAIL(e, TARE_E_PLUGIN, "%s %s: select wrote %u for the column %s; must be 0 or 1", kind, name, own[j],
                 p->wants[j].name);
    memcpy(wanted, own, p->desc.n_wants);
    return TARE_OK;
}

bool plugin_requires(const struct plugin *p, enum column_id column)
{
    for (uint32_t j = 0; j < p->desc.n_wants; j++)
        if (p->column[j] == (int16_t)column && !(p->wants[j].flags & TARE_WANT_OPTIONAL)) return true;
    return false;
}

const char *plugin_row_key(const struct plugin *p, const tare_value *values, uint32_t want)
{
    if (p->column[want] != COLUMN_ROW_FIELD) return NULL;
    const char *key = p->wants[want].name + strlen("row.");
    if (*key != '$') return key;
    for (uint32_t i = 0; i < p->desc.n_params; i++)
        if (!strcmp(p->params[i].key, key + 1)) return *values[i].s ? values[i].s : NULL;
    return NULL;
}

bool plugin_wants(const struct plugin_instance *i, enum column_id column)
{
    for (uint32_t j = 0; j < i->plugin->desc.n_wants; j++)
        if (i->plugin->column[j] == (int16_t)column && i->wanted[j]) return true;
    return false;
}

tare_status plugin_column(const struct plugin_instance *i, uint32_t want, const struct plugin_column *from, tare_column *out,
                          struct err *e)
{
    const tare_want *w = &i->plugin->wants[want];
    const char *kind = plugin_kind_name(i->plugin->desc.kind);
    *out = (tare_column){0};
    if (!i->wanted[want] || i->plugin->column[want] == COLUMN_ABSENT) return TARE_OK;
    if (!from->data) {
        if (w->flags & TARE_WANT_OPTIONAL) return TARE_OK;
        FAIL(e, TARE_E_SHAPE, "%s %s wants the column %s, %s", kind, i->name, w->name, from->missing);
    }
    if (w->width && from->width != (int64_t)w->width)
        FAIL(e, TARE_E_SHAPE, "%s %s wants the column %s with %u numbers for each entry, but there are %lld", kind, i->name,
             w->name, w->width, (long long)from->width);
    *out = (tare_column){from->data, from->n, from->width};
    return TARE_OK;
}

/* ---------------------------------------------------------------- create and destroy */

/* Asks for the sizes. Returns false for a plugin without the function. */
static bool ask_sizes(struct plugin_instance *i, tare_sizes *out, tare_status *status, struct err *e)
{
    tare_status (*sizes)(const void *, tare_sizes *, tare_error *) = NULL;
    struct plugin_call c;
    switch (i->plugin->desc.kind) {
    case TARE_KIND_ESTIMATOR:
        sizes = i->plugin->estimator->sizes;
        break;
    case TARE_KIND_OBJECTIVE:
        sizes = i->plugin->objective->sizes;
        break;
    case TARE_KIND_ENCODER:
        sizes = i->plugin->encoder->sizes;
        break;
    case TARE_KIND_CODEBOOK:
        sizes = i->plugin->codebook->sizes;
        break;
    }
    *out = (tare_sizes){.struct_size = sizeof *out};
    *status = TARE_OK;
    if (!sizes) return false;
    plugin_enter(&c);
    *status = plugin_leave(&c, i, "sizes", -1, sizes(i->self, out, &c.error), e);
    return true;
}

tare_status plugin_resize(struct plugin_instance *i, const char *after, struct err *e)
{
    const char *kind = plugin_kind_name(i->plugin->desc.kind);
    tare_sizes now;
    tare_status status;
    if (!ask_sizes(i, &now, &status, e)) return TARE_OK;
    TRY(status);
    const struct {
        const char *name;
        int64_t size, before, most;
        bool learnt; /* by fit, and read by load */
    } all[] = {{"prepare", now.prepare, i->sizes.prepare, 1 << 30, false},
               {"collect", now.collect, i->sizes.collect, 1 << 30, false},
               {"record", now.record, i->sizes.record, 1 << 20, false},
               {"dim", now.dim, i->sizes.dim, 1 << 24, true},
               {"clusters", now.clusters, i->sizes.clusters, 1 << 30, true}};
    for (size_t j = 0; j < sizeof all / sizeof *all; j++) {
        if (all[j].size < 0 || all[j].size > all[j].most)
            FAIL(e, TARE_E_PLUGIN, "%s %s: sizes: %s is %lld; must be 0 to %lld", kind, i->name, all[j].name,
                 (long long)all[j].size, (long long)all[j].most);
        if (after && !all[j].learnt && all[j].size != all[j].before)
            FAIL(e, TARE_E_PLUGIN, "%s %s: sizes: %s is %lld after %s, but was %lld; the sizes of an instance must stay the same",
                 kind, i->name, all[j].name, (long long)all[j].size, after, (long long)all[j].before);
    }
    i->sizes = now;
    i->sizes.struct_size = sizeof i->sizes;
    return TARE_OK;
}

static void free_instance(struct plugin_instance *i)
{
    arena_free(&i->arena);
    mem_free(i);
}

/* Frees an instance whose create failed, so there is nothing for destroy to free. */
static void uncreated_free(struct plugin_instance **i)
{
    if (*i) free_instance(*i);
}

/* Fills what the instance keeps of its arguments. */
static tare_status fill_instance(struct plugin_instance *i, const tare_value *values, struct err *e)
{
    const struct plugin *p = i->plugin;
    uint8_t *wanted;
    arena_init(&i->arena, "plugin instance");
    TRY(arena_strdup(&i->arena, i->env.instance ? i->env.instance : p->desc.name, -1, (char **)(uintptr_t)&i->name, e));
    TRY(copy_values(i, values, e));
    TRY(arena_new(&i->arena, &wanted, p->desc.n_wants + 1, e));
    i->wanted = wanted;
    i->host = plugin_host(i);
    return plugin_select(p, i->given, wanted, e);
}

tare_status plugin_create(const struct plugin *p, const tare_value *values, int64_t n_clusters, const struct plugin_env *env,
                          struct plugin_instance **out, struct err *e)
{
    OWNED(uncreated_free) struct plugin_instance *i = NULL;
    struct plugin_call c;
    *out = NULL;
    TRY(mem_new((int64_t)sizeof *i, (void **)&i, e));
    i->plugin = p;
    i->n_clusters = n_clusters;
    if (env) i->env = *env;
    TRY(fill_instance(i, values, e));
    i->setup = (tare_setup){.struct_size = sizeof i->setup, .host = &i->host, .values = i->given, .instance = i->name};
    if (p->desc.kind == TARE_KIND_ESTIMATOR) i->setup.n_clusters = n_clusters;
    if (p->desc.kind == TARE_KIND_CURRICULUM) TRY(plugin_dataset(i, &i->setup.dataset, e));
    if (p->desc.kind == TARE_KIND_OBJECTIVE) {
        i->loss = i->env.loss ? *i->env.loss : PLAIN_LOSS;
        i->setup.loss = &i->loss;
    }
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "create", -1, p->head->create(&i->setup, &i->self, &c.error), e));
    struct plugin_instance *created = i;
    i = NULL;
    const tare_status status = plugin_resize(created, NULL, e);
    if (status)
        plugin_destroy(created);
    else
        *out = created;
    return status;
}

void plugin_destroy(struct plugin_instance *i)
{
    if (!i) return;
    struct plugin_call c;
    plugin_enter(&c);
    i->plugin->head->destroy(i->self);
    plugin_leave(&c, i, "destroy", -1, TARE_OK, NULL);
    free_instance(i);
}

void plugin_destroy_at(struct plugin_instance **p)
{
    plugin_destroy(*p);
}

tare_status plugin_new(const struct plugin_wanted *w, struct plugin_instance **out, struct err *e)
{
    const struct plugin *p;
    const tare_value *values;
    OWNED(arena_free) struct arena a = {0};
    TRY(plugin_open(w->name, w->kind, w->search, &p, e));
    arena_init(&a, "plugin parameters");
    TRY(plugin_params(p, w->settings, &a, &values, e));
    return plugin_create(p, values, w->n_clusters, w->env, out, e);
}

/* ---------------------------------------------------------------- functions of every kind */

enum { MOST_IDENTITY = 4096 };

/* A description becomes a part of a line of JSON. Nothing written is an empty one. */
static tare_status check_description(const struct plugin_instance *i, struct str *out, int64_t start, struct err *e)
{
    OWNED(json_decrefp) json_t *j = NULL;
    struct err why = {0};
    if (out->size == start) return str_add(out, "{}", -1, e);
    if (!json_parse(out->data + start, out->size - start, "its text", &j, &why) && json_is_object(j)) return TARE_OK;
    FAIL(e, TARE_E_PLUGIN, "%s %s: describe must write one JSON object%s%.200s", plugin_kind_name(i->plugin->desc.kind), i->name,
         why.code ? ": " : "", why.code ? why.message : "");
}

tare_status plugin_describe_state(const struct plugin_instance *i, struct str *out, struct err *e)
{
    struct plugin_call c;
    struct plugin_stream s = {.out = out};
    const tare_stream stream = plugin_stream(&s);
    if (!i->plugin->head->describe) return str_add(out, "{}", -1, e);
    const int64_t start = out->size;
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "describe", -1, i->plugin->head->describe(i->self, &stream, &c.error), e));
    TRY(plugin_stream_end(&s, i, "describe", e));
    TRY(plugin_refuse_secrets(i, "describe", out->data ? out->data + start : NULL, out->size - start, e));
    return check_description(i, out, start, e);
}

/* The identity is compared and recorded as a part of a line of text. */
static tare_status check_identity(const struct plugin_instance *i, const struct str *text, struct err *e)
{
    const char *kind = plugin_kind_name(i->plugin->desc.kind);
    if (text->size > MOST_IDENTITY)
        FAIL(e, TARE_E_PLUGIN, "%s %s: identity wrote %lld bytes; at most %d: write a hash of what is longer", kind, i->name,
             (long long)text->size, MOST_IDENTITY);
    for (int64_t k = 0; k < text->size; k++)
        if ((unsigned char)text->data[k] < ' ' || text->data[k] == 0x7f)
            FAIL(e, TARE_E_PLUGIN, "%s %s: identity wrote the byte 0x%02x; it must be one line of text", kind, i->name,
                 (unsigned char)text->data[k]);
    if (str_utf8_error(text->data, text->size))
        FAIL(e, TARE_E_PLUGIN, "%s %s: identity wrote bytes that are not UTF-8; write them as hexadecimal digits", kind, i->name);
    return plugin_refuse_secrets(i, "identity", text->data, text->size, e);
}

tare_status plugin_identity(const struct plugin_instance *i, struct str *out, struct err *e)
{
    const struct plugin *p = i->plugin;
    struct plugin_call c;
    OWNED(str_free) struct str own = {0};
    struct plugin_stream s = {.out = &own};
    const tare_stream stream = plugin_stream(&s);
    TRY(str_addf(out, e, "%s/%s", p->desc.name, p->desc.version));
    for (uint32_t j = 0; j < p->desc.n_params; j++) {
        /* the identity depends on a file's content, which the plugin adds, and not on its path */
        if (p->params[j].type == TARE_PARAM_PATH || p->params[j].flags & TARE_PARAM_SECRET) continue;
        TRY(str_addf(out, e, " %s=", p->params[j].key));
        TRY(plugin_value_text(p, j, i->values[j], out, e));
    }
    if (!p->head->identity) return TARE_OK;
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "identity", -1, p->head->identity(i->self, &stream, &c.error), e));
    TRY(plugin_stream_end(&s, i, "identity", e));
    TRY(check_identity(i, &own, e));
    return own.size ? str_addf(out, e, " %.*s", (int)own.size, own.data) : TARE_OK;
}
