/* A training run: all its parts, opened in the order of the data flow and closed in reverse.
 *
 *   run_open (with start->resume: run_restore) -> step_run until train.steps -> run_close
 *
 * Not thread-safe. At most one run per process, because the run installs signal handlers. */
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
#include "loop/plugin_metrics.h"
#include "loop/run_state.h"
#include "observe/observe.h"

enum { FIGURES = 32 }; /* most figures of a step */

struct run {
    const struct config *config;
    const struct train_start *start;
    struct comm comm;
    enum run_state state;

    /* Parts, in the order of the data flow. */
    struct engine engine;        /* data, verifier, model, sampler, trainer */
    tare_progress_v1 progress;   /* tare.progress/1 */
    struct embed_service *embed; /* tare.embed/1, while the weights are the initial ones */
    struct cluster cluster;
    struct curriculum *curriculum;
    struct collector collector, eval_collector; /* for a step, for an evaluation */
    struct learner learner;
    /* on rank 0; NULL elsewhere, where observe_set and the like do nothing */
    struct observe *observe;
    json_t *models; /* on rank 0: checksums of the model files (observe/model_sums.h) */
    json_t *files;  /* on rank 0: checksums of the plugins' files (observe/named_files.h) */

    /* State of the run. */
    int64_t step;                 /* finished steps */
    int64_t cursor;               /* prompts taken from the order */
    int64_t rollbacks;            /* performed so far; saved */
    struct evaluation evaluation; /* the last one */
    int64_t evaluated_step;       /* the step after which it was made; -1: none yet */
    bool refill_warned;           /* the warning about rollout.refill_rounds has been logged */

    /* State of the step. */
    struct arena arena;
    struct arena eval_arena; /* for a part of an evaluation */
    struct batch batch;      /* the whole step's, equal on every rank */
    int64_t cursor_begin;    /* the cursor when the step began, or began again after a rollback */
    uint64_t *drawn;         /* [n_drawn] uids of the prompts drawn in this step, in the arena */
    int64_t n_drawn;
    struct rank_figure { /* of this rank; the largest of all ranks is the metric */
        const char *name;
        double value;
    } figures[FIGURES];
    int64_t n_figures;
    struct plugin_metrics plugin_metrics;
};

/* Options of `tare train`. */
struct train_start {
    /* allow_change: a resumed run may continue with another configuration. */
    bool resume, allow_change;
    int64_t until; /* stop after this step with a checkpoint; 0: train.steps */
    /* Extensions that a program embedding this library offers to plugins, in addition to the
     * engine's; or NULL. */
    const void *(*extension)(void *ctx, const char *id);
    void *extension_ctx;
    /* Called on rank 0 before anything is opened; creates model.path if it is missing. May be
     * NULL. */
    make_model make;
};

/* A step's batch with the memory that it points into. */
struct run_batch {
    struct batch batch;
    struct arena arena;
};

/* Transfers the batch of the last step, with its memory, to the caller, who frees it; the next step
 * allocates new memory. Texts stored elsewhere (rows, reasons) are copied into it. */
tare_status run_take_batch(struct run *r, struct run_batch *out, struct err *e);
void run_batch_free(struct run_batch *b);

/* Opens everything for `tare train`; nothing is written before all parts are known to fit together.
 * With start->resume the run continues from the last complete checkpoint of run.dir; otherwise
 * run.dir must not hold a run. run_close closes comm. Collective, as all functions here. */
tare_status run_open(struct run *r, const struct config *c, struct comm comm, const struct train_start *start, struct err *e);
void run_close(struct run *r);

#endif
