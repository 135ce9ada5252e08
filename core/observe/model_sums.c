#include "observe/model_sums.h"

#include "base/fs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Selects the files that a model is read from. Some folders contain their weights a second time as
 * consolidated.safetensors, which is never read. */
static int is_read(const struct dirent *d)
{
    static const char *const NAMES[] = {
        "config.json",         "generation_config.json",      "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
        "adapter_config.json", "model.safetensors.index.json"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (!strcmp(d->d_name, NAMES[i])) return 1;
    return str_ends_with(d->d_name, ".safetensors") && strncmp(d->d_name, "consolidated", 12);
}

static tare_status add_checksum(json_t *files, const char *folder, const char *name, struct err *e)
{
    char path[FS_PATH], text[17];
    uint64_t hash;
    TRY(fs_join(path, folder, name, e));
    TRY(fs_hash_file(path, &hash, e));
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    /* JSON cannot hold such names, and models do not use them */
    if (str_utf8_error(name, (int64_t)strlen(name))) return TARE_OK;
    if (json_object_set_new(files, name, json_string(text))) FAIL(e, TARE_E_NOMEM, "%s: out of memory for its checksum", path);
    return TARE_OK;
}

static tare_status add_folder(json_t *files, const char *folder, struct err *e)
{
    OWNED(fs_list_free) struct fs_list list = {0};
    TRY(fs_list(folder, is_read, &list, e));
    for (int i = 0; i < list.n; i++) TRY(add_checksum(files, folder, list.entry[i]->d_name, e));
    return TARE_OK;
}

/* Returns the checksums of another role with the same path, to compute them only once. */
static json_t *same_path(json_t *all, const char *path)
{
    const char *key;
    json_t *one;
    json_object_foreach(all, key, one)
    {
        if (!strcmp(json_text_or(one, "path", ""), path)) return one;
    }
    return NULL;
}

static tare_status add_role(json_t *all, const struct model_role *r, struct err *e)
{
    char path[PATH_MAX], folder[FS_PATH];
    OWNED(json_decrefp) json_t *files = json_object();
    if (!realpath(r->path, path))
        FAIL(e, fs_is_answer(errno) ? TARE_E_NOT_FOUND : TARE_E_IO, "%s = %s: %s", r->key, r->path, strerror(errno));
    json_t *one = same_path(all, path);
    if (one) {
        json_incref(one);
    } else {
        fs_dirname(folder, path);
        const tare_status status =
            fs_is_dir(path) ? add_folder(files, path, e) : add_checksum(files, folder, strrchr(path, '/') + 1, e);
        one = json_pack("{s:o, s:O}", "path", json_readable(path), "files", files);
        if (status) {
            json_decref(one);
            return status;
        }
    }
    if (!one || json_object_set_new(all, r->key, one))
        FAIL(e, TARE_E_NOMEM, "%s: out of memory for the checksums of its files", r->key);
    return TARE_OK;
}

tare_status model_sums(const struct model_role *roles, int n, json_t **out, struct err *e)
{
    OWNED(json_decrefp) json_t *all = json_object();
    for (int i = 0; i < n; i++) TRY(add_role(all, &roles[i], e));
    *out = json_incref(all);
    return TARE_OK;
}

/* Checks that every recorded file has a checksum; otherwise each file would be reported as new. */
static tare_status check_recorded(const char *path, const json_t *models, struct err *e)
{
    const char *key, *name;
    json_t *role, *sum;
    json_object_foreach((json_t *)(uintptr_t)models, key, role)
    {
        json_t *files = json_object_get(role, "files");
        if (!json_is_object(files)) FAIL(e, TARE_E_CORRUPT, "%s: models, %s: must be an object with \"files\"", path, key);
        json_object_foreach(files, name, sum)
        {
            if (!json_is_string(sum))
                FAIL(e, TARE_E_CORRUPT, "%s: models, %s: the checksum of %s must be a string", path, key, name);
        }
    }
    return TARE_OK;
}

tare_status model_sums_recorded(const char *run_dir, json_t **out, struct err *e)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *root = NULL;
    *out = NULL;
    TRY(fs_join(path, run_dir, "manifest.json", e));
    TRY(json_read_file(path, &root, e));
    const json_t *list = json_object_get(root, "resumed");
    const json_t *last = json_array_size(list) ? json_array_get(list, json_array_size(list) - 1) : root;
    const json_t *models = json_object_get(last, "models");
    if (!json_is_object(models)) FAIL(e, TARE_E_CORRUPT, "%s: no checksums of models are recorded", path);
    TRY(check_recorded(path, models, e));
    *out = json_incref((json_t *)(uintptr_t)models);
    return TARE_OK;
}

static tare_status compare_files(const json_t *then, const json_t *now, struct model_change c, model_changed visit, void *ctx,
                                 struct err *e)
{
    json_t *sum;
    json_object_foreach((json_t *)(uintptr_t)then, c.file, sum)
    {
        const char *was = json_string_value(sum), *is = json_text_or(now, c.file, NULL);
        if (was && is && !strcmp(was, is)) continue;
        c.what = is ? "differs from the file that the run was trained with" : "was removed";
        TRY(visit(ctx, &c, e));
    }
    c.what = "did not exist when the run was trained";
    c.is_new = true;
    json_object_foreach((json_t *)(uintptr_t)now, c.file, sum)
    {
        if (!json_object_get(then, c.file)) TRY(visit(ctx, &c, e));
    }
    return TARE_OK;
}

tare_status model_sums_compare(const json_t *then, const json_t *now, model_changed visit, void *ctx, struct err *e)
{
    const char *key;
    json_t *before;
    json_object_foreach((json_t *)(uintptr_t)then, key, before)
    {
        const json_t *one = json_object_get(now, key);
        if (!one) continue;
        const struct model_change c = {.key = key, .path = json_text_or(one, "path", "?")};
        TRY(compare_files(json_object_get(before, "files"), json_object_get(one, "files"), c, visit, ctx, e));
    }
    return TARE_OK;
}
