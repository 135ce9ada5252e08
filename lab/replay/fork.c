/* `tare fork`: makes a run whose first steps are those of another run, bit by bit, and which uses
 * the same random numbers after them. It is assembled in TO.part and renamed when it is complete. A
 * killed process leaves that folder, and the next fork makes it again. */
#include "base/json.h"
#include "base/log.h"
#include "data/files.h"
#include "lab/replay/part.h"
#include "lab/replay/replay.h"
#include "observe/observe.h"
#include "plugin/plugin.h"
#include "settle/settle.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Keys that the first steps or the random numbers depend on. "section." stands for a whole section.
 */
static const char *const FIXED[] = {"run.seed",     "rollout.prompts",      "rollout.group_size", "data.train", "data.limit",
                                    "data.shuffle", "data.permute_choices", "data.permute_seed",  "model.",     "lora."};
static const char *const LOOSE[] = {"model.save_dtype", "model.warm_start", "model.reference"};

static bool is_in(const char *const *list, size_t n, const char *section, const char *key)
{
    char name[300];
    snprintf(name, sizeof name, "%s.%s", section, key);
    for (size_t i = 0; i < n; i++) {
        const size_t m = strlen(list[i]);
        if (list[i][m - 1] == '.' ? !strncmp(name, list[i], m) : !strcmp(name, list[i])) return true;
    }
    return false;
}

/* ---------------------------------------------------------------- the request */

struct changes {
    struct fork *f;
    struct str refused;
    bool estimator, objective, curriculum, cluster; /* their states are dropped */
};

/* out: true if a saved state depends on the parameter. */
static tare_status is_locked(const struct config *c, int32_t kind, const char *key, bool *out, struct err *e)
{
    const struct plugin *p;
    const struct plugin_search search = {.folder = c->run.plugins};
    *out = false;
    TRY(plugin_open(config_kind_choice(c, kind), kind, &search, &p, e));
    for (uint32_t i = 0; i < p->desc.n_params; i++)
        if (!strcmp(p->params[i].key, key)) *out = p->params[i].flags & TARE_PARAM_LOCKED_ON_RESUME;
    return TARE_OK;
}

/* True if data.train names the same files as before with other shares or none: the same rows in the
 * same order. */
static bool other_shares(const struct config_difference *d)
{
    struct arena a;
    struct files before, after;
    if (strcmp(d->section, "data") || strcmp(d->key, "train")) return false;
    arena_init(&a, "files");
    bool same = !files_of(d->before, &a, &before, NULL) && !files_of(d->after, &a, &after, NULL) && before.n == after.n;
    for (int64_t i = 0; same && i < before.n; i++)
        same = before.source[i] == after.source[i] && !strcmp(before.path[i], after.path[i]);
    arena_free(&a);
    return same;
}

static tare_status add_change(void *ctx, const struct config_difference *d, struct err *e)
{
    struct changes *c = ctx;
    bool locked = false, other = false; /* true for a locked parameter of the estimator; of the curriculum */
    if (!strcmp(d->section, "run") && !strcmp(d->key, "dir")) return TARE_OK;
    const bool shares = other_shares(d);
    if (!shares && is_in(FIXED, sizeof FIXED / sizeof *FIXED, d->section, d->key) &&
        !is_in(LOOSE, sizeof LOOSE / sizeof *LOOSE, d->section, d->key))
        return str_addf(&c->refused, e, "%s%s.%s (%s -> %s)", c->refused.size ? ", " : "", d->section, d->key, d->before, d->after);
    log_info("%s.%s: %s -> %s", d->section, d->key, d->before, d->after);
    if (!strncmp(d->section, "estimator.", 10) && config_uses(&c->f->after, d->section))
        TRY(is_locked(&c->f->after, TARE_KIND_ESTIMATOR, d->key, &locked, e));
    if (!strncmp(d->section, "curriculum.", 11) && config_uses(&c->f->after, d->section))
        TRY(is_locked(&c->f->after, TARE_KIND_CURRICULUM, d->key, &other, e));
    c->cluster |= (!strncmp(d->section, "encoder", 7) || !strncmp(d->section, "codebook", 8)) && d->changes_training;
    c->estimator |= c->cluster || locked || (!strcmp(d->section, "estimator") && !strcmp(d->key, "plugin"));
    c->objective |= !strcmp(d->section, "objective") && !strcmp(d->key, "plugin");
    c->curriculum |= other || shares || (!strcmp(d->section, "curriculum") && !strcmp(d->key, "plugin"));
    return TARE_OK;
}

