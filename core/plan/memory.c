/* Memory by class and rank. Every formula here is stated with its shapes in docs/plan.md. */
#include "plan/plan.h"

#include "model/layout.h"
#include "model/lora.h"
#include "model/positions.h"
#include "rollout/scheduler.h"

#include <math.h>
#include <string.h>
#include <tare/objective.h>

enum { PREFILL_ROWS = 2048, AUTO_BATCH = 256, LOGIT_ROWS = 64, EVAL_ROWS = 256 }; /* of the sampler and the evaluation */
enum {
    HEAD_ROWS_MOST = 1024,
    HEAD_ROWS_LEAST = 16,
    HEAD_ROW = 11                                   /* statistics and coefficients of a row */
};                                                  /* of the update's head */
enum { DECODER_ROWS = 64, WORKSPACE = 128000000 };  /* rows that a GPU adds to a batch at most; bytes of its libraries */
enum { MARGIN = 64 << 20, MARGIN_PART = 32 };       /* of a GPU's region: bytes, and one part in so many of what it is for */
enum { F32 = 4, LOG_BYTES = 48, BATCH_BYTES = 32 }; /* a token: in the sampler's log; in the batch, which every rank has whole */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t stride(const struct model_shape *s)
{
    return (s->heads + 2 * s->kv_heads) * s->head_dim;
}

/* ---- parameters */

struct sizes {       /* floats; packed in bytes. With adapters own, params, layer and ends are theirs, of the rest the base's */
    int64_t count;   /* N, the base's */
    int64_t trained; /* parameters that are trained */
    int64_t unit;    /* the base's largest unit */
    int64_t base_params, base_packed; /* params and packed of the whole base */
    int64_t params, own;              /* of the flat layout with its padding; of a rank's pieces */
    int64_t layer;                    /* largest unit of a layer */
    int64_t first, last;              /* the embedding's unit; the last one */
    int64_t ends;                     /* the larger of the units that hold embedding and head */
    int64_t tensor;                   /* largest tensor */
    int64_t vectors;                  /* norms and biases */
    int64_t packed;
};

/* Bytes of a product's compute copy. On the CPU as its kernels pack it, in panels of columns. */
static tare_status packed_bytes(const struct plan_input *in, int64_t n, int64_t k, int64_t *out, struct err *e)
{
    const bool bf16 = in->config->model.dtype == PRECISION_BF16;
    *out = n * k * (bf16 ? 2 : 4);
    if (in->machine.gpu) return TARE_OK;
    const struct kernels *cpu;
    TRY(kernels_cpu(config_kernels(in->config), &cpu, e));
    *out = cpu->packed_bytes(n, k, bf16 ? DTYPE_BF16 : DTYPE_F32);
    return TARE_OK;
}

static tare_status packed_all(const struct plan_input *in, int64_t *out, struct err *e)
{
    const struct model_shape *s = &in->shape;
    const int64_t C = s->hidden, q = s->heads * s->head_dim, F = s->intermediate;
    const int64_t n[4] = {stride(s), C, 2 * F, C}, k[4] = {C, q, C, F};
    int64_t bytes;
    TRY(packed_bytes(in, s->vocab, C, out, e));
    for (int i = 0; i < 4; i++) {
        TRY(packed_bytes(in, n[i], k[i], &bytes, e));
        *out += s->layers * bytes;
    }
    return TARE_OK;
}

static void measure_layout(const struct model *m, struct sizes *out)
{
    const int64_t L = m->shape.layers;
    for (int64_t u = 0; u < L + 2; u++) {
        const int64_t unit = m->unit_begin[u + 1] - m->unit_begin[u];
        int64_t *most = u == 0 ? &out->first : u == L + 1 ? &out->last : &out->layer;
        *most = larger(*most, unit);
    }
    out->unit = larger(out->layer, larger(out->first, out->last));
    out->ends = m->shape.tied ? out->first : larger(out->first, out->last);
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const int64_t n = m->tensors[i].rows * m->tensors[i].cols;
        out->tensor = larger(out->tensor, n);
        out->count += n;
        if (m->tensors[i].vector) out->vectors += n;
    }
    out->params = m->n_params;
    out->own = m->n_own;
}

