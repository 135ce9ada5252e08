#include "checkpoint/checkpoint.h"

#include "base/fault.h"
#include "base/json.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char COMPLETE[] = "complete.json", SUMS[] = "sums.json";

static tare_status parent_folder(const char *run_dir, char *out, struct err *e)
{
    return fs_join(out, run_dir, "checkpoints", e);
}

tare_status checkpoint_path(const char *run_dir, int64_t step, char *folder, struct err *e)
{
    char name[64];
    snprintf(name, sizeof name, "checkpoints/step-%06lld", (long long)step);
    return fs_join(folder, run_dir, name, e);
}

/* ---------------------------------------------------------------- writing */

/* Builds the name of a temporary sibling, which is never read as a checkpoint. */
static tare_status temporary_name(const char *final, const char *tag, char *out, struct err *e)
{
    if (snprintf(out, FS_PATH, "%s.%s-%ld", final, tag, (long)getpid()) >= FS_PATH)
        FAIL(e, TARE_E_INVALID, "%s: path too long", final);
    return TARE_OK;
}

tare_status checkpoint_begin(const char *run_dir, int64_t step, struct checkpoint *out, struct err *e)
{
    *out = (struct checkpoint){.step = step};
    char parent[FS_PATH];
    TRY(parent_folder(run_dir, parent, e));
    TRY(fs_mkdirs(parent, e));
    TRY(checkpoint_path(run_dir, step, out->final, e));
    TRY(temporary_name(out->final, "tmp", out->folder, e));
    TRY(fs_remove_tree(out->folder, e));
    return fs_mkdirs(out->folder, e);
}

void checkpoint_abort(struct checkpoint *k)
{
    struct err e = {0};
    if (strcmp(k->folder, k->final) && fs_remove_tree(k->folder, &e)) log_warn("%s", e.message);
}

static tare_status list_file(const char *folder, const char *name, const struct stat *s, json_t *files, struct err *e)
{
    char path[FS_PATH], hex[17];
    uint64_t hash;
    TRY(fs_join(path, folder, name, e));
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(errno));
    const int bad = fsync(fd) ? errno : 0;
    close(fd);
    if (bad) FAIL(e, TARE_E_IO, "%s: cannot be synced: %s", path, strerror(bad));
    TRY(fs_hash_file(path, &hash, e));
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)hash);
    json_t *f = json_pack("{s:s, s:I, s:s}", "name", name, "size", (json_int_t)s->st_size, "xxh3", hex);
    if (!f || json_array_append_new(files, f)) FAIL(e, TARE_E_NOMEM, "%s: cannot list the file", path);
    return TARE_OK;
}

/* Syncs and lists all files below root/prefix. */
struct listing {
    const char *root;   /* folder of the checkpoint */
    const char *prefix; /* prefix of the names in this folder: "" or "estimator/" */
    json_t *files;
};

static tare_status list_folder(const struct listing *in, struct err *e);

static tare_status list_entry(void *ctx, const char *folder, const char *entry, struct err *e)
{
    const struct listing *in = ctx;
    char path[FS_PATH], name[FS_PATH];
    struct stat s;
    TRY(fs_join(path, folder, entry, e));
    if (lstat(path, &s)) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(errno));
    if (snprintf(name, sizeof name, "%s%s%s", in->prefix, entry, S_ISDIR(s.st_mode) ? "/" : "") >= FS_PATH)
        FAIL(e, TARE_E_INVALID, "%s: path too long", path);
    if (S_ISDIR(s.st_mode)) return list_folder(&(struct listing){in->root, name, in->files}, e);
    if (S_ISREG(s.st_mode)) return list_file(in->root, name, &s, in->files, e);
    FAIL(e, TARE_E_INVALID, "%s: must be a file or a folder", path);
}

static tare_status list_folder(const struct listing *in, struct err *e)
{
    char path[FS_PATH];
    TRY(fs_join(path, in->root, in->prefix, e));
    TRY(fs_each(path, list_entry, (void *)in, e));
    return fs_sync_dir(path, e);
}

