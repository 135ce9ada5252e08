/* The stages of step.c that are not one folder's own function, and how a stage is run. */
#ifndef TARE_CORE_LOOP_STAGES_H
#define TARE_CORE_LOOP_STAGES_H

#include "base/clock.h"
#include "checkpoint/state.h"
#include "loop/run.h"
#include "loop/step_metrics.h"

/* In a function with a run r and an err e: runs a stage, adds its time to time/NAME, names it in its error. */
#define STAGE(NAME, CALL)                                                                                                          \
    do {                                                                                                                           \
        const double began_ = clock_seconds();                                                                                     \
        tare_status status_ = comm_stage(&r->comm, NAME, r->step + 1, e);                                                          \
        if (!status_) status_ = (CALL);                                                                                            \
        if (!status_) status_ = figure_add(r, "time/" NAME, clock_seconds() - began_, e);                                          \
        if (status_) return err_prefix(e, "step %lld, %s", (long long)r->step + 1, NAME);                                          \
    } while (0)

/* step.c: the next n prompts become the step's batch, sampled and scored. */
tare_status collect(struct run *r, int64_t n, struct err *e);
/* refill.c: after the estimate; collects and estimates again until no group is asked for. */
tare_status refill(struct run *r, struct err *e);

tare_status stage_data(struct run *r, int64_t n, struct err *e); /* the next n prompts */
tare_status stage_rollout(struct run *r, struct err *e);         /* completions of this rank's groups, and their texts */
tare_status stage_verify(struct run *r, struct err *e);          /* rewards of the same */
tare_status stage_gather(struct run *r, struct err *e);          /* all ranks' groups on every rank */
tare_status stage_reference(struct run *r, struct err *e);       /* logprobs of the frozen reference, where something wants them */
tare_status stage_state(struct run *r, struct err *e); /* the estimator's state before the step, for `tare estimate --replay` */
tare_status stage_apply(struct run *r, struct err *e); /* estimator, objective and curriculum learn from the step */

/* ahead.c: verifiers that wait get this rank's completions as they end, while the sampler goes on with the others. */
tare_status ahead_begin(struct run *r, struct err *e);

/* off_policy.c: traces of the rows into their groups, after the sampling; the check is made once the estimator is open. */
tare_status stage_off_policy(struct run *r, struct err *e);
tare_status off_policy_check(const struct run *r, struct err *e);
/* Appends the row's completion and EOS to out; refused by row where it is longer than a rollout may be. prompt: tokens of its prompt. */
tare_status trace_encode(const struct run *r, const struct row *row, int64_t prompt, struct token_ids *out, struct err *e);

/* process.c: rewards of tokens by the implicit process reward model, and its update. */
tare_status process_check(const struct run *r, struct err *e);                        /* once verifier and estimator are open */
tare_status process_read(struct run *r, const struct state_reader *s, struct err *e); /* its count of steps, out of a checkpoint */
tare_status stage_process(struct run *r, struct err *e);                              /* the rewards of the batch's tokens */
tare_status stage_estimate(struct run *r, struct err *e); /* the rewards as segments' of the whole step, then the advantages */
tare_status stage_process_update(struct run *r, struct err *e); /* after the advantages */

/* relift.c: questions that no rollout solved, and the supervised updates on their rows. */
tare_status relift_check(struct run *r, struct err *e); /* rows, once data, prompts and model are open */
void relift_free(struct run *r);
void relift_begin(struct run *r);                       /* a step begins, or begins again */
tare_status stage_hard(struct run *r, struct err *e);   /* notes the batch's unsolved questions */
tare_status stage_relift(struct run *r, struct err *e); /* after the policy's update */
tare_status relift_write(const struct run *r, struct state_writer *w, struct err *e);
tare_status relift_read(struct run *r, const struct state_reader *s, const char *folder, struct err *e);

#endif
