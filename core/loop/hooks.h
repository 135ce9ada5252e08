/* Methods that hang on the learner. Each is one file that fills a struct learner_hook, and an entry
 * in LEARNER_HOOKS. A step calls every hook that the configuration switches on, in the order of the
 * list; step.c and run.c know the table, not the methods.
 *
 * A hook may act at these points of a step (step.c):
 *
 *   begin             the step begins, or begins again after a rollback
 *   after_sample      this rank's completions are sampled (collector.share) and not yet verified
 *   after_join        every rank has the collected groups, with rewards
 *   after_collect     the groups also have clusters and the reference's logprobs
 *   before_estimate   the whole step's batch; part of `estimate`, called again by each refill
 *   after_update      the policy's weights have moved
 *
 * Each hook has state_size bytes of state, zeroed when the run opens and passed to every
 * function. */
#ifndef TARE_CORE_LOOP_HOOKS_H
#define TARE_CORE_LOOP_HOOKS_H

#include "checkpoint/state.h"
#include "config/config.h"

struct run;

/* A stage of the step, named in messages and in time/NAME. call is NULL if the hook has no stage at
 * this point. */
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
    /* If true, the run opens the reference policy. */
    bool reads_reference;
    /* If false, only load and free are called. */
    bool (*is_on)(const struct config *c);
    /* Checks configuration and rows; data, prompts, model and estimator are open. */
    tare_status (*check)(struct run *r, void *state, struct err *e);
    /* Called when the trainer is open. */
    tare_status (*open)(struct run *r, void *state, struct err *e);
    void (*begin)(void *state);
    struct hook_stage after_sample, after_join, after_collect, after_update;
    tare_status (*before_estimate)(struct run *r, void *state, struct err *e);
    /* Entries of the hook in training.state. load is also called when the hook is off, to report
     * entries that are discarded. */
    tare_status (*save)(const struct run *r, const void *state, struct state_writer *w, struct err *e);
    tare_status (*load)(struct run *r, void *state, const struct state_reader *s, const char *folder, struct err *e);
    void (*free)(void *state);
};

/* X(variable), in calling order: LUFFY, PRIME, ReLIFT. */
#define LEARNER_HOOKS(X) X(luffy_hook) X(prime_hook) X(relift_hook)

#define LEARNER_HOOK_EXTERN(NAME) extern const struct learner_hook NAME;
LEARNER_HOOKS(LEARNER_HOOK_EXTERN)
#undef LEARNER_HOOK_EXTERN
#define LEARNER_HOOK_COUNT(NAME) +1
enum { N_LEARNER_HOOKS = 0 LEARNER_HOOKS(LEARNER_HOOK_COUNT) };
#undef LEARNER_HOOK_COUNT

#endif