static tare_status check_changes(struct fork *f, struct err *e)
{
    struct changes c = {.f = f};
    int n = 0;
    tare_status status = config_compare(&f->before, &f->after, add_change, &c, e);
    if (!status && c.refused.size)
        status = err_set(
            e, TARE_E_CONFIG, __FILE__, __LINE__,
            "a fork cannot change %.1000s: its first steps and the random numbers that both runs share depend on it; start another run with tare train",
            c.refused.data);
    str_free(&c.refused);
    TRY(status);
    if (c.estimator) f->dropped[n++] = "estimator";
    if (c.objective) f->dropped[n++] = "objective";
    if (c.curriculum) f->dropped[n++] = "curriculum";
    if (c.cluster) f->dropped[n++] = "cluster";
    for (n = 0; f->dropped[n]; n++)
        log_info("the state of the %s does not fit this configuration: it is empty after step %lld", f->dropped[n],
                 (long long)f->step);
    return TARE_OK;
}

static void cut_slashes(char *path)
{
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--) path[n - 1] = 0;
}

/* Reads "RUN@STEP"; a folder's name may contain @. */
static tare_status read_target(struct fork *f, const char *text, struct err *e)
{
    const char *at = strrchr(text, '@');
    if (!at || at == text || str_to_int(at + 1, &f->step, NULL) || f->step < 0)
        FAIL(e, TARE_E_INVALID, "'%s': must be the folder of a run and a step, as in runs/a@100", text);
    if (at - text >= FS_PATH) FAIL(e, TARE_E_INVALID, "'%.100s...': the path is too long", text);
    snprintf(f->run, sizeof f->run, "%.*s", (int)(at - text), text);
    cut_slashes(f->run);
    return TARE_OK;
}

/* Names the folder in which steps are computed before states that do not fit are dropped. */
static tare_status whole_name(const char *part, char out[FS_PATH], struct err *e)
{
    if (snprintf(out, FS_PATH, "%s.state", part) >= FS_PATH) FAIL(e, TARE_E_INVALID, "%s: the path is too long", part);
    return TARE_OK;
}

/* Checks that TO is missing or empty. The fork is assembled in a folder next to it and renamed. */
static tare_status check_target(const struct fork *f, struct err *e)
{
    char part[FS_PATH], whole[FS_PATH];
    const char *slash = strrchr(f->to, '/'), *name = slash ? slash + 1 : f->to;
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        FAIL(e, TARE_E_INVALID, "--run-dir '%s': must name a new folder, as in runs/b", f->to);
    TRY(run_lock_check(f->to, false, e));
    TRY(fs_each(f->to, part_no_file, NULL, e));
    if (snprintf(part, sizeof part, "%s.part", f->to) >= FS_PATH) FAIL(e, TARE_E_INVALID, "%s: the path is too long", f->to);
    TRY(whole_name(part, whole, e));
    /* by a process that computes its steps; its parent may have ended */
    if (run_lock_is_held(part) || run_lock_is_held(whole))
        FAIL(e, TARE_E_STATE, "%s: another process is making this fork; wait for it, or name another folder with --run-dir", part);
    TRY(part_check(part, e));
    return part_check(whole, e);
}

static tare_status read_configurations(struct fork *f, const char *const *overrides, int64_t n, struct err *e)
{
    const char *all[257];
    char dir[FS_PATH + 16];
    if (n > 255) FAIL(e, TARE_E_INVALID, "too many keys: at most 255");
    for (int64_t i = 0; i < n; i++) all[i] = overrides[i];
    snprintf(dir, sizeof dir, "run.dir=%s", f->to);
    all[n] = dir;
    TRY(config_load(&f->before, f->run, NULL, 0, e));
    TRY(config_load(&f->after, f->run, all, n + 1, e));
    TRY(settle(&f->after, true, NULL, e));
    const struct config *c = &f->after;
    if (f->step > f->before.train.steps)
        FAIL(e, TARE_E_CONFIG, "%s ends after step %lld, so it has no step %lld", f->run, (long long)f->before.train.steps,
             (long long)f->step);
    if (f->step > c->train.steps)
        FAIL(e, TARE_E_CONFIG, "%s: train.steps = %lld: must be at least the step of the fork, %lld",
             config_where(c, "train", "steps"), (long long)c->train.steps, (long long)f->step);
    return TARE_OK;
}