/* Packed A and B of all layers. */
static tare_status packed_adapters(const struct plan_input *in, const struct model *m, int64_t *out, struct err *e)
{
    int64_t bytes;
    for (int64_t i = 0; i < 4 * m->shape.layers; i++) {
        const struct lora_group *g = &m->lora->groups[i];
        if (!g->n) continue;
        TRY(packed_bytes(in, g->rows, g->k, &bytes, e));
        *out += bytes;
        for (int j = 0; j < g->n; j++) {
            TRY(packed_bytes(in, g->part[j].n, m->lora->spec.rank, &bytes, e));
            *out += bytes;
        }
    }
    return TARE_OK;
}

/* The adapters' layout in place of the base's, which is copied and not trained: packed products, the table of the embedding, vectors. */
static tare_status measure_adapters(const struct plan_input *in, const struct lora_spec *spec, struct sizes *z, struct err *e)
{
    const struct kernels *cpu;
    TRY(kernels_cpu(NULL, &cpu, e));
    struct model m = {.shape = in->shape, .ranks = (int)in->ranks, .k = cpu};
    const struct sizes base = *z;
    struct sizes own = {0};
    TRY(lora_new(&m, spec, e));
    tare_status status = layout_make_adapters(&m, e);
    if (!status) measure_layout(&m, &own);
    z->trained = own.count, z->params = own.params, z->own = own.own, z->layer = own.layer;
    z->first = z->last = z->ends = 0;
    z->tensor = base.unit; /* a unit is read at a time */
    if (!status) status = packed_adapters(in, &m, &z->packed, e);
    layout_free(&m);
    lora_free(&m);
    return status;
}

/* The flat layout itself, without the buffers. */
static tare_status measure(const struct plan_input *in, struct sizes *out, struct err *e)
{
    struct model m = {.shape = in->shape, .ranks = (int)in->ranks};
    struct lora_spec spec;
    *out = (struct sizes){0};
    const tare_status status = layout_make(&m, e);
    if (!status) measure_layout(&m, out);
    layout_free(&m);
    TRY(status);
    TRY(packed_all(in, &out->packed, e));
    out->trained = out->count;
    out->base_params = out->params, out->base_packed = out->packed;
    TRY(lora_spec_of(in->config, &spec, e));
    return spec.rank ? measure_adapters(in, &spec, out, e) : TARE_OK;
}

/* What is there from the start to the end. */
static void fill_lasting(const struct plan_input *in, const struct sizes *z, int64_t b[PLAN_CLASSES])
{
    const bool parted = in->ranks > 1 && in->shard == SHARD_ZERO3;
    b[PLAN_WEIGHTS] = F32 * (parted ? z->own : z->params);
    b[PLAN_GRADIENTS] = F32 * z->own;
    b[PLAN_MOMENTS] = 2 * F32 * (in->shard == SHARD_NONE ? z->params : z->own);
    b[PLAN_SAMPLER] = z->packed + positions_bytes(&in->shape);
    if (in->config->lora.rank)
        b[PLAN_SAMPLER] += F32 * (in->shape.vocab * in->shape.hidden + z->vectors);
    else if (parted)
        b[PLAN_SAMPLER] += F32 * (z->first + z->vectors);
    /* weights: two layers and the last unit; gradients: the unit of the head or the embedding, a layer (between GPUs two: one is sent while the next is
     * computed), and what the ranks send of one */
    const bool overlaps = in->machine.gpu && in->ranks > 1 && in->config->dist.communicator != COMMUNICATOR_MPI;
    b[PLAN_GATHERED] = F32 * ((parted ? 2 * z->layer + z->last : 0) + z->ends + (overlaps ? 2 : 1) * z->layer +
                              (in->ranks > 1 ? larger(z->ends, z->layer) : 0));
}

/* ---- the update */

/* Rows and targets that the largest micro-batch of `groups` groups can have, whatever the lengths up to P and T: as many as there are, or
 * train.micro_tokens, or one rollout that is longer. */
static void micro_batch(const struct config *c, int64_t groups, int64_t p, int64_t t, int64_t *rows, int64_t *targets)
{
    const int64_t rollouts = groups * c->rollout.group_size, prompts = c->train.prompt_sharing ? groups : rollouts;
    const int64_t most = larger(c->train.micro_tokens, p + t - 1);
    *rows = smaller(prompts * p + rollouts * (t - 1), most);
    *targets = smaller(rollouts * t, *rows + rollouts); /* the last token of a completion is a target and no row */
}

