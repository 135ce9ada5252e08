/* Stages of step.c that belong to no other module. */
#include "loop/stages.h"

#include "loop/step_metrics.h"

#include <string.h>

/* A prompt that already occurred in this step, dropped or not, gets new draws. */
static tare_status count_occurrences(struct run *r, struct err *e)
{
    const struct rollout_config *c = &r->config->rollout;
    struct batch *b = &r->batch;
    if (!r->n_drawn) TRY(arena_new(&r->arena, &r->drawn, c->prompts * (c->refill_rounds + 1), e));
    for (int64_t m = 0; m < b->n_groups; m++)
        for (int64_t k = 0; k < r->n_drawn; k++) b->occurrence[m] += r->drawn[k] == b->prompt_uid[m];
    memcpy(r->drawn + r->n_drawn, b->prompt_uid, (size_t)b->n_groups * sizeof *r->drawn);
    r->n_drawn += b->n_groups;
    return TARE_OK;
}

/* Chooses the next n rows in the data set's order, or those that the curriculum prefers, and the
 * number of rollouts for each. */
static tare_status choose_rows(struct run *r, int64_t n, int64_t *rows, int64_t *samples, struct err *e)
{
    const int64_t cursor = r->cursor;
    int64_t *ordered;
    TRY(arena_new(&r->arena, &ordered, n, e));
    TRY(order_next(&r->engine.order, &r->cursor, n, ordered, NULL, e));
    return curriculum_next(r->curriculum, &(struct curriculum_draw){.n = n, .cursor = cursor, .ordered = ordered}, rows, samples,
                           e);
}

tare_status stage_data(struct run *r, int64_t n, struct collect_request *request, struct err *e)
{
    int64_t *rows, *occurrence, *samples;
    TRY(arena_new(&r->arena, &rows, n, e));
    TRY(arena_new(&r->arena, &occurrence, n, e));
    TRY(arena_new(&r->arena, &samples, n, e));
    TRY(choose_rows(r, n, rows, samples, e));
    order_occurrences(rows, n, occurrence);
    *request =
        (struct collect_request){.chosen = {.data = &r->engine.train, .rows = rows, .occurrence = occurrence, .n = n},
                                 .samples = samples,
                                 .key = rng_derive(rng_key((uint64_t)r->config->run.seed, RNG_TRAIN), (uint64_t)r->batch.step)};
    TRY(collector_prompts(&r->collector, request, &r->batch, e));
    return count_occurrences(r, e);
}

tare_status stage_rollout(struct run *r, const struct collect_request *request, struct err *e)
{
    const struct sampler_stats before = sampler_stats(r->engine.sampler);
    const tare_status status = collector_sample(&r->collector, request, &r->batch, e);
    if (status == TARE_E_NOT_FINITE) r->state = RUN_OVERFLOWED;
    if (status == TARE_E_PLUGIN) r->state = RUN_PLUGIN_FAILED; /* an environment's error */
    TRY(status);
    const struct sampler_stats after = sampler_stats(r->engine.sampler);
    TRY(figure_add(r, "speculation/drafted", (double)(after.drafted - before.drafted), e));
    return figure_add(r, "speculation/accepted", (double)(after.accepted - before.accepted), e);
}

tare_status stage_verify(struct run *r, struct err *e)
{
    const tare_status status = collector_verify(&r->collector, e);
    if (status && status != TARE_E_CANCELLED && status != TARE_E_COMM) r->state = RUN_PLUGIN_FAILED;
    return status;
}

tare_status stage_state(struct run *r, struct err *e)
{
    OWNED(str_free) struct str state = {0};
    if (!r->config->log.rollouts || !r->observe) return TARE_OK;
    TRY(estimate_save(r->learner.estimator, &state, e));
    return observe_state(r->observe, r->batch.step, &state, e);
}

tare_status stage_apply(struct run *r, struct err *e)
{
    TRY(learner_apply(r, e));
    return curriculum_apply(r->curriculum, e);
}
