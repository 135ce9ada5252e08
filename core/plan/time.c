/* Operations, bytes streamed, bytes on the wire and seconds by stage, of the busiest rank, for typical rows. A roofline: products at a share of the
 * peak, streams at a share of the bandwidth, then the wire, without overlap. docs/plan.md has the formulas. */
#include "plan/plan.h"

#include <math.h>
#include <string.h>
#include <tare/objective.h>

struct work {                      /* of the busiest rank */
    double groups, rollouts, p, t; /* its prompts and rollouts a step, tokens of a typical prompt and completion */
    double layers_mac, head_mac;   /* multiply-adds a row: all products of the layers; the head */
    double key_mac;                /* multiply-adds of a query with one key, all layers: q k, then p v */
    double adapter_mac;            /* multiply-adds a row of all adapters: x A^T, then B */
    double updates;                /* optimizer steps a step */
    double flat, piece;            /* floats */
    double others;                 /* (R - 1) / R: the share of a collective's bytes that comes from others */
};

static double least(double a, double b)
{
    return a < b ? a : b;
}

static struct work work_of(const struct plan *p)
{
    const struct plan_input *in = &p->in;
    const struct model_shape *s = &in->shape;
    const struct config *c = in->config;
    const double q = (double)(s->heads * s->head_dim), kv = (double)(s->kv_heads * s->head_dim), C = (double)s->hidden;
    struct work w = {.groups = (double)p->first.groups,
                     .flat = (double)p->flat,
                     .piece = (double)p->piece,
                     .others = (double)(in->ranks - 1) / (double)in->ranks};
    w.rollouts = w.groups * (double)c->rollout.group_size;
    w.p = in->prompt_tokens ? (double)in->prompt_tokens : (double)p->prompt_tokens;
    w.t = in->response_tokens ? (double)in->response_tokens : (double)p->new_tokens;
    w.layers_mac = (double)s->layers * (C * (q + 2 * kv) + q * C + 3 * C * (double)s->intermediate);
    w.head_mac = (double)s->vocab * C;
    w.adapter_mac = (double)p->trained * (c->lora.rank > 0); /* one of each number of A and B */
    w.key_mac = 2 * (double)s->layers * q;
    const double all = (double)(c->rollout.prompts * c->rollout.group_size);
    w.updates = ceil(all / (double)c->train.minibatch) * (double)c->train.epochs;
    return w;
}

/* ---- seconds */

struct rates { /* of one rank; 0: not known */
    double flops, memory, link, disk;
};

static struct rates rates_of(const struct plan_input *in)
{
    const struct plan_machine *m = &in->machine;
    const double share = m->gpu ? 1 : (double)in->hosts / (double)in->ranks;
    return (struct rates){.flops = m->flops * m->compute_use * least(share, 1),
                          .memory = m->bandwidth * m->memory_use * least(share, 1),
                          .link = m->link,
                          .disk = m->disk};
}

static double over(double amount, double rate)
{
    return amount > 0 ? (rate > 0 ? amount / rate : NAN) : 0;
}

static void settle(struct plan_stage_cost *s, double compute, double stream, const struct rates *r)
{
    const double wire = over(s->wire, r->link), disk = over(s->disk, r->disk);
    s->seconds = compute + stream + wire + disk;
    const double most = fmax(fmax(compute, stream), fmax(wire, disk));
    s->bound = isnan(s->seconds) ? "" : most == compute ? "compute" : most == stream ? "memory" : most == wire ? "wire" : "disk";
}

/* ---- stages */

/* Prefill is one pass over the prompts. A decoding step reads the compute copy of all weights and the keys of the running completions; the prompt's
 * keys are shared by its G rollouts. */
static void rollout(const struct plan *p, const struct work *w, const struct rates *r, struct plan_stage_cost *out)
{
    const struct config *c = p->in.config;
    const double group_size = (double)c->rollout.group_size;
    const double batch = least(least((double)p->decode_batch, w->rollouts), fmax(1, (double)p->kv_sequences));
    const double waves = batch > 0 ? ceil(w->rollouts / batch) : 0, steps = waves * w->t;
    const double running = waves > 0 ? w->rollouts / waves : 0;
    const double layers = w->layers_mac + w->adapter_mac;
    const double prefill = 2 * (w->groups * (layers * w->p + w->head_mac) + w->key_mac * w->groups * w->p * w->p / 2);
    const double a_step = 2 * running * (layers + w->head_mac + w->key_mac * (w->p + w->t / 2));
    const double keys = ceil(running / group_size) * w->p + running * w->t / 2;
    const double read = (double)p->packed_bytes + (double)p->kv_token_bytes * keys;
    const double compute = over(a_step, r->flops), stream = over(read, r->memory);
    out->flops = prefill + steps * a_step;
    out->memory = steps * read;
    const double decode = isnan(compute) || isnan(stream) ? NAN : steps * fmax(compute, stream);
    settle(out, over(prefill, r->flops) + (compute >= stream ? decode : 0), compute >= stream ? 0 : decode, r);
}