/* Writes the list of files. step -1: the folder belongs to no run, so no step is recorded. */
static tare_status write_list(const char *folder, const char *name, int64_t step, struct err *e)
{
    OWNED(json_decrefp) json_t *files = json_array(), *root = NULL;
    OWNED(str_free) struct str text = {0};
    char path[FS_PATH];
    if (!files) FAIL(e, TARE_E_NOMEM, "out of memory");
    TRY(list_folder(&(struct listing){folder, "", files}, e));
    root = step < 0 ? json_pack("{s:i, s:O}", "format", 1, "files", files)
                    : json_pack("{s:i, s:I, s:O}", "format", 1, "step", (json_int_t)step, "files", files);
    if (!root) FAIL(e, TARE_E_NOMEM, "%s: out of memory for the list of its files", folder);
    TRY(json_print(root, &text, e));
    TRY(str_add(&text, "\n", 1, e));
    TRY(fs_join(path, folder, name, e));
    return fs_write_atomic(path, text.data, text.size, e);
}

tare_status checkpoint_write_sums(const char *folder, struct err *e)
{
    return write_list(folder, SUMS, -1, e);
}

/* Renames the folder to its final name. An existing folder there, a damaged checkpoint that the run
 * did not resume from, is moved away first and then removed. */
static tare_status publish_folder(struct checkpoint *k, struct err *e)
{
    char parent[FS_PATH], old[FS_PATH];
    fs_dirname(parent, k->final);
    TRY(temporary_name(k->final, "old", old, e));
    TRY(fs_remove_tree(old, e));
    if (rename(k->final, old) && errno != ENOENT) FAIL(e, TARE_E_IO, "%s: cannot be moved away: %s", k->final, strerror(errno));
    if (rename(k->folder, k->final)) FAIL(e, TARE_E_IO, "%s: cannot be renamed to %s: %s", k->folder, k->final, strerror(errno));
    memcpy(k->folder, k->final, FS_PATH);
    TRY(fs_sync_dir(parent, e));
    return fs_remove_tree(old, e);
}

tare_status checkpoint_commit(struct checkpoint *k, struct err *e)
{
    tare_status status = fault_point(0, "checkpoint.files", k->step, e);
    if (!status) status = write_list(k->folder, COMPLETE, k->step, e);
    if (!status) status = fault_point(0, "checkpoint.listed", k->step, e);
    if (!status) status = publish_folder(k, e);
    if (!status) status = fault_point(0, "checkpoint.named", k->step, e);
    if (status) checkpoint_abort(k);
    return status;
}

/* ---------------------------------------------------------------- reading */

static tare_status verify_file(const char *folder, const char *list, const json_t *f, struct err *e)
{
    const char *name = json_text_or(f, "name", NULL);
    if (!name) FAIL(e, TARE_E_CORRUPT, "%s: a listed file has no name", list);
    if (!fs_is_inside(name)) FAIL(e, TARE_E_CORRUPT, "%s: lists %s, which is outside that folder", list, name);
    char path[FS_PATH], hex[17];
    struct fs_map m;
    TRY(fs_join(path, folder, name, e));
    const tare_status status = fs_map(path, &m, e);
    if (status == TARE_E_NOT_FOUND) FAIL(e, TARE_E_CORRUPT, "%s: is missing", path);
    if (status) return status;
    const int64_t size = m.size;
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)fs_hash(m.data, m.size, 0));
    fs_unmap(&m);
    if (size != json_int_or(f, "size", -1))
        FAIL(e, TARE_E_CORRUPT, "%s: has %lld bytes, %lld were written", path, (long long)size,
             (long long)json_int_or(f, "size", -1));
    if (strcmp(hex, json_text_or(f, "xxh3", "")))
        FAIL(e, TARE_E_CORRUPT, "%s: is damaged, or was changed since it was written (its hash does not match)", path);
    return TARE_OK;
}

