/* Methods that hang on the learner: each is one file that fills a struct learner_hook, and a line in LEARNER_HOOKS. A step calls every hook that
 * the configuration switches on, in the order of the list; step.c and run.c know the table and not the methods.
 *
 * Where a hook may act, in the order of a step (step.c):
 *
 *   begin             the step begins, or begins again after a rollback
 *   after_sample      this rank's completions are sampled (collector.share) and not yet verified
 *   after_join        every rank has the collected groups, with rewards
 *   after_collect     the same, with clusters and the reference's logprobs
 *   before_estimate   the whole step's batch; part of the stage `estimate`, and called again by each refill
 *   after_update      the policy's weights have moved
 *
 * A hook's state belongs to it: state_size zeroed bytes, given to each function. */
#ifndef TARE_CORE_LOOP_HOOKS_H
#define TARE_CORE_LOOP_HOOKS_H

#include "checkpoint/state.h"
#include "config/config.h"

struct run;

/* A stage of the step with a name of its own in messages and in time/NAME. call NULL: the hook has none here. */
struct hook_stage {
    const char *name, *metric;
    tare_status (*call)(struct run *r, void *state, struct err *e);
};
#define HOOK_STAGE(NAME, CALL)                                                                                                     \
    {                                                                                                                              \
        .name = NAME, .metric = "time/" NAME, .call = CALL                                                                         \
    }

/* Functions may be NULL. */
struct learner_hook {
    const char *name;
    int64_t state_size;
    bool reads_reference;                  /* the run has to open the reference policy */
    bool (*is_on)(const struct config *c); /* else only load and free are called */
    tare_status (*check)(struct run *r, void *state,
                         struct err *e); /* configuration and rows; data, prompts, model and estimator are open */
    tare_status (*open)(struct run *r, void *state, struct err *e); /* the trainer is open */
    void (*begin)(void *state);
    struct hook_stage after_sample, after_join, after_collect, after_update;
    tare_status (*before_estimate)(struct run *r, void *state, struct err *e);
    /* Its entries in training.state. load is called where the hook is off too, to report entries that are given up. */
    tare_status (*save)(const struct run *r, const void *state, struct state_writer *w, struct err *e);
    tare_status (*load)(struct run *r, void *state, const struct state_reader *s, const char *folder, struct err *e);
    void (*free)(void *state);
};

/* X(variable), in the order in which they are called: LUFFY, PRIME, ReLIFT. */
#define LEARNER_HOOKS(X) X(luffy_hook) X(prime_hook) X(relift_hook)

#define LEARNER_HOOK_EXTERN(NAME) extern const struct learner_hook NAME;
LEARNER_HOOKS(LEARNER_HOOK_EXTERN)
#undef LEARNER_HOOK_EXTERN
#define LEARNER_HOOK_COUNT(NAME) +1
enum { N_LEARNER_HOOKS = 0 LEARNER_HOOKS(LEARNER_HOOK_COUNT) };
#undef LEARNER_HOOK_COUNT

#endif
