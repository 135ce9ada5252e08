#include "observe/named_files.h"

#include "base/fs.h"
#include "base/log.h"
#include "observe/python_imports.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---------------------------------------------------------------- adding */

static tare_status add_checksum(json_t *files, const char *folder, const char *name, struct err *e)
{
    char path[FS_PATH], text[17];
    uint64_t hash;
    struct err why = {0};
    TRY(fs_join(path, folder, name, e));
    if (fs_hash_file(path, &hash, &why)) {
        if (why.code == TARE_E_NOMEM) FAIL(e, TARE_E_NOMEM, "%s", why.message);
        log_warn("%s; the run's manifest has no checksum of it", why.message);
        return TARE_OK;
    }
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    /* JSON cannot hold such names */
    if (str_utf8_error(name, (int64_t)strlen(name))) return TARE_OK;
    if (json_object_set_new(files, name, json_string(text))) FAIL(e, TARE_E_NOMEM, "%s: out of memory for its checksum", path);
    return TARE_OK;
}

/* Adds a file; if it is Python, also the files that it imports. */
static tare_status add_file(json_t *files, const char *folder, const char *name, struct err *e)
{
    OWNED(json_decrefp) json_t *names = json_array();
    json_t *one;
    size_t i;
    if (!names) FAIL(e, TARE_E_NOMEM, "%s/%s: out of memory for its imports", folder, name);
    if (!str_ends_with(name, ".py")) return add_checksum(files, folder, name, e);
    TRY(python_imports(folder, name, names, e));
    json_array_foreach(names, i, one) TRY(add_checksum(files, folder, json_string_value(one), e));
    return TARE_OK;
}

static tare_status add_folder(json_t *files, const char *folder, struct err *e)
{
    OWNED(fs_list_free) struct fs_list list = {0};
    struct stat info;
    char path[FS_PATH];
    TRY(fs_list(folder, NULL, &list, e));
    for (int i = 0; i < list.n; i++) {
        const char *name = list.entry[i]->d_name;
        if (fs_join(path, folder, name, NULL) || stat(path, &info) || !S_ISREG(info.st_mode)) continue;
        TRY(add_checksum(files, folder, name, e));
    }
    return TARE_OK;
}

/* Writes the absolute path; the file itself may be a link, because Python imports from the folder
 * of the link. Returns false if there is no such file or folder. */
static bool find_path(const char *path, char out[PATH_MAX], bool *is_folder)
{
    char folder[FS_PATH], real[PATH_MAX];
    struct stat info;
    if (strlen(path) >= FS_PATH || stat(path, &info)) return false;
    *is_folder = S_ISDIR(info.st_mode);
    if (*is_folder) return realpath(path, out) != NULL;
    fs_dirname(folder, path);
    if (!S_ISREG(info.st_mode) || !realpath(folder, real)) return false;
    return snprintf(out, PATH_MAX, "%s/%s", strcmp(real, "/") ? real : "", base_name(path)) < PATH_MAX;
}

static bool has_entry(const json_t *list, const char *key, const char *path)
{
    json_t *one;
    size_t i;
    json_array_foreach(list, i, one)
    {
        if (!strcmp(json_text_or(one, "key", ""), key) && !strcmp(json_text_or(one, "path", ""), path)) return true;
    }
    return false;
}

tare_status named_files_add(json_t *list, const char *key, const char *path, struct err *e)
{
    char whole[PATH_MAX], folder[FS_PATH];
    bool is_folder;
    if (!find_path(path, whole, &is_folder) || has_entry(list, key, whole)) return TARE_OK;
    OWNED(json_decrefp) json_t *files = json_object();
    if (!files) FAIL(e, TARE_E_NOMEM, "%s: out of memory for the checksums of its files", key);
    fs_dirname(folder, whole);
    TRY(is_folder ? add_folder(files, whole, e) : add_file(files, folder, base_name(whole), e));
    json_t *one = json_pack("{s:s, s:o, s:O}", "key", key, "path", json_readable(whole), "files", files);
    if (!one || json_array_append_new(list, one)) FAIL(e, TARE_E_NOMEM, "%s: out of memory for the checksums of its files", key);
    return TARE_OK;
}

/* ---------------------------------------------------------------- comparing */

tare_status named_files_recorded(const char *run_dir, json_t **out, struct err *e)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *root = NULL;
    *out = NULL;
    TRY(fs_join(path, run_dir, "manifest.json", e));
    if (json_read_file(path, &root, NULL) == TARE_E_NOMEM) FAIL(e, TARE_E_NOMEM, "%s: out of memory", path);
    const json_t *list = json_object_get(root, "resumed");
    const json_t *last = json_array_size(list) ? json_array_get(list, json_array_size(list) - 1) : root;
    json_t *files = json_object_get(last, "files");
    *out = json_is_array(files) ? json_incref(files) : NULL;
    return TARE_OK;
}

/* Returns the entry with the same key and path, else the first with the same key and file name: the
 * folder may have been moved. */
static const json_t *find_entry(const json_t *list, const json_t *like)
{
    const char *key = json_text_or(like, "key", ""), *path = json_text_or(like, "path", "");
    const json_t *same_name = NULL;
    json_t *one;
    size_t i;
    json_array_foreach(list, i, one)
    {
        const char *at = json_text_or(one, "path", "");
        if (strcmp(json_text_or(one, "key", ""), key)) continue;
        if (!strcmp(at, path)) return one;
        if (!same_name && !strcmp(base_name(at), base_name(path))) same_name = one;
    }
    return same_name;
}

static tare_status compare_entry(const json_t *then, const json_t *now, model_changed visit, void *ctx, struct err *e)
{
    struct model_change c = {.key = json_text_or(now, "key", "?"), .path = json_text_or(now, "path", "?")};
    json_t *before = json_object_get(then, "files"), *after = json_object_get(now, "files"), *sum;
    json_object_foreach(before, c.file, sum)
    {
        const char *was = json_string_value(sum), *is = json_text_or(after, c.file, NULL);
        if (was && is && !strcmp(was, is)) continue;
        c.what = is ? "differs from the file that the run was trained with" : "was removed or is no longer imported";
        TRY(visit(ctx, &c, e));
    }
    c.what = "was not read when the run was trained";
    c.is_new = true;
    json_object_foreach(after, c.file, sum)
    {
        if (!json_object_get(before, c.file)) TRY(visit(ctx, &c, e));
    }
    return TARE_OK;
}

tare_status named_files_compare(const json_t *then, const json_t *now, model_changed visit, void *ctx, struct err *e)
{
    json_t *before;
    size_t i;
    json_array_foreach(then, i, before)
    {
        const json_t *one = find_entry(now, before);
        if (one) TRY(compare_entry(before, one, visit, ctx, e));
    }
    return TARE_OK;
}
