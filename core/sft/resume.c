/* Checkpoints of `tare sft`. They have the form of those of `tare train` (training.h) and are kept
 * in SFT.OUT.training until SFT.OUT is complete, with config.ini and manifest.json, which holds the
 * checksums of the input models, {"models": ...} (observe/model_sums.h).
 *
 * training.state holds step, cursor, optimizer_steps, and ranks (number of ranks that wrote
 * optimizer slices; 0: not saved); also data, seed, batch and train_on_prompt, which cannot change.
 * Any number of ranks can resume.
 *
 * The file `ended` holds the number of steps of a training run whose result is about to be renamed.
 * It is removed last, so --resume recognises a finished run even if the process was killed while it
 * removed the other files. A result without its final name is model.tmp in that folder. */
#include "sft/internal.h"

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/training.h"
#include "engine/same_ranks.h"
#include "observe/observe.h"
#include "observe/run_lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ENDED "ended"

static bool has_entry(const char *folder, const char *name)
{
    char path[FS_PATH];
    return !fs_join(path, folder, name, NULL) && fs_exists(path);
}

static bool folder_has(const struct sft *s, const char *name)
{
    return has_entry(s->folder, name);
}

static bool has_checkpoints(const struct sft *s)
{
    return folder_has(s, "checkpoints");
}

static tare_status count_entry(void *ctx, const char *folder, const char *name, struct err *e)
{
    (void)folder, (void)e;
    *(int *)ctx += strcmp(name, "lock") != 0;
    return TARE_OK;
}

/* With a result present: the training had ended, and its folder was about to be removed, or only
 * the lock remains. */
static bool has_ended(const struct sft *s)
{
    int others = 0;
    if (!fs_is_dir(s->folder)) return false;
    return folder_has(s, ENDED) || (!fs_each(s->folder, count_entry, &others, NULL) && !others);
}

static bool is_model(const char *folder)
{
    return has_entry(folder, "config.json") || has_entry(folder, "adapter_config.json");
}

/* Refuses foreign files, because the folder is removed when the training ends. */
static tare_status check_entry(void *ctx, const char *folder, const char *name, struct err *e)
{
    static const char *const own[] = {"checkpoints", "config.ini", "manifest.json", "lock", ENDED, "model", "tokenizer"};
    (void)ctx;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strncmp(name, own[i], strlen(own[i]))) continue;
        const char *rest = name + strlen(own[i]); /* NAME.tmp is the temporary file of NAME */
        if (!*rest || !strcmp(rest, ".tmp")) return TARE_OK;
    }
    FAIL(
        e, TARE_E_STATE,
        "%s: %s does not belong to the training, and this folder is removed when the training ends; move it away, or choose another sft.out",
        folder, name);
}

/* Sets OUT and OUT.training. Removes a trailing slash or `/.`, which would place the second inside
 * the first. */
static tare_status set_folders(struct sft *s, const char *folder, const char *name, struct err *e)
{
    TRY(fs_join(s->out, folder, name, e));
    for (size_t n = strlen(s->out); n > 1 && (s->out[n - 1] == '/' || (s->out[n - 1] == '.' && s->out[n - 2] == '/')); n--)
        s->out[n - 1] = 0;
    if (snprintf(s->folder, sizeof s->folder, "%s.training", s->out) >= (int)sizeof s->folder)
        FAIL(e, TARE_E_INVALID, "sft.out = %s: path too long", s->out);
    return TARE_OK;
}

static tare_status set_folders_of(struct sft *s, const struct config *c, struct err *e)
{
    return set_folders(s, *c->sft.out ? "" : c->run.dir, *c->sft.out ? c->sft.out : "model", e);
}

tare_status sft_folder(const struct config *c, char *folder, struct err *e)
{
    struct sft s = {0};
    TRY(set_folders_of(&s, c, e));
    return fs_join(folder, "", s.folder, e);
}

/* The model is written in one folder and renamed out of it, so both must be on the same file
 * system. */
static tare_status check_file_system(const struct sft *s, struct err *e)
{
    char parent[FS_PATH];
    struct stat there, at_out;
    fs_dirname(parent, s->out);
    if (stat(s->folder, &there) || stat(parent, &at_out) || there.st_dev == at_out.st_dev) return TARE_OK;
    FAIL(
        e, TARE_E_CONFIG,
        "%s: is on another file system than %s, so the finished model could not be renamed to %s; move it there, or choose another sft.out",
        s->folder, parent, s->out);
}