/* A minibatch is cut into micro-batches, which the ranks take in turns: of n of them the busiest rank computes ceil(n / R). A group that is cut has its
 * prompt in every piece. */
struct cut {
    double micro, rounds, rows; /* of one minibatch; rows: of all its micro-batches */
};

static struct cut cut_of(const struct plan *p, const struct work *w, double minibatch)
{
    const struct config *c = p->in.config;
    const double G = (double)c->rollout.group_size;
    const double rollouts = least(minibatch, (double)c->rollout.prompts * G), groups = rollouts / G;
    const double shards = least((double)p->in.gradient_shards, groups);
    const double alone = c->train.prompt_sharing ? 0 : w->p, shared = c->train.prompt_sharing ? w->p : 0;
    const double fit = fmax(1, floor((double)c->train.micro_tokens / fmax(1, w->t - 1 + alone + shared / G)));
    struct cut x = {.micro = shards * ceil(rollouts / shards / fit)};
    x.rounds = ceil(x.micro / (double)p->in.ranks);
    x.rows = fmax(groups, x.micro) * shared + rollouts * (w->t - 1 + alone);
    return x;
}

/* Of a supervised step of [relift]: rows that share nothing. */
static struct cut cut_supervised(const struct plan *p, const struct work *w)
{
    const struct relift_config *c = &p->in.config->relift;
    const double rows = (double)(c->minibatch ? c->minibatch : c->rows), length = fmax(1, w->p + w->t - 1);
    const double shards = least((double)p->in.gradient_shards, rows);
    const double fit = fmax(1, floor((double)p->in.config->train.micro_tokens / length));
    struct cut x = {.micro = shards * ceil(rows / shards / fit), .rows = rows * length};
    x.rounds = ceil(x.micro / (double)p->in.ranks);
    return x;
}

/* Optimizer steps of the process reward model a step, and the most of a supervised update. */
static double process_steps(const struct config *c)
{
    const double all = (double)(c->rollout.prompts * c->rollout.group_size), minibatch = (double)c->process_reward.minibatch;
    return !c->process_reward.implicit ? 0 : minibatch > 0 ? ceil(all / minibatch) : 1;
}

static double supervised_steps(const struct config *c)
{
    const struct relift_config *l = &c->relift;
    return l->rows ? (double)(l->rows / (l->minibatch ? l->minibatch : l->rows) * l->epochs) : 0;
}

/* Of the products of layers, how much of a forward pass is computed again. */
static double products_again(const struct plan *p)
{
    const struct model_shape *s = &p->in.shape;
    const double q = (double)(s->heads * s->head_dim), kv = (double)(s->kv_heads * s->head_dim), F = (double)s->intermediate;
    switch (p->in.config->train.recompute) {
    case RECOMPUTE_LAYER:
        return 1;
    case RECOMPUTE_MLP:
        return 2 * F / (2 * q + 2 * kv + 3 * F);
    default:
        return 0;
    }
}

/* Operations of a forward pass, by part. */
struct pass {
    double layers, adapters, attention, head;
};

static struct pass pass_of(const struct work *w, double rows, double pairs, double targets)
{
    return (struct pass){.layers = 2 * w->layers_mac * rows,
                         .adapters = 2 * w->adapter_mac * rows,
                         .attention = 2 * w->key_mac * pairs,
                         .head = 2 * w->head_mac * targets};
}

static double forward(const struct pass *x)
{
    return x->layers + x->adapters + x->attention + x->head;
}

/* Forward, backward (twice the products, 2.5 times the attention), and the forward pass again where activations are recomputed. Of a frozen product the
 * backward pass computes dx only; of an adapter's, x A^T again, and both gradients. */
static double training(const struct plan *p, const struct work *w, const struct pass *x)
{
    const double again = products_again(p), attention_again = p->in.config->train.recompute == RECOMPUTE_LAYER ? 1 : 0;
    const double passes = w->adapter_mac > 0 ? 2 : 3;
    return x->layers * (passes + again) + x->adapters * (3.5 + again) + x->attention * (3.5 + attention_again) + passes * x->head;
}

/* What optimizer steps stream and send. AdamW reads p, g, m, v and writes p, m, v; the norm reads g, and it is zeroed. In a round every
 * gradient goes to its owner; none: the sums are gathered at the end. */
static void add_steps(const struct plan *p, const struct work *w, double steps, double rounds, struct plan_stage_cost *out)
{
    const bool whole = p->in.shard == SHARD_NONE;
    out->memory += steps * 9 * 4 * (whole ? w->flat : w->piece);
    out->wire += steps * w->others * 4 * (rounds + whole) * w->flat;
}

