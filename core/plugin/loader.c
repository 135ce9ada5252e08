/* Opens the files of plugins. Each is opened once, checked before and after the dynamic loader
 * reads it, and never closed. */
#include "base/fs.h"
#include "base/log.h"
#include "plugin/internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef const tare_plugin *(*entry_function)(const tare_host *, tare_error *);

static pthread_mutex_t LOCK = PTHREAD_MUTEX_INITIALIZER;
static struct plugin_file *FILES; /* lives as long as the process, as the code in the files does */
static struct plugin_file *ADDED; /* plugins of the program itself */

/* Returns the floating-point control bits (rounding, flush-to-zero, traps) without the sticky flags
 * of past operations. */
static unsigned fp_control(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr() & ~0x3fu;
#else
    return (unsigned)fegetround();
#endif
}

/* Names the packages to install when the libraries of a built-in plugin are missing. Writes "" for
 * other plugins. */
static void write_advice(const char *path, char *text, size_t capacity)
{
    const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    text[0] = 0;
    for (const struct plugin_builtin *b = PLUGIN_BUILTINS; b->name; b++) {
        const size_t n = strlen(b->name);
        if (b->needs && !strncmp(file, b->name, n) && !strcmp(file + n, ".so"))
            snprintf(text, capacity, "; it needs the libraries of %s (apt-get install)", b->needs);
    }
}

/* Runs dlopen and the entry point, and undoes their changes to the process. An object that an older
 * gcc linked with -ffast-math turns on flush-to-zero for the thread that loads it. */
static tare_status open_guarded(const char *path, const tare_plugin **out, struct err *e)
{
    fenv_t fenv;
    char before[256];
    fegetenv(&fenv);
    const unsigned control = fp_control();
    snprintf(before, sizeof before, "%s", setlocale(LC_ALL, NULL));

    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *why = handle ? NULL : dlerror();
    entry_function entry = NULL;
    tare_error error = {.struct_size = sizeof error};
    if (handle) *(void **)&entry = dlsym(handle, "tare_plugin_v1");
    *out = entry ? entry(plugin_entry_host(), &error) : NULL;

    const bool fp_changed = fp_control() != control;
    fesetenv(&fenv);
    const bool locale_changed = strcmp(before, setlocale(LC_ALL, NULL)) != 0;
    if (locale_changed) setlocale(LC_ALL, before);
    if (fp_changed)
        log_warn("%s: changed the floating-point mode while it was loaded; the mode was restored (was it linked with -ffast-math?)",
                 path);
    if (locale_changed) log_warn("%s: changed the locale while it was loaded; the locale was restored", path);

    if (!handle) {
        char help[400];
        write_advice(path, help, sizeof help);
        FAIL(e, TARE_E_PLUGIN, "%s: the dynamic loader cannot open it: %s%s", path, why ? why : "no reason given", help);
    }
    if (!entry) FAIL(e, TARE_E_PLUGIN, "%s: exports no function tare_plugin_v1", path);
    error.message[sizeof error.message - 1] = 0;
    if (!*out)
        FAIL(e, error.code > 0 ? error.code : TARE_E_PLUGIN, "%s: the plugin refuses this host: %s", path,
             error.message[0] ? error.message : "no reason given");
    return TARE_OK;
}

static void file_free_at(struct plugin_file **f)
{
    if (*f) mem_free((*f)->plugins);
    mem_free(*f);
}

static tare_status open_new(const char *path, struct plugin_file **out, struct err *e)
{
    const tare_plugin *raw;
    OWNED(file_free_at) struct plugin_file *f = NULL;
    uint64_t hash;
    TRY(elf_check(path, &hash, e));
    TRY(mem_new((int64_t)sizeof *f, (void **)&f, e));
    TRY(open_guarded(path, &raw, e));
    TRY(plugin_validate(path, raw, &f->plugins, &f->n, e));
    f->path = strdup(path);
    if (!f->path) FAIL(e, TARE_E_NOMEM, "no memory to open %s", path);
    for (uint32_t i = 0; i < f->n; i++) {
        f->plugins[i].path = f->path;
        f->plugins[i].hash = hash;
    }
    *out = f;
    f = NULL;
    return TARE_OK;
}