/* Uses sft.out, or `model` in run.dir. */
tare_status sft_find_folders(struct sft *s, enum sft_start start, struct err *e)
{
    const struct config *c = s->config;
    TRY(set_folders_of(s, c, e));
    if (c->model.warm_start[0] && !strcmp(c->model.path, s->out))
        FAIL(
            e, TARE_E_CONFIG,
            "%s: sft.out = %s is also model.path, so model.warm_start would make the model that this training makes; give one of them another folder",
            config_where(c, "sft", "out"), s->out);
    if (s->comm.rank) return TARE_OK;
    struct stat at;
    if (!fs_exists(s->out) && !lstat(s->out, &at))
        FAIL(e, TARE_E_CONFIG, "sft.out = %s is a dangling link; remove it or choose another", s->out);
    if (!fs_exists(s->out)) return TARE_OK;
    s->ended = (start == SFT_RESUME || start == SFT_CHANGE) && has_ended(s) && is_model(s->out);
    /* A warm start has just checked that the folder is missing, so another process has made it
     * since. */
    const bool made = start == SFT_GO_ON && fs_is_dir(s->out);
    if (!s->ended) FAIL(e, made ? TARE_E_STATE : TARE_E_CONFIG, "sft.out = %s exists already; remove it or choose another", s->out);
    return TARE_OK;
}

tare_status sft_mark_ended(const struct sft *s, struct err *e)
{
    char path[FS_PATH], text[32];
    TRY(fs_join(path, s->folder, ENDED, e));
    return fs_write_atomic(path, text, snprintf(text, sizeof text, "%lld\n", (long long)s->steps), e);
}

/* Checks that the existing result has the requested number of steps. */
static tare_status check_ended(const struct sft *s, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    char path[FS_PATH];
    TRY(fs_join(path, s->folder, ENDED, e));
    TRY(fs_read_all(path, &text, e));
    const long long steps = text.size ? strtoll(text.data, NULL, 10) : -1;
    if (steps != s->steps)
        FAIL(e, TARE_E_CONFIG, "%s: sft.%s asks for %lld steps, but %s exists with %lld; remove it or choose another sft.out",
             config_where(s->config, "sft", s->config->sft.steps ? "steps" : "epochs"), s->config->sft.steps ? "steps" : "epochs",
             (long long)s->steps, s->out, steps);
    return TARE_OK;
}

static tare_status check_new(const struct sft *s, enum sft_start start, struct err *e)
{
    if (start == SFT_NEW && has_checkpoints(s))
        FAIL(e, TARE_E_STATE, "%s: holds an unfinished training; --resume continues it, or remove the folder", s->folder);
    return fs_each(s->folder, check_entry, NULL, e);
}

tare_status sft_take_folder(struct sft *s, enum sft_start start, struct err *e)
{
    if ((start == SFT_RESUME || start == SFT_CHANGE) && !fs_is_dir(s->folder))
        FAIL(e, TARE_E_NOT_FOUND, "%s: no training to resume; omit --resume, or check sft.out", s->folder);
    TRY(check_new(s, start, e));
    TRY(check_file_system(s, e));
    TRY(run_lock_take(s->folder, &s->lock, e));
    /* check again: another process may have used the folder since the first check */
    const tare_status status = check_new(s, start, e);
    if (status) {
        /* a folder that another process left is not removed with the lock */
        run_lock_release(s->lock);
        s->lock = -1;
        return status;
    }
    if (!s->ended && fs_exists(s->out))
        FAIL(e, TARE_E_STATE, "sft.out = %s was made by another process meanwhile; remove it or choose another", s->out);
    return s->ended && folder_has(s, ENDED) ? check_ended(s, e) : TARE_OK;
}

/* Removes an entry, except the mark, which must be removed last, and the lock. */
static tare_status remove_entry(void *ctx, const char *folder, const char *name, struct err *e)
{
    char path[FS_PATH];
    (void)ctx;
    if (!strcmp(name, ENDED) || !strcmp(name, "lock")) return TARE_OK;
    TRY(fs_join(path, folder, name, e));
    return fs_remove_tree(path, e);
}

static tare_status remove_folder(const struct sft *s, struct err *e)
{
    TRY(fs_each(s->folder, remove_entry, NULL, e));
    TRY(fs_sync_dir(s->folder, e));
    return fs_remove_tree(s->folder, e);
}