/* Floats of a row in one layer: n1, qkv, attention, x2, gate | up, act; the backward pass also wants n2, both rms, the softmax's m and l, and
 * with Qwen3's norms the raw qkv and an rms a head. */
static int64_t layer_row(const struct model_shape *s, bool training)
{
    const int64_t C = s->hidden, row = 2 * C + stride(s) + s->heads * s->head_dim + 3 * s->intermediate;
    if (!training) return row;
    return row + C + 2 + 2 * s->heads + (s->qk_norm ? stride(s) + s->heads + s->kv_heads : 0);
}

int64_t plan_activation_bytes(const struct model_shape *s, int64_t rows, int64_t targets, bool recompute)
{
    const int64_t C = s->hidden, F = s->intermediate, L = s->layers, q = s->heads * s->head_dim;
    const int64_t forward = (L + 1) * C + (recompute ? 1 : L) * layer_row(s, true);
    const int64_t backward = 2 * C + larger(2 * F, stride(s)) + larger(F, s->qk_norm ? stride(s) : q);
    const int64_t head = 4 * C + 1; /* hidden, dhidden, the final norm's input with its rms, and the gradient of that */
    return F32 * (rows * (forward + backward) + targets * head);
}

/* The rows that adapters are computed in, once for all layers. */
static int64_t adapter_bytes(const struct plan_input *in, int64_t rows)
{
    const int64_t rank = in->config->lora.rank;
    return rank ? F32 * rows * lora_row_floats(&in->shape, rank) : 0;
}

/* Keys and values are fp32 on the CPU; a GPU keeps them in the precision of its products. */
static int64_t token_bytes(const struct plan_input *in, int64_t layers)
{
    const bool half = in->machine.gpu && in->config->model.dtype == PRECISION_BF16;
    return layers * 2 * in->shape.kv_heads * in->shape.head_dim * (half ? 2 : F32);
}

/* The cache of `rows` tokens in `layers` layers, with the quarter more that the update reserves. */
static int64_t pass_cache(const struct plan_input *in, int64_t layers, int64_t rows)
{
    const int64_t blocks = kv_blocks_for(rows);
    return (blocks + blocks / 4) * KV_BLOCK * token_bytes(in, layers);
}

static bool exact_kl(const struct plan_input *in)
{
    const struct loss_config *l = &in->config->loss;
    return (l->kl_coef > 0 && l->kl == KL_EXACT) || (in->objective_needs & TARE_OBJECTIVE_KL);
}

static int64_t batch_of(const struct plan_input *in, int64_t groups)
{
    const struct config *c = in->config;
    return smaller(c->rollout.batch ? c->rollout.batch : AUTO_BATCH, groups * c->rollout.group_size);
}

/* A chunk of the update's head, and the sampler's rows; a GPU also decodes several tokens ahead, on rows of its own. */
static int64_t logits_bytes(const struct plan_input *in, int64_t groups)
{
    const int64_t V = in->shape.vocab, fit = (in->machine.gpu ? DEVICE_LOGITS_FLOATS : HOST_LOGITS_FLOATS) / V;
    const int64_t rows = smaller(larger(fit, HEAD_ROWS_LEAST), HEAD_ROWS_MOST),
                  decoder = in->machine.gpu ? batch_of(in, groups) + DECODER_ROWS : 0;
    return F32 * (rows * (V * (exact_kl(in) ? 2 : 1) + HEAD_ROW) + V * (LOGIT_ROWS + decoder));
}

/* What a GPU's products take beside: rounded copies of activations or of the head, the library's workspace. */
static int64_t working_bytes(const struct plan *p)
{
    const struct model_shape *s = &p->in.shape;
    if (!p->in.machine.gpu) return 0;
    return WORKSPACE + 2 * larger(p->micro_rows * (2 * s->intermediate + s->hidden), s->vocab * s->hidden);
}

static int64_t reference_bytes(const struct plan *p, const struct sizes *z)
{
    const struct config *c = p->in.config;
    const struct model_shape *s = &p->in.shape;
    const uint32_t needs = p->in.objective_needs;
    const bool reference = c->loss.kl_coef > 0 || (needs & (TARE_OBJECTIVE_REFERENCE | TARE_OBJECTIVE_KL));
    const bool forward_only = reference || c->loss.old_logprobs == OLD_RECOMPUTE || (needs & TARE_OBJECTIVE_PASS);
    int64_t bytes = forward_only ? pass_cache(&p->in, s->layers, p->micro_rows) : 0;
    /* the base with its adapters off is the reference, unless another one is named */
    const bool shared = c->lora.rank && !*c->model.reference;
    if (reference && !shared) bytes += z->base_params * F32 + z->base_packed + positions_bytes(s);
    if (exact_kl(&p->in)) bytes += F32 * (p->micro_rows * (s->hidden + layer_row(s, false)) + p->micro_targets * s->hidden);
    return bytes;
}

