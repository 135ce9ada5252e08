/* Model, trainer and sampler of a planned run on the backend that only counts. */
#ifndef TARE_CORE_PLAN_COUNTED_H
#define TARE_CORE_PLAN_COUNTED_H

#include "dist/comm.h"
#include "model/lora.h"
#include "plan/plan.h"
#include "update/largest.h"

struct counted {
    const struct plan *plan;
    const struct plan_input *in;
    struct kernels kernels;
    struct kctx ctx; /* for the backend's figures */
    struct comm comm;
    struct lora_spec lora;
    struct model *model, *reference;
    struct trainer *trainer;
    struct model *reward_model; /* the process reward model and its trainer, where there is one */
    struct trainer *reward_trainer;
    struct sampler *sampler;
    struct arena arena; /* requests */
    struct plan_counted *out;
};

/* In this order; counted_free after all, after an error too. */
void counted_init(struct counted *x, const struct plan *p, struct plan_counted *out);
tare_status counted_backend(struct counted *x, struct err *e);
tare_status counted_model(struct counted *x, struct err *e);
tare_status counted_update(struct counted *x, struct err *e);
/* n requests for `samples` completions of prompts of that many tokens, in x's arena. */
tare_status counted_requests(struct counted *x, int64_t n, int64_t samples, int64_t prompt_tokens, struct sample_request **out,
                             struct err *e);
void counted_free(struct counted *x);
/* The update's largest micro-batches, with prompts and completions of these lengths. */
struct update_largest counted_largest(const struct counted *x, int64_t prompt, int64_t completion);

#endif
