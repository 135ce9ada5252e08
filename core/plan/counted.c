/* Count the memory of a run with the run's own allocations. The model, the trainer and the sampler
 * are made on a backend that only counts (kernels_counting), the trainer meets its largest
 * micro-batches, and the sampler the longest prompts. This file only decides which bytes belong to
 * which class. */
#include "dist/comm.h"
#include "model/layout.h"
#include "model/lora.h"
#include "plan/plan.h"
#include "rollout/scheduler.h"
#include "update/largest.h"
#include "update/process_reward.h"
#include "update/supervised.h"

#include <string.h>
#include <tare/objective.h>

struct counted {
    const struct plan *plan;
    const struct plan_input *in;
    struct kernels kernels;
    struct kctx ctx; /* to read the backend's counters */
    struct comm comm;
    struct lora_spec lora;
    struct model *model, *reference;
    struct trainer *trainer;
    struct model *reward_model; /* the process reward model and its trainer; NULL without one */
    struct trainer *reward_trainer;
    struct sampler *sampler;
    struct arena arena; /* of the sampling requests */
    struct plan_counted *out;
};

static int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t held_bytes(const struct counted *x)
{
    struct kernel_memory m;
    x->kernels.backend->memory_use(&x->ctx, &m);
    return m.held;
}

/* ---- a communicator without transfers */

static tare_status no_collective(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    (void)c, (void)in, (void)bytes, (void)out, (void)e;
    return TARE_OK;
}

static tare_status no_gather(struct comm *c, const void *in, int64_t n, void *out, const int64_t *out_bytes, struct err *e)
{
    int64_t bytes = 0;
    (void)in, (void)n, (void)e;
    for (int r = 0; r < c->size; r++) bytes += out_bytes[r];
    memset(out, 0, (size_t)bytes);
    return TARE_OK;
}

static tare_status no_wait(struct comm *c, struct err *e)
{
    (void)c, (void)e;
    return TARE_OK;
}

static struct comm quiet_comm(const struct plan_input *in)
{
    return (struct comm){.size = (int)in->ranks,
                         .kind = "none",
                         .gather = no_gather,
                         .all_gather = no_collective,
                         .gather_begin = no_collective,
                         .gather_wait = no_wait,
                         .exchange_begin = no_collective,
                         .exchange_wait = no_wait,
                         .overlaps = in->machine.gpu && in->config->dist.communicator != COMMUNICATOR_MPI};
}

/* ---- the model */

static int64_t tensors_of(const struct model *m, int64_t *largest)
{
    int64_t all = 0;
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const int64_t n = m->tensors[i].rows * m->tensors[i].cols;
        all += n;
        *largest = larger_of(*largest, n);
    }
    return all;
}

/* Count the parameters of the base, and the host memory needed while it is read: one tensor, or one
 * unit of a base with adapters. */
static tare_status measure_base(const struct counted *x, struct err *e)
{
    OWNED(layout_free) struct model m = {.shape = x->in->shape, .ranks = 1};
    int64_t tensor = 0, unit = 0;
    TRY(layout_make(&m, e));
    x->out->params = tensors_of(&m, &tensor);
    for (int64_t u = 0; u < m.shape.layers + 2; u++) unit = larger_of(unit, m.unit_size[u]);
    x->out->staging = (x->lora.rank ? unit : tensor) * (int64_t)sizeof(float);
    return TARE_OK;
}

static tare_status make_model(struct counted *x, const struct model_shape *shape, bool trained, struct model **out, struct err *e)
{
    const struct model_source source = {.config = &x->in->config->model,
                                        .kernels = &x->kernels,
                                        .comm = x->in->ranks > 1 ? &x->comm : NULL,
                                        .shard = x->in->shard,
                                        .lora = trained ? &x->lora : NULL,
                                        .trains = trained};
    return model_counted(&source, shape, out, e);
}

static tare_status count_model(struct counted *x, struct err *e)
{
    struct plan_counted *out = x->out;
    TRY(measure_base(x, e));
    TRY(make_model(x, &x->in->shape, true, &x->model, e));
    const struct model *m = x->model;
    const int64_t L = m->shape.layers;
    int64_t largest = 0;
    out->trained = tensors_of(m, &largest);
    out->bytes[PLAN_WEIGHTS] = m->memory.parameters;
    out->bytes[PLAN_GATHERED] = m->memory.windows;
    out->bytes[PLAN_SAMPLER] = held_bytes(x) - m->memory.parameters - m->memory.windows;
    out->kv_token = L * 2 * kv_cache_bytes(m, 1) / KV_BLOCK;
    return TARE_OK;
}

/* ---- the update */

static bool exact_kl(const struct plan_input *in)
{
    const struct loss_config *l = &in->config->loss;
    return (l->kl_coef > 0 && l->kl == KL_EXACT) || in->objective.kl;
}

