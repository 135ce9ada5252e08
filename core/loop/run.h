/* A training run: every part it is made of, opened in the order of the data flow and closed in reverse.
 *
 *   run_open (with start->resume: run_restore) -> step_run until train.steps -> run_close
 *
 * Not thread-safe; one run a process (signals are caught for it). */
#ifndef TARE_CORE_LOOP_RUN_H
#define TARE_CORE_LOOP_RUN_H

#include "batch/batch.h"
#include "checkpoint/checkpoint.h"
#include "cluster/cluster.h"
#include "collect/collector.h"
#include "config/config.h"
#include "curriculum/curriculum.h"
#include "engine/embed_service.h"
#include "engine/engine.h"
#include "engine/make_model.h"
#include "engine/models.h"
#include "loop/evaluate.h"
#include "loop/learner.h"
#include "loop/run_state.h"
#include "observe/observe.h"

enum { FIGURES = 32 }; /* at most, of a step */

struct run {
    const struct config *config;
    const struct train_start *start;
    struct comm comm;
    enum run_state state;

    /* Parts, in the order of the data flow. */
    struct engine engine;        /* data, verifier, model, sampler, trainer */
    struct embed_service *embed; /* tare.embed/1, while the weights are the initial ones */
    struct cluster cluster;
    struct curriculum *curriculum;
    struct collector collector, eval_collector; /* of a step, of an evaluation */
    struct learner learner;
    struct observe *observe; /* on rank 0; NULL elsewhere, where observe_set and the like do nothing */
    json_t *models;          /* on rank 0: the checksums of the files that its models are read from (observe/model_sums.h) */

    /* Of the run. */
    int64_t step;                 /* steps done */
    int64_t cursor;               /* prompts taken from the order */
    int64_t rollbacks;            /* done by the run; saved */
    struct evaluation evaluation; /* the last one */
    int64_t evaluated_step;       /* after which it was made; -1: none yet */
    bool refill_warned;           /* the warning that refill_rounds did not fill a step has been logged */

    /* Of the step. */
    struct arena arena;
    struct arena eval_arena; /* of a part of an evaluation */
    struct batch batch;      /* the whole step's, the same on every rank */
    int64_t begun;           /* the cursor as the step began, or began again after a rollback */
    uint64_t *met;           /* [n_met] uids of the prompts that the step has drawn, in the arena */
    int64_t n_met;
    struct rank_figure { /* of this rank; the largest of all ranks is the metric */
        const char *name;
        double value;
    } figures[FIGURES];
    int64_t n_figures;
};

/* How `tare train` was asked to begin. */
struct train_start {
    bool resume, allow_change; /* allow_change: a resumed run may be trained with another configuration from here on */
    int64_t until;             /* stop after this step with a checkpoint; 0: train.steps */
    /* What a program that holds this library offers plugins beside the engine's own extensions, or NULL. */
    const void *(*extension)(void *ctx, const char *id);
    void *extension_ctx;
    make_model make; /* called on rank 0 before anything is opened; makes model.path when it is not there. NULL: nothing */
};

/* The memory that a step's batch lies in. */
struct run_batch {
    struct batch batch;
    struct arena arena;
};

/* After a step: its batch with its memory becomes the caller's, who frees it, and the next step takes new memory. Texts of the batch that lie
 * elsewhere (rows, reasons) are copied into it. */
tare_status run_take_batch(struct run *r, struct run_batch *out, struct err *e);
void run_batch_free(struct run_batch *b);

/* Sets up everything for `tare train`; nothing is written before all of it is known to fit together. start->resume: continue run.dir's last complete
 * checkpoint; else run.dir must not hold a run. comm: of the job; the run ends it. Collective, as all functions here. */
tare_status run_open(struct run *r, const struct config *c, struct comm comm, const struct train_start *start, struct err *e);
void run_close(struct run *r);

#endif
