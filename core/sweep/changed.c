/* A finished run is never repeated. So a table may hold results of a plugin as it was before it was built again: that is told. */
#include "base/json.h"
#include "base/log.h"
#include "sweep/sweep.h"

#include <stdio.h>
#include <string.h>

struct plugin_now { /* a plugin's file as it is now */
    struct plugin_now *next;
    const char *path, *first; /* first: a run made with another build */
    char hash[24];            /* "": it is not there, and nothing can be said */
    int64_t runs;             /* how many were */
};

static tare_status find_plugin(const char *path, struct plugin_now **list, struct arena *a, struct plugin_now **out, struct err *e)
{
    uint64_t hash;
    for (*out = *list; *out; *out = (*out)->next)
        if (!strcmp((*out)->path, path)) return TARE_OK;
    TRY(arena_new(a, out, 1, e));
    TRY(arena_strdup(a, path, -1, (char **)(uintptr_t) & (*out)->path, e));
    if (!fs_hash_file(path, &hash, NULL)) snprintf((*out)->hash, sizeof(*out)->hash, "%016llx", (unsigned long long)hash);
    (*out)->next = *list;
    *list = *out;
    return TARE_OK;
}

static tare_status look_at_run(const char *dir, struct plugin_now **list, struct arena *a, struct err *e)
{
    char path[FS_PATH];
    json_t *manifest = NULL;
    const json_t *plugin;
    size_t i;
    TRY(fs_join(path, dir, "manifest.json", e));
    if (!fs_exists(path) || json_read_file(path, &manifest, NULL)) return TARE_OK; /* not run yet, or damaged, which others tell */
    tare_status status = TARE_OK;
    json_array_foreach(json_object_get(manifest, "plugins"), i, plugin)
    {
        struct plugin_now *now;
        const char *const hash = json_text_or(plugin, "xxh3", ""), *const file = json_text_or(plugin, "path", "");
        if (!*hash || !*file) continue;
        status = find_plugin(file, list, a, &now, e);
        if (status) break;
        if (!*now->hash || !strcmp(now->hash, hash)) continue;
        if (!now->runs++) now->first = dir;
    }
    json_decref(manifest);
    return status;
}

tare_status sweep_warn_changed(const struct sweep *s, struct err *e)
{
    OWNED(arena_free) struct arena a = {0};
    struct plugin_now *list = NULL;
    arena_init(&a, "plugins of a sweep");
    for (int64_t i = 0; i < s->plan.n_cells; i++) TRY(look_at_run(s->jobs[i].dir, &list, &a, e));
    for (const struct plugin_now *p = list; p; p = p->next)
        if (p->runs)
            log_warn(
                "%s is another build than the one that %lld run%s of this sweep began with (%s): finished runs are not repeated; remove their folders to make them again, or give the sweep another name",
                p->path, (long long)p->runs, p->runs == 1 ? "" : "s", p->first);
    return TARE_OK;
}