tare_status plugin_file_open(const char *path, const struct plugin_file **out, struct err *e)
{
    char real[PATH_MAX];
    if (!realpath(path, real)) FAIL(e, errno == ENOENT ? TARE_E_NOT_FOUND : TARE_E_IO, "%s: %s", path, strerror(errno));
    if (fs_is_dir(real)) FAIL(e, TARE_E_INVALID, "%s: a folder, not a plugin", path);
    pthread_mutex_lock(&LOCK);
    struct plugin_file *f = FILES;
    while (f && strcmp(f->path, real)) f = f->next;
    tare_status status = TARE_OK;
    if (!f) {
        status = open_new(real, &f, e);
        if (!status) {
            f->next = FILES;
            FILES = f;
        }
    }
    pthread_mutex_unlock(&LOCK);
    *out = status ? NULL : f;
    return status;
}

tare_status plugin_add(const char *origin, const tare_plugin *plugin, struct err *e)
{
    tare_status status = TARE_OK;
    pthread_mutex_lock(&LOCK);
    struct plugin_file *f = ADDED;
    while (f && strcmp(f->path, origin)) f = f->next;
    if (!f) {
        status = mem_new((int64_t)sizeof *f, (void **)&f, e);
        if (!status) status = plugin_validate(origin, plugin, &f->plugins, &f->n, e);
        if (status) {
            mem_free(f);
        } else {
            f->path = origin;
            for (uint32_t i = 0; i < f->n; i++) f->plugins[i].path = origin;
            f->next = ADDED;
            ADDED = f;
        }
    }
    pthread_mutex_unlock(&LOCK);
    return status;
}

/* Returns NULL if no added plugin has this name. */
static const struct plugin *find_added(const char *name, int32_t kind)
{
    const struct plugin *found = NULL;
    pthread_mutex_lock(&LOCK);
    for (const struct plugin_file *f = ADDED; f; f = f->next)
        for (uint32_t i = 0; i < f->n; i++)
            if (f->plugins[i].desc.kind == kind && !strcmp(f->plugins[i].desc.name, name)) found = &f->plugins[i];
    pthread_mutex_unlock(&LOCK);
    return found;
}

/* Chooses the plugin of a file by kind and name. wanted NULL: the only plugin of the kind, or the
 * one named like the file. */
static tare_status choose_plugin(const struct plugin_file *f, int32_t kind, const char *wanted, const struct plugin **out,
                                 struct err *e)
{
    const struct plugin *only = NULL, *named = NULL;
    char stem[FS_PATH], holds[600] = "";
    const char *slash = strrchr(f->path, '/');
    snprintf(stem, sizeof stem, "%s", slash ? slash + 1 : f->path);
    if (strrchr(stem, '.')) *strrchr(stem, '.') = 0;
    int of_kind = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct plugin *p = &f->plugins[i];
        const size_t used = strlen(holds);
        snprintf(holds + used, sizeof holds - used, "%s%s %s", i ? ", " : "", plugin_kind_name(p->desc.kind), p->desc.name);
        if (p->desc.kind != kind) continue;
        of_kind++;
        only = p;
        if (!strcmp(p->desc.name, wanted ? wanted : stem)) named = p;
    }
    if (!of_kind) FAIL(e, TARE_E_CONFIG, "%s: contains no %s; it contains %s", f->path, plugin_kind_name(kind), holds);
    *out = named ? named : of_kind == 1 && !wanted ? only : NULL;
    if (*out) return TARE_OK;
    if (wanted)
        FAIL(e, TARE_E_CONFIG, "%s: contains no %s named '%s'; it contains %s", f->path, plugin_kind_name(kind), wanted, holds);
    FAIL(e, TARE_E_CONFIG, "%s: contains several: %s; choose one with FILE.so:NAME", f->path, holds);
}

/* Refuses a name of the search path whose file has plugins of another kind only: an encoder for a
 * codebook. */
