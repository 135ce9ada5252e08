#include "collect/collector.h"

#include "base/clock.h"
#include "base/fault.h"
#include "rollout/texts.h"

/* ---------------------------------------------------------------- prompts */

/* The text that the model reads, for the record: the row's question is only a part of it. */
static tare_status keep_prompt_texts(const struct collector *c, struct batch *b, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    TRY(arena_new(c->arena, &b->prompt_text, b->n_groups, e));
    for (int64_t m = 0; m < b->n_groups; m++) {
        char *copy = NULL;
        str_clear(&text);
        TRY(prompts_text(c->prompts, b->row[m], &text, e));
        TRY(arena_strdup(c->arena, text.data ? text.data : "", text.size, &copy, e));
        b->prompt_text[m] = (tare_text){copy, text.size};
    }
    return TARE_OK;
}

tare_status collector_prompts(struct collector *c, const struct collect_request *request, struct batch *b, struct err *e)
{
    TRY(rollout_prompts(c->prompts, &request->chosen, &c->prompt_ids, b, c->arena, e));
    b->samples = request->samples;
    if (c->columns & COLLECT_PROMPT_TEXT) TRY(keep_prompt_texts(c, b, e));
    return c->episodes ? episodes_prompts(c->episodes, request->key, b, c->arena, e) : TARE_OK;
}

/* ---------------------------------------------------------------- verification while sampling */

static tare_status keep_failure(struct collector *c, tare_status status, struct err *e)
{
    if (!status || status == TARE_E_CANCELLED) return status;
    c->verify_failure = *e;
    return TARE_OK;
}

static tare_status submit_text(const struct collector *c, const struct sample_ended *x, struct err *e)
{
    const struct decoding d = {c->tokenizer, c->model, c->arena};
    struct verify_item item = verify_item_of(&c->share.own, x->request);
    TRY(rollout_completion_text(&d, (struct completion_ids){x->ids, x->n, x->finish}, &item.completion, e));
    item.sample = x->sample;
    item.tokens = x->n;
    item.finish = x->finish;
    return verify_submit(c->verifier, x->at, &item, e);
}

static tare_status submit_completion(void *ctx, const struct sample_ended *x, struct err *e)
{
    struct collector *c = ctx;
    return c->verify_failure.code ? TARE_OK : keep_failure(c, submit_text(c, x, e), e);
}

static tare_status poll_verifiers(void *ctx, struct err *e)
{
    struct collector *c = ctx;
    return c->verify_failure.code ? TARE_OK : keep_failure(c, verify_poll(c->verifier, e), e);
}

/* Asynchronous verifiers (submit and poll) start as soon as a completion ends; collector_verify
 * collects the verdicts. A completion that is replaced after sampling is verified needlessly. */
static tare_status watch_completions(struct collector *c, struct err *e)
{
    const struct batch *own = &c->share.own;
    int64_t n = 0;
    if (!c->verifier || !verify_waits(c->verifier)) return TARE_OK;
    for (int64_t m = 0; m < own->n_groups; m++) n += own->samples && own->samples[m] ? own->samples[m] : c->config.group_size;
    TRY(verify_begin(c->verifier, n, e));
    sampler_watch(c->sampler, &(struct sample_watch){.ended = submit_completion, .round = poll_verifiers, .ctx = c});
    return TARE_OK;
}

/* ---------------------------------------------------------------- sampling */

/* Sets policy_version [N] to the number of completed steps: all steps before the batch's. */
static tare_status set_policy_version(const struct collector *c, struct batch *own, struct err *e)
{
    TRY(arena_new_raw(c->arena, &own->policy_version, own->n_rollouts, e));
    for (int64_t i = 0; i < own->n_rollouts; i++) own->policy_version[i] = own->step - 1;
    return TARE_OK;
}

static tare_status sample_own(struct collector *c, struct rng_key key, struct err *e)
{
    struct batch *own = &c->share.own;
    struct sample_episodes how;
    struct rollout_job job = {.config = &c->config, .params = c->params, .key = key, .cancelled = c->cancelled};
    c->verify_failure = (struct err){0};
    if (!own->n_groups) return TARE_OK; /* more ranks than prompts */
    if (c->columns & COLLECT_VERSION) TRY(fault_point(c->comm ? c->comm->rank : 0, "sample", own->step, e));
    TRY(watch_completions(c, e));
    if (c->episodes) {
        TRY(episodes_reset(c->episodes, key, own, c->config.group_size, &how, e));
        job.episodes = &how;
    }
    const double began = clock_seconds();
    const tare_status status = rollout_run(c->sampler, &job, own, c->arena, e);
    c->seconds += clock_seconds() - began;
    sampler_watch(c->sampler, NULL);
    TRY(status);
    if (c->episodes) TRY(episodes_columns(c->episodes, own, c->arena, e));
    if (c->columns & COLLECT_VERSION) TRY(set_policy_version(c, own, e));
    return c->tokenizer ? rollout_texts(c->tokenizer, c->model, own, c->arena, e) : TARE_OK;
}

/* An interruption, or a failure, reaches the ranks at different times: they leave a stage with one
 * status. */
static tare_status agree_on(const struct collector *c, tare_status status, struct err *e)
{
    return c->comm ? comm_agree(c->comm, status, e) : status;
}

tare_status collector_sample(struct collector *c, const struct collect_request *request, struct batch *b, struct err *e)
{
    c->share = (struct share){.own = *b};
    if (c->comm) TRY(deal_batch(b, &c->config, c->comm, c->arena, &c->share, e));
    return agree_on(c, sample_own(c, request->key, e), e);
}

/* ---------------------------------------------------------------- verification, and the whole
 * batch */

static tare_status verify_own(struct collector *c, struct err *e)
{
    struct batch *own = &c->share.own;
    if (!own->n_groups) return TARE_OK;
    if (c->verify_failure.code) {
        *e = c->verify_failure;
        return e->code;
    }
    if ((c->columns & COLLECT_SEGMENTS) && verify_gives_segments(c->verifier))
        TRY(rollout_token_ends(c->tokenizer, own, c->arena, e));
    return verify_run(c->verifier, own, c->arena, e);
}

tare_status collector_verify(struct collector *c, struct err *e)
{
    return c->verifier ? agree_on(c, verify_own(c, e), e) : TARE_OK;
}

tare_status collector_join(struct collector *c, struct batch *b, struct err *e)
{
    if (c->comm) return deal_join(&c->share, c->comm, c->arena, b, e);
    *b = c->share.own;
    return TARE_OK;
}

tare_status collector_run(struct collector *c, const struct collect_request *request, struct batch *b, struct err *e)
{
    if (request->chosen.data) TRY(collector_prompts(c, request, b, e));
    TRY(collector_sample(c, request, b, e));
    TRY(collector_verify(c, e));
    return collector_join(c, b, e);
}

void collector_free(struct collector *c)
{
    token_ids_free(&c->prompt_ids);
}
