/* Rows to a finished batch: prompts, sampling, text, verification. Training, evaluation during
 * training, `tare eval`, `tare variance` and `tare generate` all collect their batches here.
 *
 *   struct collector c = engine_collector(&engine, &arena);        the parts; then the settings
 *   c.config = config->rollout, c.params = &engine.sampling, c.cancelled = signals_flag();
 *   TRY(collector_run(&c, &(struct collect_request){.chosen = rows, .key = key}, &batch, e));
 *   collector_free(&c);
 *
 * On several ranks each samples and verifies its own groups; after collector_join every rank has
 * the whole batch, with the same bytes. All functions are collective. The caller that measures or
 * interrupts between the stages calls the four that collector_run consists of. Not thread-safe; one
 * batch at a time. */
#ifndef TARE_CORE_COLLECT_COLLECTOR_H
#define TARE_CORE_COLLECT_COLLECTOR_H

#include "base/rng.h"
#include "batch/batch.h"
#include "config/config.h"
#include "data/prompt.h"
#include "dist/deal.h"
#include "episodes/episodes.h"
#include "rollout/prompts.h"
#include "rollout/rollout.h"
#include "verify/verify.h"

/* Optional columns, a sum of these. */
enum collect_columns {
    COLLECT_PROMPT_TEXT = 1, /* prompt_text */
    COLLECT_VERSION = 2,     /* policy_version: the batch is for the update of step `batch.step` */
    COLLECT_SEGMENTS = 4,    /* token_end, segment, segment_reward, if a verifier gives segments */
};

struct collector {
    /* Parts, borrowed. */
    const struct prompts *prompts;     /* NULL: the caller encodes the prompts */
    const struct tokenizer *tokenizer; /* NULL: completions stay token ids */
    const struct model *model;
    struct sampler *sampler;
    struct verify *verifier;   /* NULL: completions are not verified */
    struct episodes *episodes; /* NULL: a rollout is one completion */
    struct comm *comm;         /* NULL: one rank */
    struct arena *arena;       /* of the batch */

    /* Settings. */
    struct rollout_config config;       /* group_size, max_new_tokens */
    const struct sample_params *params; /* borrowed */
    const volatile int *cancelled;      /* as for sampler_run; NULL: not interrupted */
    unsigned columns;                   /* enum collect_columns */

    /* Owned. */
    struct token_ids prompt_ids; /* scratch */
    struct share share;          /* this rank's groups, from collector_sample to collector_join */
    double seconds;              /* in the sampler, over all batches */
    struct err verify_failure;   /* of a verifier while sampling; collector_verify returns it */
};

struct collect_request {
    struct chosen_rows chosen; /* data NULL: the batch comes with its prompts */
    int64_t *samples;          /* [n] rollouts a row, in the batch's arena; NULL: group_size */
    struct rng_key key;        /* of the draws: rng_derive(rng_key(seed, purpose), step) */
};

/* Calls the four stages below. batch: zeroed but for `step`, and but for its prompts where
 * request->chosen.data is NULL. TARE_E_CANCELLED: interrupted. A rank's error is every rank's
 * error. */
tare_status collector_run(struct collector *c, const struct collect_request *request, struct batch *b, struct err *e);

/* Fills row, prompt_uid, occurrence, prompt_begin, prompt_ids and samples of the chosen rows. */
tare_status collector_prompts(struct collector *c, const struct collect_request *request, struct batch *b, struct err *e);
/* Deals the groups to the ranks; fills group_begin, token_begin, ids, logprob, entropy, finish and
 * completion of this rank's. A verifier that waits for something else starts on each completion as
 * it ends; its error is kept for collector_verify, so that a failing verifier fails the same
 * stage whenever its answer comes. */
tare_status collector_sample(struct collector *c, const struct collect_request *request, struct batch *b, struct err *e);
/* Fills reward, component, verdict, extracted and reason of this rank's groups. */
tare_status collector_verify(struct collector *c, struct err *e);
/* Joins the ranks' groups into b. */
tare_status collector_join(struct collector *c, struct batch *b, struct err *e);

void collector_free(struct collector *c);

#endif
