/* Computes memory by class and rank, the cache's capacity, and whether the run fits. counted.c
 * counts the buffers. */
#include "batch/batch.h"
#include "plan/plan.h"
#include "rollout/kv_blocks.h"

#include <math.h>

/* bytes that a GPU's libraries allocate; an estimate */
enum { WORKSPACE = 128000000 };
/* Bytes that NCCL takes when a communicator is opened, and for each peer that it exchanges data with, at
 * the 8 channels that gpu_start_settings chooses. Eight H100 were reported to use 1.06 GB after opening and
 * 4.34 GB after the first all_to_all with 32 channels to each of 7 peers: 14.6 MB a channel. */
/* Peers that are counted: those of a host of eight. Other hosts are reached through few channels. */
enum { NCCL_PEERS = 7 };
#define NCCL_OPEN 1.06e9
#define NCCL_PEER (8 * 14.6e6)
/* margin of a GPU's region: these bytes plus 1/32 of its content */
enum { MARGIN = 64 << 20, MARGIN_PART = 32 };
/* The constants of kernels/cuda/matmul_chain.cu. */
enum { CHAIN_ROWS = 32, CHAIN_TILE = 128, CHAIN_STEP = 32, CHAIN_BLOCKS = 264, CHAIN_LEAST = 8 };
enum { CHAIN_PROCESSORS = 132, CHAIN_SUM = 20 };

static int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t prompts_of(const struct plan_input *in, int64_t rank)
{
    const int64_t M = in->config->rollout.prompts;
    return M / in->ranks + (rank < M % in->ranks);
}

/* In batch_invariant mode K of a bf16 product is split into slices (cut_of and apart in
 * kernels/cuda/matmul_chain.cu). */
struct chain {
    int64_t slices, steps; /* steps of each slice */
};

static struct chain chain_of(int64_t n, int64_t k)
{
    const int64_t steps = (k + CHAIN_STEP - 1) / CHAIN_STEP, columns = (n + CHAIN_TILE - 1) / CHAIN_TILE,
                  wanted = (CHAIN_BLOCKS + columns - 1) / columns, slice = (steps + wanted - 1) / wanted,
                  own = slice > CHAIN_LEAST ? slice : CHAIN_LEAST;
    return (struct chain){(steps + own - 1) / own, own};
}

/* Return true if a separate launch adds the sums of the slices. */
static bool chain_apart(int64_t t, int64_t n, int64_t k)
{
    const struct chain cut = chain_of(n, k);
    const int64_t tiles = (t + CHAIN_TILE - 1) / CHAIN_TILE * ((n + CHAIN_TILE - 1) / CHAIN_TILE);
    return cut.slices > 1 && (t <= CHAIN_ROWS || cut.steps * (CHAIN_PROCESSORS - tiles) > CHAIN_SUM * tiles);
}

/* Return the most bytes that the sums of the slices of a product with W [n, k] take, for any number
 * of rows. */
static int64_t chain_bytes(int64_t n, int64_t k)
{
    int64_t t = CHAIN_PROCESSORS * CHAIN_TILE; /* with more rows K is not split */
    while (t > CHAIN_ROWS && !chain_apart(t, n, k)) t = t > CHAIN_TILE ? (t - 1) / CHAIN_TILE * CHAIN_TILE : CHAIN_ROWS;
    return chain_apart(t, n, k) ? chain_of(n, k).slices * t * n * (int64_t)sizeof(float) : 0;
}

/* Return the bytes of the largest product's slice sums, 0 unless batch_invariant. */
static int64_t slice_sums_bytes(const struct plan *p)
{
    const struct model_shape *s = &p->in.shape;
    const int64_t q = s->heads * s->head_dim, stride = q + 2 * s->kv_heads * s->head_dim;
    const int64_t products[][2] = {
        {stride, s->hidden}, {s->hidden, q}, {2 * s->intermediate, s->hidden}, {s->hidden, s->intermediate}, {s->vocab, s->hidden}};
    int64_t most = 0;
    if (p->in.config->run.deterministic != DETERMINISTIC_BATCH_INVARIANT || p->in.config->model.dtype != PRECISION_BF16) return 0;
    for (int i = 0; i < (int)(sizeof products / sizeof *products); i++)
        most = larger_of(most, chain_bytes(products[i][0], products[i][1]));
    return most;
}

/* Return the working memory of a GPU's operations, which the backend takes from its own region:
 * rounded copies of q, k, v and of attention's output (with adapters also of gate and up), partial
 * sums of attention's gradient (at most 1 MiB per element of a head), the head, the library's
 * workspace, and the sums of slices. */
static int64_t working_bytes(const struct plan *p)
{
    const struct model_shape *s = &p->in.shape;
    const int64_t q = s->heads * s->head_dim, stride = q + 2 * s->kv_heads * s->head_dim;
    if (!p->in.machine.gpu) return 0;
    const int64_t attention = q + larger_of(stride, s->hidden) + 2 * s->heads,
                  row = p->in.config->lora.rank ? larger_of(attention, 2 * s->intermediate + s->hidden) : attention;
    return WORKSPACE + slice_sums_bytes(p) + (s->head_dim << 20) + 2 * larger_of(p->micro_rows * row, s->vocab * s->hidden);
}