tare_status fork_open(struct fork *f, const char *run_at_step, const char *to, const char *const *overrides, int64_t n,
                      struct err *e)
{
    *f = (struct fork){0};
    TRY(read_target(f, run_at_step, e));
    const int length = to ? snprintf(f->to, sizeof f->to, "%s", to)
                          : snprintf(f->to, sizeof f->to, "%.4000s-fork-%lld", f->run, (long long)f->step);
    if (length >= FS_PATH) FAIL(e, TARE_E_INVALID, "%.100s...: the path is too long", f->to);
    cut_slashes(f->to);
    TRY(prefix_find(f->run, f->step, &f->from, e));
    TRY(check_target(f, e));
    TRY(err_as_config(read_configurations(f, overrides, n, e), e));
    log_info("%s branches off %s after step %lld", f->to, f->run, (long long)f->step);
    return err_as_config(check_changes(f, e), e);
}

void fork_close(struct fork *f)
{
    config_free(&f->before);
    config_free(&f->after);
}

/* ---------------------------------------------------------------- the new folder */

static tare_status add_changed_key(void *ctx, const struct config_difference *d, struct err *e)
{
    json_t *keys = ctx, *pair = json_pack("[s, s]", d->before, d->after);
    char name[600];
    if (!strcmp(d->section, "run") && !strcmp(d->key, "dir")) {
        json_decref(pair);
        return TARE_OK;
    }
    snprintf(name, sizeof name, "%s.%s", d->section, d->key);
    if (!pair || json_object_set_new(keys, name, pair)) FAIL(e, TARE_E_INVALID, "%s: the value is not valid UTF-8", name);
    return TARE_OK;
}

/* Hashes complete.json, which lists the hashes of all files of the checkpoint. */
static tare_status hash_text(const struct fork *f, char out[17], struct err *e)
{
    char path[FS_PATH];
    uint64_t hash;
    out[0] = 0;
    if (!*f->from.checkpoint) return TARE_OK;
    TRY(fs_join(path, f->from.checkpoint, "complete.json", e));
    TRY(fs_hash_file(path, &hash, e));
    snprintf(out, 17, "%016llx", (unsigned long long)hash);
    return TARE_OK;
}

static void forget_key(json_t *process, const char *key)
{
    json_t *files = json_object_get(process, "files");
    json_object_del(json_object_get(process, "models"), key);
    for (size_t i = json_array_size(files); i > 0; i--)
        if (!strcmp(json_text_or(json_array_get(files, i - 1), "key", ""), key)) json_array_remove(files, i - 1);
}

/* Removes the recorded checksums of models and files that the fork's keys replace. */
static void forget_replaced(json_t *root, const json_t *keys)
{
    json_t *process;
    const char *key;
    json_t *value;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)keys, key, value)
    {
        forget_key(root, key);
        json_array_foreach(json_object_get(root, "resumed"), i, process) forget_key(process, key);
    }
}

/* Records the run that the fork comes from in its manifest, as "origin". The run's own origin is
 * nested in it. */
static tare_status write_origin(const struct fork *f, const char *part, struct err *e)
{
    char path[FS_PATH], run[PATH_MAX], hash[17];
    OWNED(json_decrefp) json_t *root = NULL, *keys = json_object(), *dropped = json_array();
    OWNED(str_free) struct str text = {0};
    TRY(hash_text(f, hash, e));
    TRY(fs_join(path, part, "manifest.json", e));
    if (!realpath(f->run, run)) FAIL(e, TARE_E_IO, "%s: %s", f->run, strerror(errno));
    for (int i = 0; f->dropped[i]; i++) json_array_append_new(dropped, json_string(f->dropped[i]));
    TRY(json_read_file(path, &root, e));
    TRY(config_compare(&f->before, &f->after, add_changed_key, keys, e));
    forget_replaced(root, keys);
    json_t *origin = json_pack("{s:s, s:I, s:I, s:s, s:O, s:O}", "run", run, "step", (json_int_t)f->step, "checkpoint",
                               (json_int_t)f->from.step, "complete_xxh3", hash, "keys", keys, "begins_anew", dropped);
    json_t *before = json_object_get(root, "origin");
    if (before) json_object_set(origin, "origin", before);
    if (!origin || json_object_set_new(root, "origin", origin))
        FAIL(e, TARE_E_INVALID, "%s: the run's path is not valid UTF-8", run);
    OWNED(mem_free_at) char *all = json_dumps(root, JSON_INDENT(2));
    if (!all) FAIL(e, TARE_E_NOMEM, "%s: no memory to write it", path);
    TRY(str_addf(&text, e, "%s\n", all));
    return fs_write_atomic(path, text.data, text.size, e);
}

