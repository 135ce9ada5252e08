/* train.on_nonfinite = rollback: when the weights have overflowed, the run goes back to a
 * checkpoint and skips the prompts that led there.
 *
 * That checkpoint is always the one of the last step that checkpoint.every divides. A checkpoint
 * left by an interruption does not count, or an interrupted run would end with other bits than an
 * uninterrupted one. */
#include "loop/rollback.h"

#include "base/fault.h"
#include "base/log.h"
#include "loop/resume.h"

#include <string.h>

int64_t rollback_step(const struct run *r)
{
    const struct config *c = r->config;
    return c->train.on_nonfinite == NONFINITE_ROLLBACK ? r->step - r->step % c->checkpoint.every : -1;
}

bool run_overflowed(const struct run *r, tare_status status)
{
    return status == TARE_E_NOT_FINITE && r->config->train.on_nonfinite == NONFINITE_ROLLBACK &&
           (r->state == RUN_OVERFLOWED || r->engine.trainer->overflow ||
            (r->engine.reward_model && r->engine.reward_trainer->overflow));
}

/* Finds the checkpoint's folder and verifies its checksums, on rank 0. */
static tare_status find_target(const struct run *r, int64_t to, char *folder, struct err *e)
{
    int64_t step;
    TRY(checkpoint_path(r->config->run.dir, to, folder, e));
    if (r->comm.rank) return TARE_OK;
    if (!to || !fs_is_dir(folder))
        FAIL(e, TARE_E_NOT_FOUND, "train.on_nonfinite = rollback: missing checkpoint of step %lld%s", (long long)to,
             to ? "" : "; before its first checkpoint a run can only stop or skip; lower checkpoint.every");
    return checkpoint_verify(folder, &step, e);
}

static tare_status restore_target(struct run *r, int64_t to, const char *why, struct err *e)
{
    char folder[FS_PATH];
    const int64_t step = r->step, cursor = r->cursor, rollbacks = r->rollbacks;
    TRY(comm_agree(&r->comm, find_target(r, to, folder, e), e));
    TRY(comm_agree(&r->comm, observe_rollback(r->observe, &(struct manifest_rollback){.step = step + 1, .to = to, .why = why}, e),
                   e));
    TRY(fault_point(r->comm.rank, "rollback", step + 1, e));
    TRY(run_restore(r, folder, e));
    r->step = step;
    r->cursor = cursor;
    r->rollbacks = rollbacks + 1;
    r->engine.trainer->overflow = false;
    if (r->engine.reward_model) r->engine.reward_trainer->overflow = false;
    return TARE_OK;
}

tare_status run_roll_back(struct run *r, struct err *e)
{
    const int64_t most = r->config->train.max_rollbacks, to = rollback_step(r);
    char why[400];
    struct err failed = {0};
    if (r->rollbacks >= most)
        return err_prefix(e, "the run has rolled back %lld times (train.max_rollbacks) and stops", (long long)r->rollbacks);
    snprintf(why, sizeof why, "%.399s", e->message);
    const tare_status status = restore_target(r, to, why, &failed);
    if (status) {
        *e = failed;
        return err_prefix(e, "%s; rolling back", why);
    }
    *e = (struct err){0};
    if (!r->comm.rank)
        log_warn(
            "%s: rolled back to the checkpoint of step %lld; step %lld is repeated with the next prompts (rollback %lld of at most %lld, train.max_rollbacks)",
            why, (long long)to, (long long)r->step + 1, (long long)r->rollbacks, (long long)most);
    return TARE_OK;
}
