/* The search path of plugins. A bare name is never given to the dynamic loader, so LD_LIBRARY_PATH
 * has no effect. */
#include "base/fs.h"
#include "base/program.h"
#include "config/critic.h"
#include "plugin/internal.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *plugin_kind_name(int32_t kind)
{
    return kind == 0                                               ? "plugin"
           : kind >= PLUGIN_FIRST_KIND && kind <= PLUGIN_LAST_KIND ? CONFIG_KINDS[kind].name
                                                                   : "plugin of an unknown kind";
}

const char *plugin_section_kind(int32_t kind)
{
    return CONFIG_KINDS[kind].name;
}

bool plugin_name_ok(const char *name)
{
    if (!name || name[0] < 'a' || name[0] > 'z') return false;
    for (; *name; name++)
        if (!(*name >= 'a' && *name <= 'z') && !(*name >= '0' && *name <= '9') && *name != '_') return false;
    return true;
}

/* Visits folder/estimators and so on: the folder of this kind, or of each kind. */
static bool kind_folders(const char *folder, int32_t kind, folder_visit visit, void *ctx)
{
    for (int32_t k = PLUGIN_FIRST_KIND; k <= PLUGIN_LAST_KIND; k++) {
        char path[FS_PATH];
        const bool again = !strcmp(CONFIG_KINDS[k].folder, k > PLUGIN_FIRST_KIND ? CONFIG_KINDS[k - 1].folder : "");
        if (kind ? k != kind : again) continue;
        if (!fs_join(path, folder, CONFIG_KINDS[k].folder, NULL) && visit(ctx, path)) return true;
    }
    return false;
}

static bool listed_folders(const char *list, int32_t kind, folder_visit visit, void *ctx)
{
    while (list && *list) {
        const size_t n = strcspn(list, ":");
        char folder[FS_PATH];
        if (n && n < sizeof folder) {
            memcpy(folder, list, n);
            folder[n] = 0;
            if (visit(ctx, folder) || kind_folders(folder, kind, visit, ctx)) return true;
        }
        list += n + (list[n] == ':');
    }
    return false;
}

void plugin_folders(const struct plugin_search *search, int32_t kind, folder_visit visit, void *ctx)
{
    char folder[FS_PATH];
    if (listed_folders(getenv("TARE_PLUGIN_PATH"), kind, visit, ctx)) return;
    if (search && search->folder && *search->folder &&
        (visit(ctx, search->folder) || kind_folders(search->folder, kind, visit, ctx)))
        return;
    if (program_path(folder, "plugins") && kind_folders(folder, kind, visit, ctx)) return;
    if (program_path(folder, PROGRAM_LIBRARIES)) kind_folders(folder, kind, visit, ctx);
}

struct hunt {
    const char *name;
    char *path; /* FS_PATH */
    bool found;
    struct str looked;
    char near[256];   /* the most similar name in the folders */
    int64_t distance; /* its edit distance */
};

static bool look_for_file(void *ctx, const char *folder)
{
    struct hunt *h = ctx;
    char file[FS_PATH];
    if (snprintf(file, sizeof file, "%s.so", h->name) >= (int)sizeof file || fs_join(h->path, folder, file, NULL)) return false;
    if (fs_exists(h->path)) return h->found = true;
    str_addf(&h->looked, NULL, "%s%s", h->looked.size ? ", " : "", folder);
    return false;
}

/* Keeps the most similar plugin name in the folder, if it is close enough to be a typing error. */
static bool look_similar(void *ctx, const char *folder)
{
    struct hunt *h = ctx;
    DIR *d = opendir(folder);
    if (!d) return false;
    for (struct dirent *entry; (entry = readdir(d));) {
        char stem[256];
        const size_t n = strlen(entry->d_name);
        if (n < 4 || n > sizeof stem || strcmp(entry->d_name + n - 3, ".so")) continue;
        memcpy(stem, entry->d_name, n - 3);
        stem[n - 3] = 0;
        const int64_t distance = str_distance(stem, h->name);
        if (distance >= h->distance) continue;
        h->distance = distance;
        memcpy(h->near, stem, n - 2);
    }
    closedir(d);
    return false;
}

