/* The plan of a configuration, and changes that help when it does not fit. */
#include "plan/plan.h"

#include "base/fs.h"
#include "data/tokenizer.h"
#include "model/adapter.h"
#include "model/hf_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN = 8, RANKS_MOST = 4096, TOKENS_LEAST = 256 };

/* ---- the model's shape */

static tare_status read_shape(const char *path, const struct model_config *c, struct model_shape *out, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    TRY(fs_read_all(path, &text, e));
    TRY(hf_config_shape(text.data, text.size, path, out, e));
    if (c->rope_theta > 0) out->rope_theta = c->rope_theta;
    if (c->max_position_embeddings > 0) out->max_position = c->max_position_embeddings;
    return TARE_OK;
}

/* Return the vocabulary size of the byte tokenizer that a new model gets. */
static tare_status byte_vocabulary(int64_t *out, struct err *e)
{
    char folder[FS_PATH];
    struct tokenizer *t = NULL;
    TRY(fs_temporary(folder, "tare-plan", e));
    if (!mkdtemp(folder)) FAIL(e, TARE_E_IO, "cannot create %s; give plan.vocab", folder);
    tare_status status = tokenizer_write_bytes(folder, e);
    if (!status) status = tokenizer_load(folder, &t, e);
    if (!status) *out = tokenizer_size(t);
    tokenizer_free(t);
    fs_remove_tree(folder, NULL);
    return status;
}

static tare_status new_shape(const struct model_config *c, int64_t vocab, struct model_shape *out, struct err *e)
{
    struct model m = {0};
    if (!vocab) TRY(byte_vocabulary(&vocab, e));
    const tare_status status = hf_config_new(&m, c, vocab, e);
    free(m.config_json);
    *out = m.shape;
    return status;
}

static tare_status shape_of(const struct config *c, int64_t vocab, int depth, struct model_shape *out, struct err *e)
{
    char path[FS_PATH], folder[FS_PATH];
    if (!*c->model.path)
        FAIL(e, TARE_E_CONFIG, "%s: model.path is empty; name a folder with a config.json", config_where(c, "model", "path"));
    TRY(adapter_base(c->model.path, &c->model, folder, e));
    TRY(fs_join(path, folder, "config.json", e));
    if (fs_exists(path)) return read_shape(path, &c->model, out, e);
    if (c->model.init != INIT_NONE) return new_shape(&c->model, vocab, out, e);
    if (!*c->model.warm_start || depth == CHAIN)
        return config_no_model(c, "name the folder of a model; `tare plan` only needs its config.json, as in configs/models", e);
    struct config before;
    TRY(config_load(&before, c->model.warm_start, NULL, 0, e));
    const tare_status status = shape_of(&before, vocab, depth + 1, out, e);
    config_free(&before);
    TRY(status);
    if (c->model.max_position_embeddings > 0) out->max_position = c->model.max_position_embeddings;
    return TARE_OK;
}

tare_status plan_shape(const struct config *c, int64_t vocab, struct model_shape *out, struct err *e)
{
    TRY(adapter_check_base(&c->model, e));
    return shape_of(c, vocab, 0, out, e);
}

/* Read the reference's shape if model.reference names an existing folder. Zero layers: as the
 * policy. */
static tare_status reference_shape(const struct config *c, struct model_shape *out, struct err *e)
{
    char path[FS_PATH];
    if (!*c->model.reference) return TARE_OK;
    TRY(fs_join(path, c->model.reference, "config.json", e));
    return fs_exists(path) ? read_shape(path, &c->model, out, e) : TARE_OK;
}

/* ---- changes that help */

struct change {
    struct config config; /* a copy with changed values */
    struct plan plan;
};

/* Adopt the changed configuration, and add it to the advice if it saves memory. */
static tare_status apply_change(struct change *x, struct plan *out, const char *key, const char *value, struct err *e)
{
    struct plan next = {.in = x->plan.in};
    TRY(plan_memory(&next, e));
    const double saved = (double)x->plan.first.total - (double)next.first.total;
    if (saved > 0 && out->n_advice < PLAN_ADVICE) {
        struct plan_advice *a = &out->advice[out->n_advice++];
        snprintf(a->key, sizeof a->key, "%s", key);
        snprintf(a->value, sizeof a->value, "%s", value);
        a->saves = saved;
    }
    x->plan = next;
    return TARE_OK;
}

static tare_status apply_number(struct change *x, struct plan *out, const char *key, int64_t *number, int64_t value, struct err *e)
{
    char text[32];
    if (x->plan.fits || (*number && *number <= value)) return TARE_OK;
    *number = value;
    snprintf(text, sizeof text, "%lld", (long long)value);
    return apply_change(x, out, key, text, e);
}

/* Choose the first setting of train.recompute that fits, or the last: each saves more and costs
 * more than the one before. */
static tare_status apply_recompute(struct change *x, struct plan *out, struct err *e)
{
    enum recompute *chosen = &x->config.train.recompute;
    if (x->plan.fits || *chosen == RECOMPUTE_LAYER) return TARE_OK;
    for (++*chosen; *chosen < RECOMPUTE_LAYER; ++*chosen) {
        struct plan next = {.in = x->plan.in};
        TRY(plan_memory(&next, e));
        if (next.fits) break;
    }
    return apply_change(x, out, "train.recompute", config_chosen(&x->config, "train", "recompute"), e);
}

/* Apply the changes, cheapest first. The cache comes last and gets the size that fits: with a
 * smaller cache the sampler drops completions and computes them again. */