/* ---- sampling */

static int64_t prompts_of(const struct plan_input *in, int64_t rank)
{
    const int64_t M = in->config->rollout.prompts;
    return M / in->ranks + (rank < M % in->ranks);
}

/* Blocks that `groups` prompts with `samples` completions each want, by the sampler's own scheduler; alone: one completion. */
static tare_status wanted_blocks(const struct plan *p, int64_t groups, int64_t samples, int64_t new_tokens, int64_t *wanted,
                                 int64_t *alone, struct err *e)
{
    const struct config *c = p->in.config;
    struct scheduler s = {0};
    struct sample_request *requests;
    struct arena a;
    tare_status status;
    arena_init(&a, "plan");
    TRY_TO(status, done, arena_new(&a, struct sample_request, groups, &requests, e));
    for (int64_t i = 0; i < groups; i++)
        requests[i] = (struct sample_request){.prompt_len = p->prompt_tokens, .n_samples = samples};
    TRY_TO(status, done, scheduler_plan(&s, requests, groups, new_tokens, p->in.shape.max_position, rng_key(0, RNG_TRAIN), &a, e));
    const int64_t batch = c->rollout.batch ? c->rollout.batch : AUTO_BATCH;
    *wanted = scheduler_batch_need(&s, smaller(batch, s.n_seqs));
    *alone = scheduler_group_need(&s.groups[0]);
done:
    arena_free(&a);
    return status;
}

/* The sampler's rule (rollout/sampler.c): what was asked for; or what the batch wants and an eighth more, at most a quarter of a host's memory or half
 * of what a GPU has left when it samples first, at least one completion. */
static int64_t cache_blocks(const struct plan *p, int64_t lasting, int64_t wanted, int64_t alone)
{
    const struct plan_input *in = &p->in;
    const struct plan_machine *m = &in->machine;
    if (in->config->rollout.kv_tokens) return kv_blocks_for(in->config->rollout.kv_tokens);
    int64_t n = wanted + wanted / 8;
    const double most = m->gpu ? fmax(0, (m->memory - m->reserve - (double)lasting) / 2) : m->memory / 4;
    if (m->memory > 0) n = smaller(n, (int64_t)(most / (double)(p->kv_token_bytes * KV_BLOCK)));
    return larger(n, alone);
}

static tare_status plan_cache(struct plan *p, int64_t lasting, struct err *e)
{
    const struct config *c = p->in.config;
    const int64_t G = c->rollout.group_size, groups = larger(prompts_of(&p->in, 0), 1);
    int64_t wanted, alone;
    p->kv_token_bytes = token_bytes(&p->in, p->in.shape.layers);
    TRY(wanted_blocks(p, groups, G, p->new_tokens, &wanted, &alone, e));
    int64_t blocks = cache_blocks(p, lasting, wanted, alone);
    p->kv_wanted = wanted * KV_BLOCK;
    const int64_t prefix = kv_blocks_for(p->prompt_tokens), own = alone - p->prompt_tokens / KV_BLOCK;
    if (c->eval.every || c->eval.before || c->eval.after) {
        const int64_t rows = c->eval.rows && c->eval.rows < EVAL_ROWS ? c->eval.rows : EVAL_ROWS;
        const int64_t longest = c->eval.max_new_tokens ? c->eval.max_new_tokens : c->rollout.max_new_tokens;
        TRY(wanted_blocks(p, (rows + p->in.ranks - 1) / p->in.ranks, c->eval.samples, longest, &wanted, &alone, e));
        const int64_t more = wanted > blocks ? cache_blocks(p, lasting, wanted, alone) : blocks;
        p->kv_for_eval = more > blocks;
        if (p->kv_for_eval) blocks = more;
    }
    p->kv_tokens = blocks * KV_BLOCK;
    const int64_t group = prefix + G * own, rest = blocks % group;
    p->kv_sequences = blocks / group * G + (rest > prefix ? (rest - prefix) / own : 0);
    return TARE_OK;
}