void sft_clear_ended(const char *out)
{
    struct sft s = {.lock = -1};
    struct err e = {0};
    if (set_folders(&s, out, "", NULL)) return;
    if (!has_ended(&s) || !is_model(s.out) || run_lock_is_held(s.folder)) return;
    tare_status status = fs_each(s.folder, check_entry, NULL, &e);
    if (!status) status = run_lock_take(s.folder, &s.lock, &e);
    if (!status) status = remove_folder(&s, &e);
    run_lock_release(s.lock);
    if (status) log_warn("cannot remove the remaining files of the training that made %s: %s", out, e.message);
}

tare_status sft_leave_folder(struct sft *s, bool done, struct err *e)
{
    if (s->lock < 0) return TARE_OK;
    const tare_status status = done || !(s->ended || has_checkpoints(s)) ? remove_folder(s, e) : TARE_OK;
    run_lock_release(s->lock);
    s->lock = -1;
    return status;
}

/* ---------------------------------------------------------------- state */

static tare_status write_state(const void *ctx, struct state_writer *w, struct err *e)
{
    const struct sft *s = ctx;
    const struct config *c = s->config;
    TRY(state_write_int(w, "data", (int64_t)s->engine.train.hash, e));
    TRY(state_write_int(w, "seed", c->run.seed, e));
    TRY(state_write_int(w, "batch", c->sft.batch, e));
    TRY(state_write_int(w, "train_on_prompt", c->sft.train_on_prompt, e));
    TRY(state_write_int(w, "step", s->step, e));
    TRY(state_write_int(w, "cursor", s->cursor, e));
    TRY(state_write_int(w, "optimizer_steps", s->engine.trainer->optimizer_steps, e));
    return state_write_int(w, "ranks", c->checkpoint.optimizer ? s->comm.size : 0, e);
}

static tare_status read_state(void *ctx, const struct state_reader *r, const char *folder, int64_t *ranks, struct err *e)
{
    struct sft *s = ctx;
    const struct config *c = s->config;
    TRY(training_saved_expect_rows(r, s->engine.train.hash, c->data.train, folder, e));
    TRY(training_saved_expect(r, "seed", c->run.seed, "run.seed", e));
    TRY(training_saved_expect(r, "batch", c->sft.batch, "sft.batch", e));
    TRY(training_saved_expect(r, "train_on_prompt", c->sft.train_on_prompt, "sft.train_on_prompt", e));
    TRY(training_saved_ranks(r, folder, ranks, e));
    TRY(state_read_int(r, "step", &s->step, e));
    TRY(state_read_int(r, "cursor", &s->cursor, e));
    return state_read_int(r, "optimizer_steps", &s->engine.trainer->optimizer_steps, e);
}

static struct training training_of(const struct sft *s)
{
    return (struct training){
        .model = s->engine.model, .trainer = s->engine.trainer, .dtype = training_saved_dtype(s->config, s->engine.model)};
}

/* ---------------------------------------------------------------- saving and restoring */

static tare_status write_folder(struct sft *s, const char *folder, struct err *e)
{
    const struct training t = training_of(s);
    const struct saved_state state = {.ctx = s, .write = write_state};
    const char *tokenizer = s->engine.model->folder[0] ? s->engine.model->folder : NULL;
    if (!tokenizer && !s->comm.rank) TRY(tokenizer_write_bytes(folder, e));
    return training_saved_write(folder, &t, tokenizer, s->config->checkpoint.optimizer, &state, e);
}

tare_status sft_save(struct sft *s, struct err *e)
{
    const bool first = !s->comm.rank;
    struct checkpoint k = {0};
    TRY(comm_stage(&s->comm, "checkpoint", s->step, e));
    TRY(comm_agree(&s->comm, first ? checkpoint_begin(s->folder, s->step, &k, e) : TARE_OK, e));
    TRY(s->comm.broadcast(&s->comm, &k, sizeof k, 0, e));
    tare_status status = write_folder(s, k.folder, e);
    if (status && first) checkpoint_abort(&k);
    TRY(status); /* ends the job: another rank may wait for a slice */
    status = comm_agree(&s->comm, status, e);
    if (!status && first) status = checkpoint_commit(&k, e);
    if (!status && first) status = checkpoint_prune(s->folder, s->config->checkpoint.keep, -1, e);
    status = comm_agree(&s->comm, status, e);
    if (status) err_prefix(e, "checkpoint of step %lld", (long long)s->step);
    s->saved = s->step;
    return status;
}

/* Checks that steps remain after `step`, and that the configuration is the one that the training
 * started with, unless it may change. */
