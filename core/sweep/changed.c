/* Finished runs are never repeated, so a table may hold results of a plugin that has been rebuilt
 * since. This file warns about them. */
#include "base/json.h"
#include "base/log.h"
#include "sweep/sweep.h"

#include <stdio.h>
#include <string.h>

struct plugin_now { /* current file of a plugin */
    struct plugin_now *next;
    const char *path, *first; /* first: a run made with another build */
    char hash[24];            /* "": the file is missing, so nothing can be compared */
    int64_t runs;             /* number of runs made with another build */
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
    /* not run yet, or damaged, which is reported elsewhere */
    if (!fs_exists(path) || json_read_file(path, &manifest, NULL)) return TARE_OK;
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
                "%s differs from the build that %lld run%s of this sweep started with (%s): finished runs are not repeated; remove their folders to repeat them, or give the sweep another name",
                p->path, (long long)p->runs, p->runs == 1 ? "" : "s", p->first);
    return TARE_OK;
}