/* With adapters the base alone is the reference, unless model.reference names another model. */
static tare_status count_reference(struct counted *x, bool wanted, struct err *e)
{
    const struct config *c = x->in->config;
    const int64_t before = held_bytes(x);
    if (!wanted) return TARE_OK;
    TRY(x->lora.rank && !*c->model.reference
            ? model_base_view(x->model, &x->reference, e)
            : make_model(x, x->in->reference.layers ? &x->in->reference : &x->in->shape, false, &x->reference, e));
    x->out->bytes[PLAN_REFERENCE] = held_bytes(x) - before;
    return TARE_OK;
}

static bool wants_reference(const struct plan_input *in)
{
    return in->config->process_reward.implicit || in->config->loss.kl_coef > 0 || in->objective.ref_logprob || in->objective.kl;
}

/* Return the update's largest micro-batches, at full length. */
static struct update_largest largest_update(const struct counted *x)
{
    const struct config *c = x->in->config;
    const int64_t groups = c->train.minibatch / c->rollout.group_size,
                  shards = x->in->gradient_shards > 0 ? x->in->gradient_shards : 1;
    return (struct update_largest){
        .groups = larger_of((groups + shards - 1) / shards, 1),
        .rollouts = c->rollout.group_size,
        .prompt = x->plan->prompt_tokens,
        .completion = x->plan->new_tokens,
        .exact_kl = exact_kl(x->in),
        .forward = wants_reference(x->in) || c->loss.old_logprobs == OLD_RECOMPUTE || x->in->objective.looks_ahead,
    };
}

/* Increases m where the micro-batches of a supervised update need more memory: their prompts are not
 * shared. */
static tare_status count_supervised(struct counted *x, struct update_memory *m, struct err *e)
{
    const struct relift_config *c = &x->in->config->relift;
    const int64_t each = c->minibatch ? c->minibatch : c->rows, shards = larger_of(x->in->gradient_shards, 1);
    const struct update_largest largest = {
        .groups = (each + shards - 1) / shards, .rollouts = 1, .prompt = x->plan->prompt_tokens, .completion = x->plan->new_tokens};
    struct update_memory more;
    TRY(update_count(x->trainer, &largest, &more, e));
    m->rows = larger_of(m->rows, more.rows);
    m->targets = larger_of(m->targets, more.targets);
    m->activations = larger_of(m->activations, more.activations);
    m->head = larger_of(m->head, more.head);
    return TARE_OK;
}

static tare_status count_update(struct counted *x, struct err *e)
{
    const struct config *c = x->in->config;
    const struct update_largest largest = largest_update(x);
    struct plan_counted *out = x->out;
    struct update_memory m;
    TRY(count_reference(x, wants_reference(x->in), e));
    const int64_t before = held_bytes(x);
    TRY(trainer_new(x->model,
                    &(struct trainer_options){
                        .reference = x->reference, .train = &c->train, .loss = &c->loss, .temperature = 1, .total_steps = 1},
                    &x->trainer, e));
    if (c->relift.rows) TRY(supervised_add_second(x->trainer, c, e));
    const struct trainer *t = x->trainer;
    out->bytes[PLAN_GRADIENTS] = t->grads.sum_bytes;
    out->bytes[PLAN_MOMENTS] = t->moment_bytes;
    out->bytes[PLAN_GATHERED] += held_bytes(x) - before - t->grads.sum_bytes - t->moment_bytes;
    TRY(update_count(x->trainer, &largest, &m, e));
    if (c->relift.rows) TRY(count_supervised(x, &m, e));
    out->rows = m.rows;
    out->targets = m.targets;
    out->bytes[PLAN_ACTIVATIONS] = m.activations;
    out->bytes[PLAN_LOGITS] = m.head;
    out->bytes[PLAN_REFERENCE] += m.reference;
    return TARE_OK;
}

/* Count the implicit process reward model, a second trained model with its buffers. */
static tare_status count_process(struct counted *x, struct err *e)
{
    const struct config *c = x->in->config;
    struct plan_counted *out = x->out;
    const struct train_config train = process_reward_train_config(c);
    struct update_largest largest = largest_update(x);
    struct update_memory m;
    if (!c->process_reward.implicit) return TARE_OK;
    int64_t before = held_bytes(x);
    TRY(make_model(x, &x->in->shape, true, &x->reward_model, e));
    const struct model_memory *own = &x->reward_model->memory;
    out->bytes[PLAN_WEIGHTS] += own->parameters;
    out->bytes[PLAN_GATHERED] += own->windows;
    out->bytes[PLAN_SAMPLER] += held_bytes(x) - before - own->parameters - own->windows;
    before = held_bytes(x);
    TRY(trainer_new(
        x->reward_model,
        &(struct trainer_options){.reference = x->reference, .train = &train, .loss = &c->loss, .temperature = 1, .total_steps = 1},
        &x->reward_trainer, e));
    const struct trainer *t = x->reward_trainer;
    out->bytes[PLAN_GRADIENTS] += t->grads.sum_bytes;
    out->bytes[PLAN_MOMENTS] += t->moment_bytes;
    out->bytes[PLAN_GATHERED] += held_bytes(x) - before - t->grads.sum_bytes - t->moment_bytes;
    largest.forward = true;
    largest.exact_kl = false;
    const int64_t groups =
        c->process_reward.minibatch ? c->process_reward.minibatch / c->rollout.group_size + 1 : c->rollout.prompts;
    const int64_t shards = larger_of(x->in->gradient_shards, 1);
    largest.groups = (groups + shards - 1) / shards;
    TRY(update_count(x->reward_trainer, &largest, &m, e));
    x->reward_trainer->train = &c->train; /* `train` is local to this function */
    out->bytes[PLAN_ACTIVATIONS] += m.activations;
    out->bytes[PLAN_LOGITS] += m.head;
    out->bytes[PLAN_REFERENCE] += m.reference;
    return TARE_OK;
}