static tare_status check_resumed(const struct sft *s, enum sft_start start, int64_t step, struct err *e)
{
    char advice[FS_PATH + 200];
    if (step > s->steps)
        FAIL(
            e, TARE_E_CONFIG,
            "%s: sft.steps = %lld, and %s has done %lld already; resume with that many steps or more, or remove the folder to start over",
            config_where(s->config, "sft", s->config->sft.steps ? "steps" : "epochs"), (long long)s->steps, s->folder,
            (long long)step);
    if (start == SFT_GO_ON)
        snprintf(advice, sizeof advice, "%s/config.ini has the original values; put them back, or remove the folder to start over",
                 s->folder);
    else
        snprintf(advice, sizeof advice, "%s/config.ini has the original values; --allow-change uses the new ones from here on",
                 s->folder);
    const struct config_resume how = {.run = s->folder, .advice = advice, .allow_change = start == SFT_CHANGE, .supervised = true};
    return config_check_resume(&how, s->config, e);
}

static tare_status write_models(const struct sft *s, const json_t *models, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    OWNED(json_decrefp) json_t *root = json_pack("{s:O}", "models", models);
    char path[FS_PATH];
    TRY(fs_join(path, s->folder, "manifest.json", e));
    if (!root) FAIL(e, TARE_E_NOMEM, "%s: out of memory", path);
    TRY(json_print(root, &text, e));
    TRY(str_add(&text, "\n", 1, e));
    return fs_write_atomic(path, text.data, text.size, e);
}

/* Writes config.ini and manifest.json into the folder, and compares the models with those of a
 * resumed training. The configuration was compared before the models were opened. */
static tare_status write_start(const struct sft *s, enum sft_start start, int64_t step, struct err *e)
{
    const struct models_resume how = {.folder = s->folder,
                                      .advice = start == SFT_GO_ON ? "remove the folder to start over"
                                                                   : "add --allow-change to continue with these",
                                      .checkpoint = true,
                                      .allow_change = start == SFT_CHANGE};
    OWNED(json_decrefp) json_t *models = NULL;
    char path[FS_PATH];
    TRY(models_take(&s->engine, step >= 0 ? &how : NULL, &models, e));
    TRY(fs_join(path, s->folder, "config.ini", e));
    TRY(observe_config(path, s->config, step >= 0 && fs_exists(path) ? path : NULL, step, e));
    return write_models(s, models, e);
}

/* On rank 0: finds the checkpoint to resume from. *step: -1 without one. */
static tare_status find_checkpoint(const struct sft *s, enum sft_start start, char *folder, int64_t *step, struct err *e)
{
    int64_t damaged;
    TRY(checkpoint_latest(s->folder, folder, step, e));
    if (*step >= 0) return check_resumed(s, start, *step, e);
    TRY(checkpoint_count(s->folder, &damaged, e));
    if (damaged)
        FAIL(
            e, TARE_E_CORRUPT,
            "%s: none of its %lld checkpoints is usable (see the warnings above); nothing was changed: put the damaged files back, or remove the folder to start over",
            s->folder, (long long)damaged);
    if (start == SFT_RESUME || start == SFT_CHANGE) log_warn("%s has no checkpoint yet: starting from the beginning", s->folder);
    return TARE_OK;
}

tare_status sft_restore(struct sft *s, enum sft_start start, struct err *e)
{
    char folder[FS_PATH] = "";
    int64_t step = -1;
    const bool first = !s->comm.rank;
    TRY(comm_agree(&s->comm, first ? find_checkpoint(s, start, folder, &step, e) : TARE_OK, e));
    TRY(s->comm.broadcast(&s->comm, folder, sizeof folder, 0, e));
    TRY(s->comm.broadcast(&s->comm, &step, sizeof step, 0, e));
    if (step >= 0) {
        const struct training t = training_of(s);
        const struct saved_state state = {.ctx = s, .read = read_state};
        TRY(training_saved_read(folder, &t, &state, e));
        s->saved = step;
        log_info("continuing after step %lld of %lld (%s)", (long long)step, (long long)s->steps, folder);
    }
    TRY(same_ranks_parts(&s->engine, NULL, 0, step, e));
    tare_status status = first ? write_start(s, start, step, e) : TARE_OK;
    if (!status && first) status = checkpoint_clean(s->folder, step, e);
    if (!status && first) status = checkpoint_prune(s->folder, s->config->checkpoint.keep, -1, e);
    return comm_agree(&s->comm, status, e);
}
