/* Contents of a run's checkpoint besides the model's folder. training.state has
 *   step, cursor, optimizer_steps, rollbacks, relift, relift_steps, process_steps,
 *   estimator, objective, curriculum, cluster,
 *   ranks: the number of ranks that wrote parts of the optimizer (optimizer.c),
 *   data, seed, prompts, group_size: a run can only be resumed with the values it was started with.
 * Every random draw is keyed by step and prompt, so no generator state is saved. A resumed run is
 * bit-identical on any number of ranks. */
#include "loop/resume.h"

#include "base/log.h"
#include "checkpoint/training.h"
#include "loop/rollback.h"

#include <string.h>

/* Values that a resumed run must share with the run that wrote the checkpoint. */
static tare_status write_identity(const struct run *r, struct state_writer *w, struct err *e)
{
    TRY(state_write_int(w, "data", (int64_t)r->engine.train.hash, e));
    TRY(state_write_int(w, "seed", r->config->run.seed, e));
    TRY(state_write_int(w, "prompts", r->config->rollout.prompts, e));
    return state_write_int(w, "group_size", r->config->rollout.group_size, e);
}

static tare_status write_state(const void *ctx, struct state_writer *w, struct err *e)
{
    const struct run *r = ctx;
    OWNED(str_free) struct str text = {0};
    TRY(write_identity(r, w, e));
    TRY(state_write_int(w, "step", r->step, e));
    TRY(state_write_int(w, "cursor", r->cursor, e));
    TRY(state_write_int(w, "optimizer_steps", r->engine.trainer->optimizer_steps, e));
    TRY(state_write_int(w, "rollbacks", r->rollbacks, e));
    TRY(learner_save_hooks(r, w, e));
    TRY(state_write_int(w, "ranks", r->config->checkpoint.optimizer ? r->comm.size : 0, e));
    TRY(estimate_save(r->learner.estimator, &text, e));
    TRY(state_write(w, "estimator", text.data, text.size, e));
    str_clear(&text);
    TRY(objective_save(r->engine.objective, &text, e));
    TRY(state_write(w, "objective", text.data, text.size, e));
    str_clear(&text);
    TRY(curriculum_save(r->curriculum, &text, e));
    TRY(state_write(w, "curriculum", text.data, text.size, e));
    str_clear(&text);
    TRY(cluster_save(&r->cluster, &text, e));
    return state_write(w, "cluster", text.data, text.size, e);
}

/* Checks that the states are equal on all ranks: each has applied the same sums to the same
 * states. */
static tare_status same_states(struct run *r, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    int64_t *hash;
    tare_status status = estimate_save(r->learner.estimator, &text, e);
    if (!status) status = objective_save(r->engine.objective, &text, e);
    if (!status) status = curriculum_save(r->curriculum, &text, e);
    const uint64_t mine = status ? 0 : fs_hash(text.data, text.size, 0);
    TRY(comm_agree(&r->comm, status, e));
    TRY(arena_new(&r->arena, &hash, r->comm.size, e));
    TRY(comm_gather_numbers(&r->comm, (int64_t)mine, hash, e));
    for (int k = 1; k < r->comm.size; k++)
        if (hash[k] != hash[0])
            FAIL(
                e, TARE_E_STATE,
                "the state of the estimator %s, the objective %s or the curriculum %s on rank %d differs from rank 0; are they deterministic? (tare plugin check)",
                r->config->estimator.plugin, r->config->objective.plugin, r->config->curriculum.plugin, k);
    return TARE_OK;
}

/* process is filled with the process reward model's part. */
static struct training training_of(const struct run *r, struct training *process)
{
    const struct engine *g = &r->engine;
    *process = (struct training){.model = g->reward_model, .trainer = g->reward_trainer, .is_reward_model = true};
    return (struct training){.model = g->model,
                             .trainer = g->trainer,
                             .dtype = training_saved_dtype(r->config, g->model),
                             .reward_model = g->reward_model ? process : NULL};
}

tare_status run_save(struct run *r, struct err *e)
{
    struct checkpoint k = {0};
    const bool first = !r->comm.rank;
    TRY(comm_stage(&r->comm, "checkpoint", r->step, e));
    TRY(same_states(r, e));
    TRY(comm_agree(&r->comm, first ? checkpoint_begin(r->config->run.dir, r->step, &k, e) : TARE_OK, e));
    TRY(r->comm.broadcast(&r->comm, &k, sizeof k, 0, e));
    struct training process;
    const struct training t = training_of(r, &process);
    const struct saved_state state = {.ctx = r, .write = write_state};
    tare_status status = training_saved_write(k.folder, &t, r->config->model.path, r->config->checkpoint.optimizer, &state, e);
    if (status && first) checkpoint_abort(&k);
    TRY(status); /* ends the job: another rank may be waiting for a part */
    status = comm_agree(&r->comm, status, e);
    if (!status && first) status = checkpoint_commit(&k, e);
    if (!status && first) status = observe_checkpoint(r->observe, r->step, e);
    if (!status && first) status = checkpoint_prune(r->config->run.dir, r->config->checkpoint.keep, rollback_step(r), e);
    status = comm_agree(&r->comm, status, e);
    if (status) err_prefix(e, "checkpoint of step %lld", (long long)r->step);
    return status;
}

static tare_status read_state(void *ctx, const struct state_reader *s, const char *folder, int64_t *ranks, struct err *e)
{
    struct run *r = ctx;
    const struct config *c = r->config;
    struct trainer *t = r->engine.trainer;
    const void *estimator, *objective, *curriculum, *cluster;
    int64_t n;
    TRY(training_saved_expect_rows(s, r->engine.train.hash, c->data.train, folder, e));
    TRY(training_saved_expect(s, "seed", c->run.seed, "run.seed", e));
    TRY(training_saved_expect(s, "prompts", c->rollout.prompts, "rollout.prompts", e));
    TRY(training_saved_expect(s, "group_size", c->rollout.group_size, "rollout.group_size", e));
    TRY(training_saved_ranks(s, folder, ranks, e));
    TRY(state_read_int(s, "step", &r->step, e));
    TRY(state_read_int(s, "cursor", &r->cursor, e));
    TRY(state_read_int(s, "optimizer_steps", &t->optimizer_steps, e));
    TRY(state_read_int(s, "rollbacks", &r->rollbacks, e));
    TRY(learner_load_hooks(r, s, folder, e));
    /* A fork omits the states that do not fit its configuration; these plugins start empty. */
    if (state_has(s, "estimator")) {
        TRY(state_view(s, "estimator", &estimator, &n, e));
        TRY(estimate_load(r->learner.estimator, estimator, n, folder, e));
    }
    if (state_has(s, "objective")) {
        TRY(state_view(s, "objective", &objective, &n, e));
        TRY(objective_load(r->engine.objective, objective, n, folder, e));
    }
    if (state_has(s, "curriculum")) {
        TRY(state_view(s, "curriculum", &curriculum, &n, e));
        TRY(curriculum_load(r->curriculum, curriculum, n, folder, e));
    }
    if (!state_has(s, "cluster")) return TARE_OK;
    TRY(state_view(s, "cluster", &cluster, &n, e));
    return cluster_resume(&r->cluster, cluster, n, folder, e);
}

tare_status run_restore(struct run *r, const char *folder, struct err *e)
{
    struct training process;
    const struct training t = training_of(r, &process);
    const struct saved_state state = {.ctx = r, .read = read_state};
    return training_saved_read(folder, &t, &state, e);
}