/* Verifies the listed files. weights: also verify the weight files, which hold nearly all bytes. */
static tare_status verify_list(const char *folder, const char *path, const json_t *root, bool weights, struct err *e)
{
    const json_t *files = json_object_get(root, "files");
    if (json_int_or(root, "format", 0) != 1 || !json_is_array(files))
        FAIL(e, TARE_E_VERSION, "%s: unknown format; this program reads format 1", path);
    size_t i;
    json_t *f;
    json_array_foreach(files, i, f)
    {
        const char *name = json_text_or(f, "name", "");
        if (weights || !str_ends_with(name, ".safetensors")) TRY(verify_file(folder, path, f, e));
    }
    return TARE_OK;
}

tare_status checkpoint_verify(const char *folder, int64_t *step, struct err *e)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *root = NULL;
    TRY(fs_join(path, folder, COMPLETE, e));
    const tare_status status = json_read_file(path, &root, e);
    if (status == TARE_E_NOT_FOUND) FAIL(e, TARE_E_CORRUPT, "%s: %s is missing, so the checkpoint is incomplete", folder, COMPLETE);
    TRY(status);
    TRY(verify_list(folder, path, root, true, e));
    if (step) *step = json_int_or(root, "step", -1);
    return TARE_OK;
}

/* Checks the folder against its list `name`, if there is one. other: the remedy to suggest, such as
 * "take another checkpoint". */
static tare_status check_list(const char *folder, const char *name, bool weights, const char *other, struct err *e)
{
    char path[FS_PATH];
    struct err why = {0};
    struct stat link;
    OWNED(json_decrefp) json_t *root = NULL;
    TRY(fs_join(path, folder, name, e));
    if (!fs_exists(path)) {
        if (!lstat(path, &link)) FAIL(e, TARE_E_CORRUPT, "%s: is a dangling link; remove it, or put the file back", path);
        return TARE_OK;
    }
    tare_status status = json_read_file(path, &root, &why);
    if (!status) status = verify_list(folder, path, root, weights, &why);
    if (!status) return TARE_OK;
    if (status == TARE_E_NOMEM) FAIL(e, status, "%s", why.message);
    FAIL(e, status, "%s; %s, or remove %s if its files were changed on purpose", why.message, other, path);
}

tare_status checkpoint_check(const char *folder, struct err *e)
{
    return check_list(folder, COMPLETE, true, "take another checkpoint", e);
}

static const char AGAIN[] = "take another copy or make it again";

tare_status checkpoint_check_sums(const char *folder, struct err *e)
{
    return check_list(folder, SUMS, true, AGAIN, e);
}

tare_status checkpoint_check_texts(const char *folder, struct err *e)
{
    return check_list(folder, SUMS, false, AGAIN, e);
}

/* Steps of all folders named step-N, newest first. */
struct steps {
    int64_t *step;
    int64_t n, capacity;
};