/* Return host memory: the buffer that the model is read through, the sampler's log, and the step's
 * batch, which every rank holds in full. */
static int64_t staging_bytes(const struct plan *p, const struct plan_counted *x, int64_t groups)
{
    const struct config *c = p->in.config;
    const int64_t M = c->rollout.prompts, N = M * c->rollout.group_size;
    const struct batch whole = {
        .n_groups = M, .n_rollouts = N, .n_tokens = N * p->new_tokens, .n_prompt_tokens = M * p->prompt_tokens, .n_components = 1};
    return x->staging + 2 * x->drawn * groups * c->rollout.group_size * p->new_tokens + batch_bytes(&whole);
}

static void fill_rank(const struct plan *p, const struct plan_counted *x, int64_t groups, struct plan_rank *out)
{
    const bool gpu = p->in.machine.gpu;
    int64_t *b = out->bytes;
    *out = (struct plan_rank){.groups = groups};
    for (int i = 0; i < PLAN_CLASSES; i++) b[i] = x->bytes[i];
    b[PLAN_WORKING] = working_bytes(p);
    b[PLAN_STAGING] = staging_bytes(p, x, groups);
    for (int i = 0; i < PLAN_CLASSES; i++) out->total += b[i];
    out->host = gpu ? b[PLAN_STAGING] : 0;
    out->device = out->total - out->host;
    if (gpu) b[PLAN_MARGIN] = out->device / MARGIN_PART + MARGIN;
    out->device += b[PLAN_MARGIN];
    out->total = out->device + out->host;
}

double plan_nccl(const struct plan_input *in)
{
    if (!in->machine.gpu || in->machine.opened || !(in->machine.memory > 0) || in->ranks < 2 ||
        in->config->dist.communicator == COMMUNICATOR_MPI)
        return 0;
    return NCCL_OPEN + NCCL_PEER * (double)smaller_of(in->ranks - 1, NCCL_PEERS);
}

static void check_fit(struct plan *p)
{
    const struct plan_machine *m = &p->in.machine;
    const double on_a_host = ceil((double)p->in.ranks / (double)p->in.hosts);
    p->need = m->gpu ? (double)p->first.device : (double)p->first.total * on_a_host;
    p->nccl = plan_nccl(&p->in);
    p->budget = m->memory - m->reserve - p->nccl;
    p->fits = m->memory > 0 ? p->need <= p->budget : -1;
    const double free_tokens = (p->budget - p->need) / (m->gpu ? 1 : on_a_host) / (double)p->kv_token_bytes;
    p->kv_free = m->memory > 0 && (double)p->kv_tokens + free_tokens > 0
                     ? (int64_t)((double)p->kv_tokens + free_tokens) / KV_BLOCK * KV_BLOCK
                     : 0;
}

static void copy_counts(struct plan *p, const struct plan_counted *x)
{
    const int64_t G = p->in.config->rollout.group_size, prefix = kv_blocks_for(p->prompt_tokens);
    const int64_t own = x->train.alone - p->prompt_tokens / KV_BLOCK, group = prefix + G * own, rest = x->kv_blocks % group;
    p->params = x->params;
    p->trained = x->trained;
    p->kv_token_bytes = x->kv_token;
    p->kv_wanted = (x->eval.blocks ? x->eval : x->train).blocks * KV_BLOCK;
    p->kv_eval_rows = x->eval.blocks ? config_eval_rows(p->in.config, p->in.eval_rows) : 0;
    p->kv_tokens = x->kv_blocks * KV_BLOCK;
    p->kv_sequences = x->kv_blocks / group * G + (rest > prefix ? (rest - prefix) / own : 0);
    p->micro_rows = x->rows;
    p->micro_targets = x->targets;
}

tare_status plan_memory(struct plan *p, struct err *e)
{
    const struct config *c = p->in.config;
    const int64_t context = p->in.shape.max_position, most = prompts_of(&p->in, 0), least = prompts_of(&p->in, p->in.ranks - 1);
    struct plan_counted x;
    p->prompt_tokens = smaller_of(c->rollout.max_prompt_tokens, context - 1);
    p->new_tokens = larger_of(1, smaller_of(c->rollout.max_new_tokens, context - p->prompt_tokens));
    p->longest = p->prompt_tokens + p->new_tokens - 1;
    TRY(plan_count(p, most, &x, e));
    copy_counts(p, &x);
    fill_rank(p, &x, most, &p->first);
    if (least != most) {
        const int64_t cache = x.bytes[PLAN_KV];
        TRY(plan_count(p, least, &x, e));
        /* prompts are dealt again every step: any rank may have the most */
        x.bytes[PLAN_KV] = cache;
    }
    fill_rank(p, &x, least, &p->last);
    check_fit(p);
    return TARE_OK;
}