/* Returns the entry of a built-in plugin that is missing from this build. */
static const struct plugin_builtin *left_out(const char *name)
{
    for (const struct plugin_builtin *b = PLUGIN_BUILTINS; b->name; b++)
        if (!b->built && !strcmp(b->name, name)) return b;
    return NULL;
}

/* Returns the kind of the plugins in a file, which is another kind of the same folder if it has none
 * of this one: encoders and codebooks. */
static int32_t kind_in_file(const char *path, int32_t kind)
{
    const struct plugin_file *f;
    struct err ignored = {0};
    if (plugin_file_open(path, &f, &ignored) || !f->n) return kind;
    for (uint32_t i = 0; i < f->n; i++)
        if (f->plugins[i].desc.kind == kind) return kind;
    return f->plugins[0].desc.kind;
}

/* Returns the kind of another plugin with this name in the folders of that kind, or 0. */
static int32_t kind_of_name(const char *name, int32_t kind, const struct plugin_search *search)
{
    char path[FS_PATH];
    for (int32_t k = PLUGIN_FIRST_KIND; k <= PLUGIN_LAST_KIND; k++) {
        struct hunt h = {.name = name, .path = path};
        if (!strcmp(CONFIG_KINDS[k].folder, CONFIG_KINDS[kind].folder)) continue;
        plugin_folders(search, k, look_for_file, &h);
        str_free(&h.looked);
        if (h.found) return kind_in_file(path, k);
    }
    return 0;
}

tare_status plugin_find(const char *name, int32_t kind, const struct plugin_search *search, char *path, struct err *e)
{
    struct hunt h = {.name = name, .path = path, .distance = 3 + (int64_t)strlen(name) / 6};
    plugin_folders(search, kind, look_for_file, &h);
    char lower[256];
    if (!h.found) { /* so that GRPO suggests grpo */
        size_t n = 0;
        for (; name[n] && n + 1 < sizeof lower; n++)
            lower[n] = (char)(name[n] >= 'A' && name[n] <= 'Z' ? name[n] - 'A' + 'a' : name[n]);
        lower[n] = 0;
        h.name = lower;
        plugin_folders(search, kind, look_similar, &h);
        h.name = name;
    }
    tare_status status = TARE_OK;
    const struct plugin_builtin *missing = h.found ? NULL : left_out(name);
    if (missing) {
        status =
            err_set(e, TARE_E_NOT_FOUND, __FILE__, __LINE__,
                    "%s %s is missing from this build, because its libraries were missing; apt-get install %s, then build again",
                    plugin_kind_name(kind), name, missing->needs);
    } else if (!h.found && !strcmp(name, PLUGIN_OF_CALLER)) {
        status = err_set(e, TARE_E_NOT_FOUND, __FILE__, __LINE__,
                         "%s %s is a function of a Python program (tare.Run, docs/python.md); resume the run from that program",
                         plugin_kind_name(kind), name);
    } else if (!h.found && (!kind || kind == TARE_KIND_ESTIMATOR) && critic_has_estimator(name)) {
        status = err_set(e, TARE_E_NOT_FOUND, __FILE__, __LINE__, "estimator %s %s", name, CRITIC_MISSING);
    } else if (!h.found) {
        const int32_t other = kind ? kind_of_name(name, kind, search) : 0;
        const struct config_kind *k = &CONFIG_KINDS[other];
        if (other)
            status =
                err_set(e, TARE_E_NOT_FOUND, __FILE__, __LINE__, "no %s named '%s'; %s is %s %s: %s.%s=%s", plugin_kind_name(kind),
                        name, name, strchr("aeio", k->name[0]) ? "an" : "a", k->name, k->name, k->key, name);
        else if (h.near[0])
            status =
                err_set(e, TARE_E_NOT_FOUND, __FILE__, __LINE__, "no %s named '%s'; did you mean %s? `tare plugin list` lists all",
                        plugin_kind_name(kind), name, h.near);
        else
            status = err_set(
                e, TARE_E_NOT_FOUND, __FILE__, __LINE__,
                "no %s named '%s' (`tare plugin list` lists all); searched %s. Name your own plugin by its file (./%s.so), or put it into a folder of run.plugins or TARE_PLUGIN_PATH",
                plugin_kind_name(kind), name, h.looked.size ? h.looked.data : "no folder", name);
    }
    str_free(&h.looked);
    return status;
}