/* The sampler's forward pass: a prefill of prompts, or a row a running completion. */
static int64_t prefill_bytes(const struct plan *p, int64_t groups)
{
    const struct model_shape *s = &p->in.shape;
    const int64_t batch = batch_of(&p->in, groups), decoder = p->in.machine.gpu ? batch + DECODER_ROWS : 0;
    const int64_t rows = larger(smaller(groups * p->prompt_tokens, PREFILL_ROWS), batch) + decoder;
    return F32 * (rows * (s->hidden + layer_row(s, false)) + (batch + decoder) * s->hidden) + adapter_bytes(&p->in, rows);
}

/* ---- a rank */

static void fill_rank(const struct plan *p, const struct sizes *z, int64_t rank, struct plan_rank *out)
{
    const struct plan_input *in = &p->in;
    const int64_t groups = prompts_of(in, rank), G = in->config->rollout.group_size;
    const bool recompute = in->config->train.recompute == RECOMPUTE_LAYER;
    int64_t *b = out->bytes;
    *out = (struct plan_rank){.groups = groups};
    fill_lasting(in, z, b);
    b[PLAN_REFERENCE] = reference_bytes(p, z);
    b[PLAN_KV] = p->kv_tokens * p->kv_token_bytes;
    b[PLAN_ACTIVATIONS] = plan_activation_bytes(&in->shape, p->micro_rows, p->micro_targets, recompute) +
                          pass_cache(in, 1, p->micro_rows) + adapter_bytes(in, p->micro_rows);
    b[PLAN_LOGITS] = logits_bytes(in, groups);
    b[PLAN_WORKING] = working_bytes(p);
    b[PLAN_PREFILL] = prefill_bytes(p, groups);
    b[PLAN_STAGING] = F32 * z->tensor + p->new_tokens * G * (LOG_BYTES * groups + BATCH_BYTES * in->config->rollout.prompts);
    for (int i = 0; i < PLAN_CLASSES; i++) *(i == PLAN_STAGING && in->machine.gpu ? &out->host : &out->device) += b[i];
    if (in->machine.gpu) out->device += b[PLAN_MARGIN] = out->device / MARGIN_PART + MARGIN;
    out->total = out->device + out->host;
}

static void judge(struct plan *p)
{
    const struct plan_machine *m = &p->in.machine;
    const double on_a_host = ceil((double)p->in.ranks / (double)p->in.hosts);
    p->need = m->gpu ? (double)p->first.device : (double)p->first.total * on_a_host;
    p->budget = m->memory - m->reserve;
    p->fits = m->memory > 0 ? p->need <= p->budget : -1;
    const double room = (p->budget - p->need) / (m->gpu ? 1 : on_a_host) / (double)p->kv_token_bytes;
    p->kv_room =
        m->memory > 0 && (double)p->kv_tokens + room > 0 ? (int64_t)((double)p->kv_tokens + room) / KV_BLOCK * KV_BLOCK : 0;
}

tare_status plan_memory(struct plan *p, struct err *e)
{
    const struct config *c = p->in.config;
    const int64_t context = p->in.shape.max_position;
    struct sizes z;
    p->prompt_tokens = smaller(c->rollout.max_prompt_tokens, context - 1);
    p->new_tokens = smaller(c->rollout.max_new_tokens, context - p->prompt_tokens);
    p->longest = p->prompt_tokens + p->new_tokens - 1;
    TRY(measure(&p->in, &z, e));
    p->params = z.count;
    p->trained = z.trained;
    p->flat = z.params;
    p->piece = z.own;
    p->layer_floats = z.params - z.first - z.last;
    p->packed_bytes = z.packed;
    int64_t lasting[PLAN_CLASSES] = {0}, sum = 0;
    fill_lasting(&p->in, &z, lasting);
    for (int i = 0; i < PLAN_CLASSES; i++) sum += lasting[i];
    TRY(plan_cache(p, sum, e));
    const int64_t of_minibatch = c->train.minibatch / c->rollout.group_size, shards = p->in.gradient_shards;
    micro_batch(c, (of_minibatch + shards - 1) / shards, p->prompt_tokens, p->new_tokens, &p->micro_rows, &p->micro_targets);
    fill_rank(p, &z, 0, &p->first);
    fill_rank(p, &z, p->in.ranks - 1, &p->last);
    judge(p);
    return TARE_OK;
}
