/* Objectives for tests that update a model. */
#ifndef TARE_TESTS_OBJECTIVE_H
#define TARE_TESTS_OBJECTIVE_H

#include "check.h"

#include "update/trainer.h"

/* Gives the trainer an objective by name, with the trainer's loss, and replaces its present one. */
static inline void set_objective(struct trainer *t, const char *name, const struct config_param *settings)
{
    struct err e = {0};
    objective_free(t->objective);
    t->objective = NULL;
    assert_ok(objective_open(&(struct objective_options){.plugin = name, .settings = settings, .loss = t->loss}, &t->objective, &e),
              &e);
}

static inline void free_trainer(struct trainer *t)
{
    if (t) objective_free(t->objective);
    trainer_free(t);
}

#endif