static tare_status apply_all(struct change *x, struct plan *out, struct err *e)
{
    struct config *c = &x->config;
    if (x->plan.in.ranks > 1 && x->plan.in.shard != SHARD_ZERO3) {
        x->plan.in.shard = SHARD_ZERO3;
        TRY(apply_change(x, out, "dist.shard", "zero3", e));
    }
    TRY(apply_recompute(x, out, e));
    if (!x->plan.fits && c->model.dtype != PRECISION_BF16) {
        c->model.dtype = PRECISION_BF16;
        TRY(apply_change(x, out, "model.dtype", "bf16", e));
    }
    if (x->plan.micro_rows > x->plan.longest)
        TRY(apply_number(x, out, "train.micro_tokens", &c->train.micro_tokens, x->plan.longest, e));
    const int64_t least = (x->plan.longest + KV_BLOCK) / KV_BLOCK * KV_BLOCK;
    const int64_t tokens = x->plan.kv_free > least ? x->plan.kv_free : least;
    if (tokens < x->plan.kv_tokens) TRY(apply_number(x, out, "rollout.kv_tokens", &c->rollout.kv_tokens, tokens, e));
    return TARE_OK;
}

/* Plan x on `ranks` ranks (CPU: on proportionally more hosts) with completions of at most t tokens
 * and the smallest cache and micro-batches that these allow. */
static tare_status try_ranks(const struct change *x, int64_t ranks, int64_t t, struct plan *out, struct err *e)
{
    struct config c = x->config;
    *out = (struct plan){.in = x->plan.in};
    out->in.config = &c;
    out->in.ranks = ranks;
    out->in.shard = SHARD_ZERO3;
    if (!out->in.machine.gpu) out->in.hosts = ranks * x->plan.in.hosts / x->plan.in.ranks;
    if (t) {
        c.rollout.max_new_tokens = t;
        c.train.micro_tokens = x->plan.prompt_tokens + t;
        c.rollout.kv_tokens = x->plan.prompt_tokens + t + KV_BLOCK;
    }
    return plan_memory(out, e);
}

/* Record the attempt; return true if it fits. */
static bool record_attempt(const struct plan *tried, int64_t tokens, struct plan *out)
{
    out->ranks_needed = tried->in.ranks;
    out->hosts_needed = tried->in.machine.gpu ? 0 : tried->in.hosts;
    out->tokens_needed = tokens;
    return tried->fits;
}

/* Plan x with the configuration c on one rank per host: ranks of a CPU share their host's
 * memory. */
static tare_status try_one_a_host(const struct change *x, const struct config *c, struct plan *out, struct err *e)
{
    *out = (struct plan){.in = x->plan.in};
    out->in.config = c;
    out->in.ranks = out->in.hosts;
    return plan_memory(out, e);
}

static bool shares_hosts(const struct plan *p)
{
    return !p->in.machine.gpu && p->in.ranks > p->in.hosts;
}

/* On CPUs try fewer ranks first. Then double the ranks until it fits. If it never does, halve the
 * number of tokens, repeatedly. */
static tare_status find_ranks(const struct change *x, struct plan *out, struct err *e)
{
    struct plan next;
    if (shares_hosts(&x->plan)) {
        TRY(try_one_a_host(x, &x->config, &next, e));
        if (record_attempt(&next, 0, out)) return TARE_OK;
    }
    for (int64_t ranks = 2 * x->plan.in.ranks; ranks <= RANKS_MOST; ranks *= 2) {
        TRY(try_ranks(x, ranks, 0, &next, e));
        if (record_attempt(&next, 0, out)) return TARE_OK;
    }
    for (int64_t ranks = x->plan.in.ranks; ranks <= RANKS_MOST; ranks *= 2)
        for (int64_t t = x->plan.new_tokens / 2; t >= TOKENS_LEAST; t /= 2) {
            TRY(try_ranks(x, ranks, t, &next, e));
            if (record_attempt(&next, t, out)) return TARE_OK;
        }
    out->ranks_needed = out->hosts_needed = out->tokens_needed = 0;
    return TARE_OK;
}

/* Try adapters instead of all weights. This is a different method, so it is reported apart from the
 * advice. */
static tare_status try_adapters(const struct change *x, struct plan *out, struct err *e)
{
    struct config c = x->config;
    struct plan next = {.in = x->plan.in};
    if (c.lora.rank || c.model.init != INIT_NONE) return TARE_OK;
    next.in.config = &c;
    c.lora.rank = PLAN_ADAPTER_RANK;
    TRY(plan_memory(&next, e));
    if (!next.fits && shares_hosts(&x->plan)) TRY(try_one_a_host(x, &c, &next, e));
    if (!next.fits) return TARE_OK;
    out->adapters_need = next.need;
    out->adapters_ranks = next.in.ranks;
    return TARE_OK;
}

static tare_status find_advice(struct plan *out, struct err *e)
{
    struct change x = {.config = *out->in.config, .plan = *out};
    x.plan.in.config = &x.config;
    TRY(apply_all(&x, out, e));
    out->fits_with_advice = x.plan.fits;
    if (x.plan.fits) return TARE_OK;
    TRY(try_adapters(&x, out, e));
    return find_ranks(&x, out, e);
}

tare_status plan_make(const struct plan_input *in, struct plan *out, struct err *e)
{
    *out = (struct plan){.in = *in};
    if (in->ranks < 1 || in->hosts < 1 || in->hosts > in->ranks)
        FAIL(e, TARE_E_CONFIG, "%lld ranks on %lld hosts: must be at least 1 of each, and at most one host per rank",
             (long long)in->ranks, (long long)in->hosts);
    TRY(reference_shape(in->config, &out->in.reference, e));
    TRY(plan_memory(out, e));
    return out->fits == 0 ? find_advice(out, e) : TARE_OK;
}
