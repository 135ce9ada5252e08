/* Finished runs are never repeated, so a table may hold results of a plugin that has been rebuilt
 * since, or of a reward function that has been edited. This file warns about them. */
#include "base/json.h"
#include "base/log.h"
#include "sweep/sweep.h"

#include <stdio.h>
#include <string.h>

struct file_now { /* current file of a plugin, or of those that its parameters name */
    struct file_now *next;
    const char *path, *first; /* first: a run that began with another file */
    char hash[24];            /* "": the file is missing, so nothing can be compared */
    int64_t runs;             /* number of runs that began with another file */
};

struct files_now {
    struct file_now *list;
    struct arena arena;
};

static tare_status find_now(const char *path, struct files_now *all, struct file_now **out, struct err *e)
{
    uint64_t hash;
    for (*out = all->list; *out; *out = (*out)->next)
        if (!strcmp((*out)->path, path)) return TARE_OK;
    TRY(arena_new(&all->arena, out, 1, e));
    TRY(arena_strdup(&all->arena, path, -1, (char **)(uintptr_t) & (*out)->path, e));
    if (!fs_hash_file(path, &hash, NULL)) snprintf((*out)->hash, sizeof(*out)->hash, "%016llx", (unsigned long long)hash);
    (*out)->next = all->list;
    all->list = *out;
    return TARE_OK;
}

/* Counts the run dir if the file at path does not have this checksum any more. */
static tare_status compare_file(const char *dir, const char *path, const char *hash, struct files_now *all, struct err *e)
{
    struct file_now *now;
    if (!*hash || !*path) return TARE_OK;
    TRY(find_now(path, all, &now, e));
    if (*now->hash && strcmp(now->hash, hash) && !now->runs++) now->first = dir;
    return TARE_OK;
}

/* Compares the files of an entry of "files" (observe/named_files.h). */
static tare_status compare_named(const char *dir, const json_t *entry, struct files_now *all, struct err *e)
{
    char folder[FS_PATH], path[FS_PATH];
    const char *name, *whole = json_text_or(entry, "path", "");
    json_t *hash;
    if (strlen(whole) >= FS_PATH) return TARE_OK;
    fs_dirname(folder, whole);
    json_object_foreach(json_object_get(entry, "files"), name, hash)
    {
        TRY(fs_join(path, fs_is_dir(whole) ? whole : folder, name, e));
        TRY(compare_file(dir, path, json_is_string(hash) ? json_string_value(hash) : "", all, e));
    }
    return TARE_OK;
}

static tare_status look_at_run(const char *dir, struct files_now *all, struct err *e)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *manifest = NULL;
    json_t *one;
    size_t i;
    TRY(fs_join(path, dir, "manifest.json", e));
    /* not run yet, or damaged, which is reported elsewhere */
    if (!fs_exists(path) || json_read_file(path, &manifest, NULL)) return TARE_OK;
    json_array_foreach(json_object_get(manifest, "plugins"), i, one)
        TRY(compare_file(dir, json_text_or(one, "path", ""), json_text_or(one, "xxh3", ""), all, e));
    json_array_foreach(json_object_get(manifest, "files"), i, one) TRY(compare_named(dir, one, all, e));
    return TARE_OK;
}

static tare_status warn_changed(const struct sweep *s, struct files_now *all, struct err *e)
{
    for (int64_t i = 0; i < s->plan.n_cells; i++) TRY(look_at_run(s->jobs[i].dir, all, e));
    for (const struct file_now *f = all->list; f; f = f->next)
        if (f->runs)
            log_warn(
                "%s differs from the file that %lld run%s of this sweep started with (%s): finished runs are not repeated; remove their folders to repeat them, or give the sweep another name",
                f->path, (long long)f->runs, f->runs == 1 ? "" : "s", f->first);
    return TARE_OK;
}

tare_status sweep_warn_changed(const struct sweep *s, struct err *e)
{
    struct files_now all = {0};
    arena_init(&all.arena, "files of a sweep's runs");
    const tare_status status = warn_changed(s, &all, e);
    arena_free(&all.arena);
    return status;
}