/* ---- sampling */

/* Make n requests for `samples` completions each of prompts of prompt_tokens tokens, in
 * x->arena. */
static tare_status make_requests(struct counted *x, int64_t n, int64_t samples, int64_t prompt_tokens, struct sample_request **out,
                                 struct err *e)
{
    int32_t *prompt;
    TRY(arena_new(&x->arena, &prompt, prompt_tokens, e));
    TRY(arena_new(&x->arena, out, n, e));
    for (int64_t i = 0; i < n; i++)
        (*out)[i] = (struct sample_request){.prompt = prompt, .prompt_len = prompt_tokens, .n_samples = samples};
    return TARE_OK;
}

/* Reserve the cache at full length, then sample two tokens of every sequence: no later pass is
 * larger. Evaluation inside training may need a larger cache than the step. */
static tare_status count_sampling(struct counted *x, int64_t groups, struct err *e)
{
    const struct config *c = x->in->config;
    const struct sample_params two = {.temperature = 1, .top_p = 1, .max_new_tokens = x->plan->new_tokens < 2 ? 1 : 2};
    struct plan_counted *out = x->out;
    struct sample_request *requests;
    struct sample_output sampled;
    TRY(sampler_new(x->model, c->rollout.batch, c->rollout.kv_tokens, &x->sampler, e));
    TRY(make_requests(x, larger_of(groups, 1), c->rollout.group_size, x->plan->prompt_tokens, &requests, e));
    TRY(sampler_reserve(x->sampler, requests, larger_of(groups, 1), x->plan->new_tokens, &out->train, e));
    const int64_t blocks = sampler_memory(x->sampler).cache_blocks;
    if (groups)
        TRY(sampler_run(x->sampler,
                        &(struct sample_job){.params = &two, .key = rng_key(0, RNG_TRAIN), .requests = requests, .n = groups},
                        &x->arena, &sampled, e));
    const int64_t rows = config_eval_rows(c, x->in->eval_rows);
    if (config_evaluates(c) && rows) {
        const int64_t longest = c->eval.max_new_tokens ? c->eval.max_new_tokens : c->rollout.max_new_tokens;
        const int64_t own = (rows + x->in->ranks - 1) / x->in->ranks;
        TRY(make_requests(x, own, c->eval.samples, x->plan->prompt_tokens, &requests, e));
        TRY(sampler_reserve(x->sampler, requests, own, longest, &out->eval, e));
    }
    const struct sampler_memory m = sampler_memory(x->sampler);
    if (m.cache_blocks == blocks) out->eval.blocks = 0;
    out->kv_blocks = m.cache_blocks;
    out->drawn = m.token;
    out->bytes[PLAN_KV] = m.cache;
    out->bytes[PLAN_PREFILL] = m.forward;
    return TARE_OK;
}

static void init_counted(struct counted *x, const struct plan *p, struct plan_counted *out)
{
    *x = (struct counted){.plan = p, .in = &p->in, .comm = quiet_comm(&p->in), .out = out};
    *out = (struct plan_counted){0};
    arena_init(&x->arena, "plan");
}

static tare_status open_backend(struct counted *x, struct err *e)
{
    const struct kernels *like = x->in->kernels;
    if (!like && !x->in->machine.gpu) TRY(kernels_cpu(config_kernels(x->in->config), &like, e));
    kernels_counting(like, &x->kernels);
    const struct plan_machine *m = &x->in->machine;
    x->kernels.backend->reserve(&x->ctx, (int64_t)(m->gpu ? m->memory - m->reserve - plan_nccl(&x->plan->in) : m->memory));
    return lora_spec_of(x->in->config, &x->lora, e);
}

static tare_status count_all(struct counted *x, int64_t groups, struct err *e)
{
    TRY(open_backend(x, e));
    TRY(count_model(x, e));
    TRY(count_update(x, e));
    TRY(count_process(x, e));
    return count_sampling(x, groups, e);
}

static void free_counted(struct counted *x)
{
    sampler_free(x->sampler);
    trainer_free(x->reward_trainer);
    trainer_free(x->trainer);
    model_free(x->reward_model);
    model_free(x->reference);
    model_free(x->model);
    arena_free(&x->arena);
}

tare_status plan_count(const struct plan *p, int64_t groups, struct plan_counted *out, struct err *e)
{
    OWNED(free_counted) struct counted x = {0};
    init_counted(&x, p, out);
    return count_all(&x, groups, e);
}
