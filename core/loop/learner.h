/* The half of a step that changes weights and states: a finished batch becomes advantages, an update, and the states of estimator and objective.
 *
 *   learner_open -> learner_open_hooks -> for each step: learner_begin, learner_estimate, learner_update, learner_apply -> learner_close
 *
 * All functions are collective. */
#ifndef TARE_CORE_LOOP_LEARNER_H
#define TARE_CORE_LOOP_LEARNER_H

#include "engine/logprob_service.h"
#include "estimate/estimate.h"
#include "loop/hooks.h"
#include "update/update.h"

struct learner {
    struct trainer *trainer;     /* the engine's; NULL until learner_open_hooks */
    struct objective *objective; /* the engine's */
    struct estimator *estimator;
    struct logprob_service logprob; /* tare.logprob/1, for the estimator */
    void *state[N_LEARNER_HOOKS];   /* of each hook */
    struct update_report report;    /* of the last update */
};

enum hook_point { HOOK_AFTER_SAMPLE, HOOK_AFTER_JOIN, HOOK_AFTER_COLLECT, HOOK_AFTER_UPDATE };

/* Checks the hooks that are on. The objective and the estimator, opened into r->learner, are there. */
tare_status learner_open(struct run *r, struct err *e);
/* Opens what the hooks need besides the engine's trainer. */
tare_status learner_open_hooks(struct run *r, struct err *e);
/* True if estimator, objective, loss or a hook reads the reference policy. */
bool learner_reads_reference(const struct run *r);
void learner_close(struct learner *l);

/* A step begins, or begins again. */
void learner_begin(struct run *r);
/* The stages of the hooks at a point of the step. */
tare_status learner_run_hooks(struct run *r, enum hook_point point, struct err *e);
/* Logprobs of the frozen reference into the batch, where something reads them. */
tare_status learner_reference(struct run *r, struct err *e);
/* advantage [N] of the whole step, from the states before this step. */
tare_status learner_estimate(struct run *r, struct err *e);
/* Moves the weights; fills report. */
tare_status learner_update(struct run *r, struct err *e);
/* Estimator and objective take the step into their states, after the policy has moved. */
tare_status learner_apply(struct run *r, struct err *e);

/* The learner's entries of training.state, estimator and objective apart. */
tare_status learner_save_hooks(const struct run *r, struct state_writer *w, struct err *e);
tare_status learner_load_hooks(struct run *r, const struct state_reader *s, const char *folder, struct err *e);

#endif
