/* The half of a step that changes weights and states: a finished batch becomes advantages, an
 * update, and new states of estimator and objective.
 *
 *   learner_open, learner_open_hooks
 *   for each step: learner_begin, learner_estimate, learner_update, learner_apply
 *   learner_close
 *
 * All functions are collective. */
#ifndef TARE_CORE_LOOP_LEARNER_H
#define TARE_CORE_LOOP_LEARNER_H

#include "estimate/estimate.h"
#include "loop/hooks.h"
#include "update/update.h"

struct learner {
    struct trainer *trainer;     /* owned by the engine; NULL until learner_open_hooks */
    struct objective *objective; /* owned by the engine */
    struct estimator *estimator;
    tare_text *component_name;    /* of the reward, for the estimator */
    void *state[N_LEARNER_HOOKS]; /* [N_LEARNER_HOOKS] one for each hook */
    struct update_report report;  /* of the last update */
};

enum hook_point { HOOK_AFTER_SAMPLE, HOOK_AFTER_JOIN, HOOK_AFTER_COLLECT, HOOK_AFTER_UPDATE };

/* Allocates the hooks' states and runs the checks of the hooks that are on. r->learner.estimator
 * and the objective are open. */
tare_status learner_open(struct run *r, struct err *e);
/* Opens what the hooks need besides the engine's trainer. */
tare_status learner_open_hooks(struct run *r, struct err *e);
/* True if estimator, objective, loss or a hook reads the reference policy. */
bool learner_reads_reference(const struct run *r);
void learner_close(struct learner *l);

/* Called when a step begins, or begins again after a rollback. */
void learner_begin(struct run *r);
/* Runs the stages that the hooks have at this point. */
tare_status learner_run_hooks(struct run *r, enum hook_point point, struct err *e);
/* Fills ref_logprob [T] with the frozen reference's logprobs, if the loss, the estimator or the
 * objective reads them. */
tare_status learner_reference(struct run *r, struct err *e);
/* Fills advantage [N] of the whole step, from the states before this step. */
tare_status learner_estimate(struct run *r, struct err *e);
/* Moves the weights and fills report. */
tare_status learner_update(struct run *r, struct err *e);
/* Adds the step to the states of estimator and objective, after the policy has moved. */
tare_status learner_apply(struct run *r, struct err *e);

/* Save and load the hooks' entries of training.state. */
tare_status learner_save_hooks(const struct run *r, struct state_writer *w, struct err *e);
tare_status learner_load_hooks(struct run *r, const struct state_reader *s, const char *folder, struct err *e);

#endif