static tare_status check_kind(const struct plugin_file *f, int32_t kind, const char *name, struct err *e)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (f->plugins[i].desc.kind == kind) return TARE_OK;
    if (!f->n) return TARE_OK;
    const struct config_kind *k = &CONFIG_KINDS[f->plugins[0].desc.kind];
    FAIL(e, TARE_E_CONFIG, "no %s named '%s'; %s is %s %s: %s.%s=%s", plugin_kind_name(kind), name, name,
         strchr("aeio", k->name[0]) ? "an" : "a", k->name, k->name, k->key, name);
}

tare_status plugin_open(const char *name, int32_t kind, const struct plugin_search *search, const struct plugin **out,
                        struct err *e)
{
    char path[FS_PATH];
    const struct plugin_file *f;
    *out = NULL;
    if (!name || !*name) FAIL(e, TARE_E_CONFIG, "missing name of the %s", plugin_kind_name(kind));
    const size_t n = strlen(name);
    if (n >= sizeof path) FAIL(e, TARE_E_CONFIG, "%s: the name is too long", name);
    snprintf(path, sizeof path, "%s", name);
    char *colon = strstr(path, ".so:");
    const char *wanted = NULL;
    if (colon) {
        colon[3] = 0;
        wanted = colon + 4;
    }
    if (!wanted && !strchr(path, '/') && (n < 3 || strcmp(path + n - 3, ".so"))) {
        *out = find_added(name, kind);
        if (*out) return TARE_OK;
        TRY(plugin_find(name, kind, search, path, e));
        TRY(plugin_file_open(path, &f, e));
        TRY(check_kind(f, kind, name, e));
    }
    TRY(plugin_file_open(path, &f, e));
    return choose_plugin(f, kind, wanted, out, e);
}

tare_status plugin_each(const char *path, plugin_visit visit, void *ctx, struct err *e)
{
    const struct plugin_file *f;
    TRY(plugin_file_open(path, &f, e));
    for (uint32_t i = 0; i < f->n; i++) TRY(visit(ctx, f->path, &f->plugins[i], NULL));
    return TARE_OK;
}

struct listing {
    plugin_visit visit;
    void *ctx;
    tare_status status;
    /* "\nKIND NAME\n" of each listed plugin; of several with one name, the first is listed */
    struct str seen;
};

static bool seen_before(struct listing *l, const struct plugin *p)
{
    char line[200];
    struct err e;
    snprintf(line, sizeof line, "\n%s %s\n", plugin_kind_name(p->desc.kind), p->desc.name);
    if (l->seen.size && strstr(l->seen.data, line)) return true;
    l->status = str_add(&l->seen, line, -1, &e);
    return false;
}

static int is_library(const struct dirent *d)
{
    return str_ends_with(d->d_name, ".so");
}

static bool list_folder(void *ctx, const char *folder)
{
    struct listing *l = ctx;
    OWNED(fs_list_free) struct fs_list files = {0};
    struct err unread = {0};
    if (fs_list(folder, is_library, &files, &unread) && unread.code != TARE_E_NOT_FOUND)
        l->status = l->visit(l->ctx, folder, NULL, &unread);
    for (int i = 0; i < files.n && !l->status; i++) {
        char path[FS_PATH];
        struct err why = {0};
        if (fs_join(path, folder, files.entry[i]->d_name, NULL)) continue;
        const struct plugin_file *f;
        if (plugin_file_open(path, &f, &why)) l->status = l->visit(l->ctx, path, NULL, &why);
        for (uint32_t j = 0; !why.code && j < f->n && !l->status; j++)
            if (!seen_before(l, &f->plugins[j]) && !l->status) l->status = l->visit(l->ctx, f->path, &f->plugins[j], NULL);
    }
    return l->status != TARE_OK;
}

tare_status plugin_list(const struct plugin_search *search, plugin_visit visit, void *ctx, struct err *e)
{
    (void)e;
    struct listing l = {.visit = visit, .ctx = ctx};
    plugin_folders(search, 0, list_folder, &l);
    str_free(&l.seen);
    return l.status;
}
