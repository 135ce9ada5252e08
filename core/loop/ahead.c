/* Verifiers that wait for something else (submit and poll) begin with a completion when it ends; what they say is collected in stage_verify.
 * A completion that a row's own trace replaces is judged for nothing. */
#include "loop/ahead.h"
#include "rollout/texts.h"

static tare_status submit(void *ctx, const struct sample_ended *x, struct err *e)
{
    struct run *r = ctx;
    const struct decoding d = {r->engine.tokenizer, r->engine.model, &r->arena};
    struct verify_item item = verify_item_of(&r->share.own, x->request);
    TRY(rollout_completion_text(&d, (struct completion_ids){x->ids, x->n, x->finish}, &item.completion, e));
    item.sample = x->sample;
    item.tokens = x->n;
    item.finish = x->finish;
    return verify_submit(r->engine.verify, x->at, &item, e);
}

static tare_status look(void *ctx, struct err *e)
{
    struct run *r = ctx;
    return verify_poll(r->engine.verify, e);
}

tare_status ahead_begin(struct run *r, struct err *e)
{
    const struct batch *own = &r->share.own;
    int64_t n = 0;
    if (!verify_waits(r->engine.verify)) return TARE_OK;
    for (int64_t m = 0; m < own->n_groups; m++)
        n += own->samples && own->samples[m] ? own->samples[m] : r->config->rollout.group_size;
    TRY(verify_begin(r->engine.verify, n, e));
    sampler_watch(r->engine.sampler, &(struct sample_watch){submit, look, r});
    return TARE_OK;
}