static int newest_first(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static int64_t step_of(const char *name)
{
    if (strncmp(name, "step-", 5) || strlen(name) < 11 || strspn(name + 5, "0123456789") != strlen(name + 5)) return -1;
    int64_t step;
    return str_to_int(name + 5, &step, NULL) ? -1 : step;
}

static tare_status add_step(struct steps *out, int64_t step, struct err *e)
{
    if (out->n == out->capacity) {
        const int64_t wanted = out->capacity ? 2 * out->capacity : 16;
        int64_t *bigger = realloc(out->step, (size_t)wanted * sizeof *bigger);
        if (!bigger) FAIL(e, TARE_E_NOMEM, "out of memory for the list of checkpoints");
        out->step = bigger;
        out->capacity = wanted;
    }
    out->step[out->n++] = step;
    return TARE_OK;
}

static tare_status take_step(void *ctx, const char *folder, const char *name, struct err *e)
{
    const int64_t step = step_of(name);
    (void)folder;
    return step >= 0 ? add_step(ctx, step, e) : TARE_OK;
}

static void steps_free(struct steps *all)
{
    free(all->step);
}

static tare_status list_steps(const char *run_dir, struct steps *out, struct err *e)
{
    char parent[FS_PATH];
    *out = (struct steps){0};
    TRY(parent_folder(run_dir, parent, e));
    const tare_status status = fs_each(parent, take_step, out, e);
    if (status) {
        free(out->step);
        *out = (struct steps){0};
        return status;
    }
    if (out->n) qsort(out->step, (size_t)out->n, sizeof *out->step, newest_first);
    return TARE_OK;
}

tare_status checkpoint_count(const char *run_dir, int64_t *n, struct err *e)
{
    struct steps all;
    TRY(list_steps(run_dir, &all, e));
    *n = all.n;
    free(all.step);
    return TARE_OK;
}

tare_status checkpoint_latest(const char *run_dir, char *folder, int64_t *step, struct err *e)
{
    return checkpoint_before(run_dir, INT64_MAX, folder, step, e);
}

tare_status checkpoint_before(const char *run_dir, int64_t last, char *folder, int64_t *step, struct err *e)
{
    OWNED(steps_free) struct steps all = {0};
    *step = -1;
    folder[0] = 0;
    TRY(list_steps(run_dir, &all, e));
    for (int64_t i = 0; i < all.n && *step < 0; i++) {
        struct err why = {0};
        int64_t written = -1;
        if (all.step[i] > last) continue;
        TRY(checkpoint_path(run_dir, all.step[i], folder, e));
        const tare_status bad = checkpoint_verify(folder, &written, &why);
        if (!bad && written == all.step[i]) {
            *step = written;
        } else {
            log_warn("checkpoint skipped: %s", bad ? why.message : "the name of its folder belongs to another step");
            folder[0] = 0;
        }
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- removing */

/* Renames the folder before removing it and syncs the rename, so that neither a kill nor a crash
 * halfway leaves a checkpoint with missing files. */
static tare_status remove_checkpoint(const char *folder, struct err *e)
{
    char old[FS_PATH], parent[FS_PATH];
    fs_dirname(parent, folder);
    TRY(temporary_name(folder, "old", old, e));
    TRY(fs_remove_tree(old, e));
    if (rename(folder, old)) FAIL(e, TARE_E_IO, "%s: cannot be removed: %s", folder, strerror(errno));
    TRY(fs_sync_dir(parent, e));
    return fs_remove_tree(old, e);
}

tare_status checkpoint_prune(const char *run_dir, int64_t keep, int64_t also, struct err *e)
{
    OWNED(steps_free) struct steps all = {0};
    if (keep <= 0) return TARE_OK;
    TRY(list_steps(run_dir, &all, e));
    int64_t kept = 0;
    for (int64_t i = 0; i < all.n; i++) {
        char folder[FS_PATH], path[FS_PATH];
        TRY(checkpoint_path(run_dir, all.step[i], folder, e));
        TRY(fs_join(path, folder, COMPLETE, e));
        const bool complete = fs_exists(path);
        if (complete && kept < keep) {
            kept++;
        } else if (kept && all.step[i] != also) {
            TRY(remove_checkpoint(folder, e));
        }
    }
    return TARE_OK;
}

static tare_status remove_later(const char *run_dir, int64_t step, struct err *e)
{
    OWNED(steps_free) struct steps all = {0};
    TRY(list_steps(run_dir, &all, e));
    for (int64_t i = 0; i < all.n && all.step[i] > step; i++) {
        char folder[FS_PATH];
        TRY(checkpoint_path(run_dir, all.step[i], folder, e));
        log_debug("removing %s, which will be computed again", folder);
        TRY(remove_checkpoint(folder, e));
    }
    return TARE_OK;
}

static tare_status remove_half(void *ctx, const char *parent, const char *name, struct err *e)
{
    char path[FS_PATH];
    (void)ctx;
    if (strncmp(name, "step-", 5) || (!strstr(name, ".tmp-") && !strstr(name, ".old-"))) return TARE_OK;
    TRY(fs_join(path, parent, name, e));
    log_debug("removing %s, which is incomplete", path);
    return fs_remove_tree(path, e);
}

tare_status checkpoint_clean(const char *run_dir, int64_t step, struct err *e)
{
    char parent[FS_PATH];
    TRY(parent_folder(run_dir, parent, e));
    TRY(fs_each(parent, remove_half, NULL, e));
    return remove_later(run_dir, step, e);
}