/* The implicit process reward model: its logprobs and the reference's for the rewards, its own again before each of its optimizer steps. */
static void update_process(const struct plan *p, const struct work *w, const struct pass *policy, double pairs,
                           struct plan_stage_cost *out)
{
    const struct config *c = p->in.config;
    const double all = (double)(c->rollout.prompts * c->rollout.group_size), steps = process_steps(c);
    const struct cut x = cut_of(p, w, c->process_reward.minibatch ? (double)c->process_reward.minibatch : all);
    const double share = x.rounds / x.micro;
    const struct pass own = pass_of(w, x.rows * steps * share, pairs * share, all * w->t * share);
    if (steps <= 0) return;
    out->flops += 2 * forward(policy) + forward(&own) + training(p, w, &own);
    add_steps(p, w, steps, x.rounds, out);
}

/* The most that [relift] adds: an update in every step. */
static void update_supervised(const struct plan *p, const struct work *w, struct plan_stage_cost *out)
{
    const double steps = supervised_steps(p->in.config), length = w->p + w->t;
    if (steps <= 0) return;
    const struct cut x = cut_supervised(p, w);
    const double share = x.rounds / x.micro, rows = x.rows / fmax(1, length - 1) * steps;
    const struct pass own = pass_of(w, x.rows * steps * share, rows * length * length / 2 * share, rows * w->t * share);
    out->flops += training(p, w, &own);
    add_steps(p, w, steps, x.rounds, out);
}

static void update(const struct plan *p, const struct work *w, const struct rates *r, struct plan_stage_cost *out)
{
    const struct config *c = p->in.config;
    const struct cut x = cut_of(p, w, (double)c->train.minibatch);
    const double epochs = (double)c->train.epochs, share = x.rounds / x.micro;
    const double M = (double)c->rollout.prompts, N = M * (double)c->rollout.group_size,
                 pairs = M * w->p * w->p / 2 + N * (w->p * w->t + w->t * w->t / 2);
    const struct pass once = pass_of(w, x.rows * w->updates / epochs * share, pairs * share, N * w->t * share);
    out->flops = epochs * training(p, w, &once);
    if (c->loss.kl_coef > 0) out->flops += forward(&once) * (c->loss.kl == KL_EXACT ? epochs : 1);
    if (c->loss.old_logprobs == OLD_RECOMPUTE) out->flops += forward(&once);
    if (p->in.objective_needs & TARE_OBJECTIVE_PASS) out->flops += epochs * forward(&once);
    add_steps(p, w, w->updates, x.rounds, out);
    update_process(p, w, &once, pairs, out);
    update_supervised(p, w, out);
    settle(out, over(out->flops, r->flops), over(out->memory, r->memory), r);
}

/* The compute copy from the masters, after every optimizer step of each model; the masters travel in fp32. */
static void refresh(const struct plan *p, const struct work *w, const struct rates *r, struct plan_stage_cost *out)
{
    const double packed = w->adapter_mac > 0 ? 4 * w->flat : (double)p->packed_bytes; /* of adapters: theirs alone, about */
    const double steps = w->updates + supervised_steps(p->in.config) + process_steps(p->in.config);
    out->memory = steps * (4 * w->flat + packed);
    out->wire = p->in.shard == SHARD_NONE ? 0 : steps * w->others * 4 * w->flat;
    settle(out, 0, over(out->memory, r->memory), r);
}

/* Weights in the precision they are saved in, both moments, and the masters where the saved weights are not they; the process reward model's masters and
 * moments, and those of the second optimizer. */
static void checkpoint(const struct plan *p, const struct work *w, const struct rates *r, struct plan_stage_cost *out)
{
    const struct config *c = p->in.config;
    const bool as_computed = c->model.save_dtype == SAVE_AUTO;
    const bool as_base = !c->lora.rank && c->model.dtype == PRECISION_BF16; /* adapters are kept in f32 */
    const bool bf16 = as_computed ? as_base : c->model.save_dtype == SAVE_BF16;
    const double more = (c->process_reward.implicit ? 12 : 0) + (c->relift.rows ? 8 : 0);
    const double a_weight = (bf16 ? 2 : 4) + (c->checkpoint.optimizer ? 8 + (bf16 ? 4 : 0) + more : 0);
    out->disk = a_weight * w->flat;
    settle(out, 0, 0, r);
}

void plan_time(struct plan *p)
{
    const struct work w = work_of(p);
    const struct rates r = rates_of(&p->in);
    const int64_t every = p->in.config->checkpoint.every;
    memset(p->stage, 0, sizeof p->stage);
    rollout(p, &w, &r, &p->stage[PLAN_ROLLOUT]);
    update(p, &w, &r, &p->stage[PLAN_UPDATE]);
    refresh(p, &w, &r, &p->stage[PLAN_REFRESH]);
    checkpoint(p, &w, &r, &p->stage[PLAN_CHECKPOINT]);
    p->step_seconds = p->stage[PLAN_ROLLOUT].seconds + p->stage[PLAN_UPDATE].seconds + p->stage[PLAN_REFRESH].seconds;
    if (every && !isnan(p->stage[PLAN_CHECKPOINT].seconds)) p->step_seconds += p->stage[PLAN_CHECKPOINT].seconds / (double)every;
    p->run_seconds = p->step_seconds * (double)p->in.config->train.steps;
}
