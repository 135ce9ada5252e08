/* What a checkpoint of a run holds beside the model's folder: training.state with
 *   step, cursor, optimizer_steps, moment1, moment2, estimator, and weights when the folder's are not in single precision;
 *   data, seed and G: a run is only continued on what it was started with.
 * Every random draw is keyed by step and prompt, so there is no generator state. */
#include "loop/run.h"

#include "base/log.h"
#include "checkpoint/state.h"

#include <string.h>

static const char FILE_NAME[] = "training.state";

static enum dtype save_dtype(const struct run *r)
{
    const char *asked = r->config->model.save_dtype;
    return !strcmp(asked, "auto") ? r->model->file_dtype : !strcmp(asked, "bf16") ? DTYPE_BF16 : DTYPE_F32;
}

/* What must be the same for a resumed run to be the same run. */
static tare_status write_identity(const struct run *r, struct state_writer *w, struct err *e)
{
    TRY(state_write_int(w, "data", (int64_t)r->train.hash, e));
    TRY(state_write_int(w, "seed", r->config->run.seed, e));
    TRY(state_write_int(w, "prompts", r->config->rollout.prompts, e));
    return state_write_int(w, "group_size", r->config->rollout.group_size, e);
}

static tare_status write_state(const struct run *r, struct state_writer *w, struct err *e)
{
    const struct trainer *t = r->trainer;
    const int64_t bytes = r->model->n_params * (int64_t)sizeof(float);
    struct str text = {0};
    TRY(write_identity(r, w, e));
    TRY(state_write_int(w, "step", r->step, e));
    TRY(state_write_int(w, "cursor", r->cursor, e));
    TRY(state_write_int(w, "optimizer_steps", t->optimizer_steps, e));
    tare_status status = estimate_save(r->estimator, &text, e);
    if (!status) status = state_write(w, "estimator", text.data, text.size, e);
    str_clear(&text);
    if (!status) status = cluster_save(&r->cluster, &text, e);
    if (!status) status = state_write(w, "cluster", text.data, text.size, e);
    str_free(&text);
    TRY(status);
    if (!r->config->checkpoint.optimizer) return TARE_OK;
    if (save_dtype(r) != DTYPE_F32) TRY(state_write(w, "weights", r->model->weights, bytes, e));
    TRY(state_write(w, "moment1", t->moment1, bytes, e));
    return state_write(w, "moment2", t->moment2, bytes, e);
}

tare_status run_save(struct run *r, struct err *e)
{
    struct checkpoint k;
    struct state_writer *w;
    char path[FS_PATH];
    TRY(checkpoint_begin(r->config->run.dir, r->step, &k, e));
    tare_status status = model_save(r->model, k.folder, save_dtype(r), r->config->model.path, e);
    if (!status) status = fs_join(path, k.folder, FILE_NAME, e);
    if (!status) status = state_create(path, &w, e);
    if (!status) {
        status = write_state(r, w, e);
        if (status)
            state_discard(w);
        else
            status = state_finish(w, e);
    }
    if (status) {
        checkpoint_abort(&k);
        err_prefix(e, "checkpoint of step %lld", (long long)r->step);
        return status;
    }
    TRY(checkpoint_commit(&k, e));
    return checkpoint_prune(r->config->run.dir, r->config->checkpoint.keep, e);
}

static tare_status expect(const struct state_reader *s, const char *name, int64_t want, const char *key, struct err *e)
{
    int64_t got;
    TRY(state_read_int(s, name, &got, e));
    if (got != want)
        FAIL(e, TARE_E_CONFIG,
             "%s is not what this run was started with (%lld, the checkpoint says %lld); a resumed run cannot change it", key,
             (long long)want, (long long)got);
    return TARE_OK;
}

static tare_status read_weights(struct model *m, const char *folder, const struct state_reader *s, struct err *e)
{
    if (state_has(s, "weights")) return state_read(s, "weights", m->weights, m->n_params * (int64_t)sizeof(float), e);
    return model_read_weights(m, folder, e);
}

static tare_status read_state(struct run *r, const struct state_reader *s, const char *folder, struct err *e)
{
    const struct config *c = r->config;
    struct trainer *t = r->trainer;
    const int64_t bytes = r->model->n_params * (int64_t)sizeof(float);
    const void *estimator, *cluster;
    int64_t n;
    TRY(expect(s, "data", (int64_t)r->train.hash, "data.train", e));
    TRY(expect(s, "seed", c->run.seed, "run.seed", e));
    TRY(expect(s, "prompts", c->rollout.prompts, "rollout.prompts", e));
    TRY(expect(s, "group_size", c->rollout.group_size, "rollout.group_size", e));
    if (!state_has(s, "moment1"))
        FAIL(e, TARE_E_CONFIG, "%s was written with checkpoint.optimizer = false; it can be a model.path, but not resumed", folder);
    TRY(state_read_int(s, "step", &r->step, e));
    TRY(state_read_int(s, "cursor", &r->cursor, e));
    TRY(state_read_int(s, "optimizer_steps", &t->optimizer_steps, e));
    TRY(state_read(s, "moment1", t->moment1, bytes, e));
    TRY(state_read(s, "moment2", t->moment2, bytes, e));
    TRY(state_view(s, "estimator", &estimator, &n, e));
    TRY(estimate_load(r->estimator, estimator, n, folder, e));
    TRY(state_view(s, "cluster", &cluster, &n, e));
    TRY(cluster_resume(&r->cluster, cluster, n, folder, e));
    TRY(read_weights(r->model, folder, s, e));
    return model_refresh(r->model, e);
}

tare_status run_restore(struct run *r, const char *folder, struct err *e)
{
    char path[FS_PATH];
    struct state_reader *s;
    TRY(fs_join(path, folder, FILE_NAME, e));
    TRY(state_open(path, &s, e));
    const tare_status status = read_state(r, s, folder, e);
    state_close(s);
    if (status) err_prefix(e, "%s", folder);
    return status;
}
