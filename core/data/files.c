#include "data/files.h"

#include "base/fs.h"
#include "base/str.h"

#include <glob.h>
#include <math.h>
#include <string.h>

enum { FILES_MOST = 4096 };

static tare_status add_path(struct files *f, const char *path, struct arena *a, struct err *e)
{
    if (f->n == FILES_MOST) FAIL(e, TARE_E_RANGE, "%s: more than %d files", path, FILES_MOST);
    f->source[f->n] = (int32_t)f->n_sources;
    return arena_strdup(a, path, -1, (char **)(uintptr_t)&f->path[f->n++], e);
}

static tare_status add_pattern(struct files *f, const char *pattern, struct arena *a, struct err *e)
{
    OWNED(globfree) glob_t g = {0};
    if (fs_exists(pattern) || !strpbrk(pattern, "*?[")) return add_path(f, pattern, a, e);
    const int bad = glob(pattern, 0, NULL, &g); /* sorted by name */
    if (bad == GLOB_NOSPACE) FAIL(e, TARE_E_NOMEM, "%s: no memory to list the files", pattern);
    if (bad) FAIL(e, TARE_E_NOT_FOUND, "%s: no such file", pattern);
    for (size_t i = 0; i < g.gl_pathc; i++) TRY(add_path(f, g.gl_pathv[i], a, e));
    return TARE_OK;
}

/* Returns where the weight of an entry begins, at its last colon; NULL: no weight. */
static char *weight_of(char *name, double *weight)
{
    char *colon = strrchr(name, ':');
    return colon && colon > name && !str_to_double(colon + 1, weight, NULL) ? colon : NULL;
}

/* Splits "name:0.7". An existing file with the whole name takes precedence. weight 0: none. */
static tare_status take_weight(char *name, double *weight, struct err *e)
{
    char *colon = fs_exists(name) ? NULL : weight_of(name, weight);
    if (!colon) return *weight = 0, TARE_OK;
    if (!(*weight >= 1e-6 && *weight <= 1e6))
        FAIL(e, TARE_E_CONFIG, "%s: invalid weight: must be in 1e-6 .. 1e6; remove files that are not to be used", name);
    *colon = 0;
    return TARE_OK;
}

/* Splits the next entry off the list. It ends at a comma, or at a space after its weight, because
 * names may contain spaces. NULL: the list is empty. */
static char *next_entry(char **list)
{
    char *name = *list + strspn(*list, " ,"), *end = name;
    double unused;
    if (!*name) return NULL;
    for (; *end && *end != ','; end++) {
        if (*end != ' ') continue;
        *end = 0;
        const bool weighted = weight_of(name, &unused) != NULL;
        *end = ' ';
        if (weighted) break;
    }
    *list = end + (*end != 0);
    while (end > name && end[-1] == ' ') end--;
    *end = 0;
    return name;
}

/* weight: [n_sources], 0 for an entry without one */
static tare_status keep_weights(struct files *f, double *weight, const char *list, struct err *e)
{
    int64_t weighted = 0;
    for (int64_t s = 0; s < f->n_sources; s++) weighted += weight[s] > 0;
    if (weighted && weighted < f->n_sources)
        FAIL(e, TARE_E_CONFIG, "'%s': %lld of %lld files have a weight (file.jsonl:0.7); give a weight to all or none", list,
             (long long)weighted, (long long)f->n_sources);
    f->weight = weighted ? weight : NULL;
    return TARE_OK;
}

tare_status files_of(const char *list, struct arena *a, struct files *out, struct err *e)
{
    char *rest, *name;
    double *weight;
    *out = (struct files){0};
    TRY(arena_new(a, &out->path, FILES_MOST, e));
    TRY(arena_new(a, &out->source, FILES_MOST, e));
    TRY(arena_new(a, &weight, FILES_MOST, e));
    if (fs_exists(list)) {
        TRY(add_path(out, list, a, e));
        out->n_sources = 1;
        return TARE_OK;
    }
    TRY(arena_strdup(a, list, -1, &rest, e));
    while ((name = next_entry(&rest))) {
        if (out->n_sources == FILES_MOST) FAIL(e, TARE_E_RANGE, "%s: more than %d files", name, FILES_MOST);
        TRY(take_weight(name, &weight[out->n_sources], e));
        TRY(add_pattern(out, name, a, e));
        out->n_sources++;
    }
    if (!out->n) FAIL(e, TARE_E_CONFIG, "'%s' names no file", list);
    return keep_weights(out, weight, list, e);
}