/* Replaces the run's configuration by the fork's, which keeps the previous values as comments. */
static tare_status write_config(const struct fork *f, const char *part, struct err *e)
{
    char before[FS_PATH], path[FS_PATH];
    TRY(fs_join(before, f->run, "config.ini", e));
    TRY(fs_join(path, part, "config.ini", e));
    return observe_config(path, &f->after, before, f->step, e);
}

/* Computes the steps between the run's checkpoint and the fork with the run's configuration. */
static tare_status make_steps(const struct fork *f, const char *folder, struct err *e)
{
    static const struct prefix_parts PARTS = {.rollouts = true};
    log_info("%s has no checkpoint of step %lld: continuing from step %lld", f->run, (long long)f->step, (long long)f->from.step);
    TRY(prefix_copy(&f->from, &PARTS, folder, e));
    return replay_train(folder, f->step, &(struct replay_options){.run = f->run}, e);
}

/* make_steps for a fork whose configuration does not fit all states: drops those afterwards. */
static tare_status make_steps_without(const struct fork *f, const char *whole, const char *part, struct err *e)
{
    const struct prefix_parts parts = {.rollouts = true, .dropped = f->dropped};
    struct prefix p;
    TRY(part_begin(whole, e));
    TRY(make_steps(f, whole, e));
    TRY(prefix_find(whole, f->step, &p, e));
    return prefix_copy(&p, &parts, part, e);
}

static tare_status copy_steps(const struct fork *f, const char *part, struct err *e)
{
    const struct prefix_parts parts = {.rollouts = true, .dropped = f->dropped};
    char whole[FS_PATH];
    if (f->from.step == f->step) return prefix_copy(&f->from, &parts, part, e);
    if (!f->dropped[0]) return make_steps(f, part, e);
    TRY(whole_name(part, whole, e));
    const tare_status status = make_steps_without(f, whole, part, e), removed = fs_remove_tree(whole, status ? NULL : e);
    return status ? status : removed;
}

/* Adds the files written here to the chain. */
static tare_status add_link(const struct fork *f, const char *part, struct err *e)
{
    struct chain *c;
    static const struct chain_text FILES[] = {{"config.ini", NULL}, {"manifest.json", NULL}};
    TRY(chain_open(part, &(struct chain_start){f->step ? f->step : -1, CHAIN_FORK, FILES, 2}, &c, e));
    tare_status status = chain_settle(c, e);
    if (!status) status = chain_sync(c, e);
    chain_close(c);
    return status;
}

static tare_status make_part(const struct fork *f, const char *part, struct err *e)
{
    TRY(copy_steps(f, part, e));
    TRY(write_origin(f, part, e));
    TRY(write_config(f, part, e));
    return add_link(f, part, e);
}

tare_status fork_make(const struct fork *f, struct err *e)
{
    OWNED(part_let_go) struct part p = {.lock = -1};
    char parent[FS_PATH];
    snprintf(p.path, sizeof p.path, "%.4080s.part", f->to);
    fs_dirname(parent, f->to);
    TRY(part_take(&p, e));
    TRY(check_target(f, e)); /* again, because another process may have changed it */
    TRY(make_part(f, p.path, e));
    /* Rename before removing the mark: without both the folder could not be recognised. A crash may
     * leave the mark in the finished fork, where it is ignored. */
    if (rename(p.path, f->to)) FAIL(e, TARE_E_IO, "%s: cannot be renamed to %s: %s", p.path, f->to, strerror(errno));
    tare_status status = fs_sync_dir(parent, e);
    if (!status) status = part_named(&p, f->to, e);
    if (status && p.lock >= 0 && rename(f->to, p.path)) log_warn("%s: cannot be renamed back: %s", f->to, strerror(errno));
    return status;
}
