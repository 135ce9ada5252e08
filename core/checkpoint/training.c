#include "checkpoint/training.h"

#include "base/fs.h"

#include <string.h>

static const char FILE_NAME[] = "training.state";

enum dtype training_saved_dtype(const struct config *c, const struct model *m)
{
    const enum save_dtype asked = c->model.save_dtype;
    if (m->lora && asked == SAVE_AUTO) return DTYPE_F32; /* as peft does */
    return asked == SAVE_AUTO ? m->file_dtype : asked == SAVE_BF16 ? DTYPE_BF16 : DTYPE_F32;
}

static tare_status write_state_file(const char *folder, const char *name, const void *ctx,
                                    tare_status (*write)(const void *ctx, struct state_writer *w, struct err *e), struct err *e)
{
    struct state_writer *w;
    char path[FS_PATH];
    TRY(fs_join(path, folder, name, e));
    TRY(state_create(path, &w, e));
    const tare_status status = write(ctx, w, e);
    if (!status) return state_finish(w, e);
    state_discard(w);
    return status;
}

static tare_status write_optimizer(const void *ctx, struct state_writer *w, struct err *e)
{
    return optimizer_write_slices(ctx, w, e);
}

/* A checkpoint copies the tokenizer files of the model folder, which may have been removed since
 * the model was read. An adapter needs only the folder to exist. */
static tare_status check_tokenizer(const char *folder, bool adapter, struct err *e)
{
    char path[FS_PATH];
    TRY(fs_join(path, folder, adapter ? "" : "tokenizer.json", e));
    if (!fs_exists(path))
        FAIL(e, TARE_E_IO, "%s: was removed after the model was read; put it back, because a checkpoint without it is not a model",
             path);
    return TARE_OK;
}

tare_status training_saved_write(const char *folder, const struct training *t, const char *tokenizer, bool optimizer,
                                 const struct saved_state *state, struct err *e)
{
    char name[64];
    if (tokenizer && !t->model->rank) TRY(check_tokenizer(tokenizer, t->model->lora, e));
    TRY(model_save(t->model, folder, t->dtype, tokenizer, e));
    TRY(model_check_moved(t->model, e)); /* checks the weights that other ranks sent */
    if (!t->model->rank) TRY(write_state_file(folder, FILE_NAME, state->ctx, state->write, e));
    if (!optimizer) return TARE_OK;
    optimizer_slices_name(t->model->rank, t->model->ranks, name, sizeof name);
    return write_state_file(folder, name, t, write_optimizer, e);
}

tare_status training_saved_expect(const struct state_reader *s, const char *name, int64_t want, const char *key, struct err *e)
{
    int64_t got;
    TRY(state_read_int(s, name, &got, e));
    if (got != want)
        FAIL(e, TARE_E_CONFIG,
             "%s differs from the value this run started with (%lld, the checkpoint has %lld); a resumed run cannot change it", key,
             (long long)want, (long long)got);
    return TARE_OK;
}

tare_status training_saved_expect_rows(const struct state_reader *s, uint64_t hash, const char *file, const char *folder,
                                       struct err *e)
{
    int64_t got;
    TRY(state_read_int(s, "data", &got, e));
    if (got != (int64_t)hash)
        FAIL(
            e, TARE_E_CONFIG,
            "data.train = %s differs from the rows that %s was trained on; put those rows back, or start a new run from its weights: omit --resume, set model.path=%s and another output folder",
            file, folder, folder);
    return TARE_OK;
}

tare_status training_saved_ranks(const struct state_reader *s, const char *folder, int64_t *ranks, struct err *e)
{
    TRY(state_read_int(s, "ranks", ranks, e));
    if (!*ranks)
        FAIL(e, TARE_E_CONFIG, "%s was written with checkpoint.optimizer = false; it can be used as model.path, but not resumed",
             folder);
    return TARE_OK;
}

tare_status training_saved_read(const char *folder, const struct training *t, const struct saved_state *state, struct err *e)
{
    char path[FS_PATH];
    struct state_reader *s;
    int64_t ranks = 0;
    TRY(fs_join(path, folder, FILE_NAME, e));
    TRY(state_open(path, &s, e));
    tare_status status = state->read(state->ctx, s, folder, &ranks, e);
    state_close(s);
    if (!status) status = optimizer_read_slices(t, folder, ranks, e);
    if (status) err_prefix(e, "%s", folder);
    TRY(status);
    if (t->reward_model) TRY(model_refresh(t->reward_model->model, e));
    return model_refresh(t->model, e);
}
