/* Forward and backward over groups, one micro-batch at a time: pack, run the layers, then the head
 * in chunks of rows, so that logits exist for one chunk only. A chunk's loss gradient follows from
 * its logprobs, so the head is run once. */
#include "update/microbatch.h"
#include "update/update.h"

#include "batch/turns.h"
#include "dist/balance.h"
#include "model/pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 1024, ROWS_LEAST = 16 };

/* The packing of a micro-batch: parts of groups (a prompt and some of its rollouts), and the token
 * of b that each head row predicts. */
struct packing {
    struct pack_group *parts;
    int64_t n_parts;
    int64_t *token; /* [n_targets] index into b->ids */
    int64_t n_tokens;
    struct packed_batch packed;
};

static bool takes_part(const struct microbatch_job *j, int64_t rollout)
{
    return !j->rollout_weight || j->rollout_weight[rollout] > 0;
}

/* Number of rows that a rollout adds: all its tokens but the last, which is only a target. */
static int64_t rows_of(const struct batch *b, int64_t rollout)
{
    return b->token_begin[rollout + 1] - b->token_begin[rollout] - 1;
}

static bool is_zero(const struct microbatch_job *j, int64_t rollout)
{
    return j->zero && j->zero[rollout];
}

/* ---------------------------------------------------------------- splitting into micro-batches */

/* Groups are distributed to shards, each shard is split into micro-batches of train.micro_tokens
 * rows, and the first micro-batches of all shards come before the second ones. The order, and with
 * it every sum of gradients, does not depend on the number of ranks. Consecutive micro-batches are
 * about equally long, and micro-batch i goes to rank i mod R. */
struct micro {
    int64_t begin, end; /* range of cut.rollout */
    int64_t round;      /* index of the micro-batch in its shard */
};

struct cut {
    int64_t *rollout, *group; /* [n_rollouts] rollouts to compute, and their groups */
    struct micro *micro;
    int64_t n;
};

static int64_t prompt_of(const struct batch *b, int64_t group)
{
    return b->prompt_begin[group + 1] - b->prompt_begin[group];
}

static tare_status deal_groups(struct trainer *t, const struct microbatch_job *j, int64_t shards, int64_t *shard_of, struct err *e)
{
    const struct batch *b = j->b;
    int64_t *cost;
    TRY(arena_new(&t->work, &cost, j->n_groups, e));
    for (int64_t k = 0; k < j->n_groups; k++) {
        const int64_t g = j->groups[k];
        for (int64_t i = b->group_begin[g]; i < b->group_begin[g + 1]; i++)
            if (takes_part(j, i)) cost[k] += rows_of(b, i) + (cost[k] && t->train->prompt_sharing ? 0 : prompt_of(b, g));
    }
    return balance(cost, j->n_groups, shards, shard_of, &t->work, e);
}

/* Cuts a shard: a micro-batch takes rollouts until the next would exceed the budget, at least one.
 * A group cut in two has its prompt computed in both. Rollouts that are left out count in the
 * budget, so the others are cut as if they were there. */
static void cut_shard(const struct trainer *t, const struct microbatch_job *j, const int64_t *shard_of, int64_t shard,
                      struct cut *c, int64_t *taken)
{
    const struct batch *b = j->b;
    const bool leaves_out = j->zero && j->m->k->row_chains && j->m->dtype == DTYPE_F32;
    struct micro *m = NULL;
    int64_t rows = 0, round = 0;
    for (int64_t k = 0; k < j->n_groups; k++) {
        const int64_t g = j->groups[k];
        bool open = false; /* the group's prompt is in m */
        if (shard_of[k] == shard)
            for (int64_t i = b->group_begin[g]; i < b->group_begin[g + 1]; i++) {
                if (!takes_part(j, i)) continue;
                int64_t cost = rows_of(b, i) + (open && t->train->prompt_sharing ? 0 : prompt_of(b, g));
                if (!m || rows + cost > t->train->micro_tokens) {
                    m = &c->micro[c->n++];
                    *m = (struct micro){.begin = *taken, .end = *taken, .round = round++};
                    cost = rows_of(b, i) + prompt_of(b, g);
                    rows = 0;
                }
                rows += cost;
                open = true;
                if (leaves_out && is_zero(j, i)) continue;
                c->rollout[*taken] = i;
                c->group[*taken] = g;
                m->end = ++*taken;
            }
    }
}

static bool has_gradient(const struct microbatch_job *j, const struct cut *c, const struct micro *m)
{
    for (int64_t k = m->begin; k < m->end; k++)
        if (!is_zero(j, c->rollout[k])) return true;
    return false;
}

static void mark_left_out(const struct microbatch_job *j, const struct cut *c)
{
    const struct batch *b = j->b;
    for (int64_t g = 0; g < j->n_groups; g++)
        for (int64_t i = b->group_begin[j->groups[g]]; i < b->group_begin[j->groups[g] + 1]; i++) j->left_out[i] = takes_part(j, i);
    for (int64_t i = 0; i < c->n; i++)
        for (int64_t k = c->micro[i].begin; k < c->micro[i].end; k++) j->left_out[c->rollout[k]] = 0;
}

static tare_status cut_job(struct trainer *t, const struct microbatch_job *j, int64_t shards, struct cut *out, struct err *e)
{
    const int64_t most = j->b->n_rollouts;
    struct cut c = {0};
    int64_t *shard_of, taken = 0, rounds = 0;
    *out = (struct cut){0};
    TRY(arena_new(&t->work, &shard_of, j->n_groups, e));
    TRY(arena_new(&t->work, &c.rollout, most, e));
    TRY(arena_new(&t->work, &c.group, most, e));
    TRY(arena_new(&t->work, &c.micro, most, e));
    TRY(arena_new(&t->work, &out->micro, most, e));
    TRY(deal_groups(t, j, shards, shard_of, e));
    for (int64_t s = 0; s < shards; s++) cut_shard(t, j, shard_of, s, &c, &taken);
    for (int64_t i = 0; i < c.n; i++)
        if (c.micro[i].round >= rounds) rounds = c.micro[i].round + 1;
    for (int64_t r = 0; r < rounds; r++)
        for (int64_t i = 0; i < c.n; i++)
            if (c.micro[i].round == r && has_gradient(j, &c, &c.micro[i])) out->micro[out->n++] = c.micro[i];
    out->rollout = c.rollout;
    out->group = c.group;
    if (j->zero) mark_left_out(j, out);
    return TARE_OK;
}

static tare_status pack_micro(struct trainer *t, const struct microbatch_job *j, const struct cut *c, const struct micro *m,
                              struct packing *p, struct err *e)
{
    const struct batch *b = j->b;
    struct arena *a = &t->pack;
    const int64_t n = m->end - m->begin;
    const int32_t **completion;
    const uint8_t **sampled = NULL;
    int64_t *length, tokens = 0;
    struct pack_group *part = NULL;
    arena_reset(a);
    *p = (struct packing){0};
    TRY(arena_new(a, &p->parts, n, e));
    TRY(arena_new(a, &completion, n, e));
    TRY(arena_new(a, &length, n, e));
    if (b->sampled) TRY(arena_new(a, &sampled, n, e));
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = c->rollout[m->begin + k], g = c->group[m->begin + k];
        if (!k || g != c->group[m->begin + k - 1]) {
            part = &p->parts[p->n_parts++];
            *part = (struct pack_group){.prompt = b->prompt_ids + b->prompt_begin[g],
                                        .prompt_len = prompt_of(b, g),
                                        .completion = completion + k,
                                        .completion_len = length + k,
                                        .sampled = sampled ? sampled + k : NULL};
        }
        part->n++;
        completion[k] = b->ids + b->token_begin[i];
        if (sampled) sampled[k] = b->sampled + b->token_begin[i];
        length[k] = b->token_begin[i + 1] - b->token_begin[i];
        tokens += length[k];
    }
    TRY(arena_new_raw(a, &p->token, tokens, e));
    for (int64_t k = m->begin; k < m->end; k++)
        for (int64_t i = b->token_begin[c->rollout[k]]; i < b->token_begin[c->rollout[k] + 1]; i++)
            if (batch_is_sampled(b, i)) p->token[p->n_tokens++] = i;
    return TARE_OK;
}

/* ---------------------------------------------------------------- one micro-batch */

static tare_status reserve_cache(const struct model *m, struct kv_cache *c, int64_t layers, int64_t blocks, struct err *e)
{
    if (c->n_blocks >= blocks) return TARE_OK;
    kv_cache_free(m, c);
    return kv_cache_new(m, layers, blocks + blocks / 4, c, e);
}

/* Returns the key/value cache for a forward pass of m without a loss. */
static struct kv_cache *pass_cache(struct trainer *t, const struct model *m)
{
    const struct model *ref = t->reference;
    const bool same_shape = !ref || (ref->shape.layers == t->m->shape.layers && kv_cache_bytes(ref, 1) == kv_cache_bytes(t->m, 1));
    return same_shape || m == ref ? &t->ref_cache : &t->own_cache;
}

/* Logits and logprobs of a chunk of head rows in the backend's memory, and staging for transfers
 * from and to the host. logprob, entropy and kl are adjacent, so that the host reads them in one
 * transfer. */
struct chunk {
    float *logits, *logprob, *entropy, *lse, *ref_logits, *ref_logprob, *ref_lse, *kl;
    struct head_grad_row *coef;
    int64_t rows;
    float *host; /* [3 rows] */
    /* Copies of coef and targets in the backend's memory; NULL if the host shares it. */
    struct head_grad_row *far;
    int32_t *target;
};

static tare_status chunk_new(const struct model *m, struct arena *a, bool reference, struct chunk *c, struct err *e)
{
    const int64_t vocab = m->shape.vocab, rows = m->k->backend->logits_floats / vocab;
    c->rows = rows < ROWS_LEAST ? ROWS_LEAST : rows > ROWS_MOST ? ROWS_MOST : rows;
    arena_reset(a);
    TRY(tensor_new_raw(a, &c->logits, c->rows * vocab, e));
    TRY(tensor_new_raw(a, &c->logprob, c->rows * 5, e));
    TRY(arena_new_raw(a, &c->host, c->rows * 3, e));
    TRY(model_backend_alloc(m, a, c->rows * (int64_t)sizeof *c->far, &c->far, e));
    TRY(model_backend_alloc(m, a, c->rows * (int64_t)sizeof *c->target, &c->target, e));
    TRY(arena_new_raw(a, &c->coef, c->rows, e));
    if (!reference) return TARE_OK;
    TRY(tensor_new_raw(a, &c->ref_logits, c->rows * vocab, e));
    TRY(tensor_new_raw(a, &c->ref_logprob, c->rows * 4, e));
    c->ref_lse = c->ref_logprob + c->rows;
    return TARE_OK;
}

/* Sets the arrays of n rows, one after the other. */
static void chunk_places(struct chunk *c, int64_t n)
{
    c->entropy = c->logprob + n;
    c->kl = c->ref_logits ? c->logprob + 2 * n : NULL;
    c->lse = c->logprob + 3 * n;
}

/* Copies the computed logprobs, entropies and KLs of a chunk to host memory. */
static tare_status read_logprobs(const struct model *m, const struct chunk *c, struct token_block *out, struct err *e)
{
    const int64_t n = out->n;
    const float *values = model_from_backend(m, c->host, c->logprob, (c->kl ? 3 : 2) * n * (int64_t)sizeof(float));
    out->logprob = values;
    out->entropy = values + n;
    out->kl = c->kl ? values + 2 * n : NULL;
    return model_finish(m, e);
}

struct last_hidden {              /* [n, C] output of the final norm */
    const float *own, *reference; /* reference NULL: none */
    float *gradient;              /* written if there is a loss */
};

/* Runs the head over all targets. */
static tare_status run_head(struct trainer *t, const struct microbatch_job *j, const struct packing *p, struct last_hidden h,
                            struct tally *tally, struct err *e)
{
    struct model *m = j->m;
    const struct kernels *k = m->k;
    const int64_t vocab = m->shape.vocab, width = m->shape.hidden;
    const float temperature = (float)t->temperature;
    struct chunk c = {0};
    TRY(chunk_new(m, &t->head, h.reference != NULL, &c, e));
    for (int64_t begin = 0; begin < p->n_tokens; begin += c.rows) {
        const int64_t n = p->n_tokens - begin < c.rows ? p->n_tokens - begin : c.rows;
        const int32_t *target = model_to_backend(m, c.target, p->packed.target + begin, n * (int64_t)sizeof *target);
        struct token_block s = {.token = p->token + begin, .n = n};
        chunk_places(&c, n);
        model_logits(m, h.own + begin * width, n, c.logits);
        KERNEL(k, &m->ctx, head_stats, .logprob = c.logprob, .entropy = c.entropy, .lse = c.lse, .logits = c.logits,
               .target = target, .temperature = temperature, .r = n, .v = vocab);
        if (h.reference) {
            model_logits(t->reference, h.reference + begin * t->reference->shape.hidden, n, c.ref_logits);
            KERNEL(k, &m->ctx, head_stats, .logprob = c.ref_logprob, .lse = c.ref_lse, .logits = c.ref_logits, .target = target,
                   .temperature = temperature, .r = n, .v = vocab);
            KERNEL(k, &m->ctx, head_kl, .kl = c.kl, .logits = c.logits, .lse = c.lse, .ref_logits = c.ref_logits,
                   .ref_lse = c.ref_lse, .temperature = temperature, .r = n, .v = vocab);
        }
        TRY(read_logprobs(m, &c, &s, e));
        for (int64_t i = 0; i < n; i++) {
            if (j->logprob) j->logprob[p->token[begin + i]] = s.logprob[i];
            if (j->entropy) j->entropy[p->token[begin + i]] = s.entropy[i];
        }
        if (!j->loss) continue;
        TRY(j->loss(j->ctx, &s, c.coef, tally, e));
        KERNEL(k, &m->ctx, head_grad, .logits = c.logits, .target = target, .lse = c.lse, .entropy = c.entropy,
               .ref_logits = c.ref_logits, .ref_lse = c.ref_lse, .kl = c.kl,
               .coef = model_to_backend(m, c.far, c.coef, n * (int64_t)sizeof *c.coef), .temperature = temperature, .r = n,
               .v = vocab);
        model_logits_grad(m, &(struct logits_grad){c.logits, h.own + begin * width, n, h.gradient + begin * width}, &t->grads);
    }
    return TARE_OK;
}

static tare_status run_packing(struct trainer *t, const struct microbatch_job *j, struct packing *p, struct tally *tally,
                               struct err *e)
{
    struct model *m = j->m;
    TRY(pack_groups(p->parts, p->n_parts, t->train->prompt_sharing, &t->pack, &p->packed, e));
    float *hidden, *ref_hidden = NULL, *dhidden = NULL;
    arena_reset(&t->acts);
    if (j->exact_kl) {
        struct model *ref = t->reference;
        TRY(reserve_cache(ref, &t->ref_cache, ref->shape.layers, p->packed.n_blocks, e));
        TRY(model_forward(ref, &t->ref_cache, &p->packed.forward, &t->acts, &ref_hidden, e));
    }
    if (!j->loss) {
        struct kv_cache *cache = pass_cache(t, m);
        TRY(reserve_cache(m, cache, m->shape.layers, p->packed.n_blocks, e));
        TRY(model_forward(m, cache, &p->packed.forward, &t->acts, &hidden, e));
        return run_head(t, j, p, (struct last_hidden){.own = hidden}, tally, e);
    }
    struct train_pass *pass;
    TRY(reserve_cache(m, &t->cache, 1, p->packed.n_blocks, e));
    TRY(model_train_forward(
        m, &(struct train_input){&t->cache, &p->packed.forward, p->packed.segs, p->packed.n_segs, t->train->recompute}, &t->acts,
        &pass, &hidden, e));
    TRY(tensor_new_raw(&t->acts, &dhidden, p->n_tokens * m->shape.hidden, e));
    model_backward_begin(m, &t->grads);
    TRY(run_head(t, j, p, (struct last_hidden){hidden, ref_hidden, dhidden}, tally, e));
    TRY(model_backward(m, pass, dhidden, &t->grads, e));
    return model_finish(m, e);
}

tare_status microbatch_alone(struct trainer *t, const struct microbatch_job *j, struct pack_group *parts, int64_t n, struct err *e)
{
    struct packing p = {.parts = parts, .n_parts = n};
    struct tally tally = {0};
    for (int64_t g = 0; g < n; g++)
        for (int64_t i = 0; i < parts[g].n; i++) p.n_tokens += parts[g].completion_len[i];
    TRY(arena_new(&t->work, &p.token, p.n_tokens, e));
    return run_packing(t, j, &p, &tally, e);
}

/* ---------------------------------------------------------------- all micro-batches, on all
 * ranks */

static void add_tally(struct tally *to, const struct tally *x)
{
    to->loss += x->loss;
    to->entropy += x->entropy;
    to->clipped += x->clipped;
    to->kl_old += x->kl_old;
    to->kl_ref += x->kl_ref;
    to->tokens += x->tokens;
    to->ratio_max = fmax(to->ratio_max, x->ratio_max);
    to->mismatch = fmax(to->mismatch, x->mismatch);
}

/* sizes[r] = bytes that rank r contributes if micro-batch i has bytes[i]. */
static void sizes_of(const struct cut *c, int ranks, const int64_t *bytes, int64_t *sizes)
{
    memset(sizes, 0, (size_t)ranks * sizeof *sizes);
    for (int64_t i = 0; i < c->n; i++) sizes[i % ranks] += bytes[i];
}

/* Gathers the results of all micro-batches: in[] has this rank's one after the other, out[] those
 * of rank 0, then of rank 1, ... */
static tare_status gather_micros(struct trainer *t, const struct cut *c, const int64_t *bytes, const void *in, void *out,
                                 struct err *e)
{
    const struct model *m = t->m;
    int64_t *sizes;
    TRY(arena_new(&t->work, &sizes, m->ranks, e));
    sizes_of(c, m->ranks, bytes, sizes);
    return m->comm->gather(m->comm, in, sizes[m->rank], out, sizes, e);
}

/* Adds the tallies of all micro-batches in their order. mine: [micro-batches of this rank] */
static tare_status add_tallies(struct trainer *t, const struct cut *c, const struct tally *mine, const struct microbatch_job *j,
                               struct err *e)
{
    const int64_t ranks = t->m->ranks;
    const struct tally *all = mine;
    if (ranks > 1) {
        struct tally *gathered;
        int64_t *bytes;
        TRY(arena_new(&t->work, &gathered, c->n, e));
        TRY(arena_new(&t->work, &bytes, c->n, e));
        for (int64_t i = 0; i < c->n; i++) bytes[i] = (int64_t)sizeof *gathered;
        TRY(gather_micros(t, c, bytes, mine, gathered, e));
        all = gathered;
    }
    for (int64_t i = 0; i < c->n; i++) {
        int64_t before = i / ranks; /* micro-batches of the lower ranks, and earlier ones of this rank */
        for (int64_t r = 0; r < i % ranks; r++) before += (c->n - r + ranks - 1) / ranks;
        add_tally(j->tally, all + before);
    }
    return TARE_OK;
}

/* Values of the rollouts of a batch: `item` bytes for each token, or with begin NULL for each
 * rollout. */
struct rollout_values {
    char *at;
    const int64_t *begin; /* [N+1] */
    int64_t item;
};

static int64_t bytes_of(const struct rollout_values *x, int64_t rollout)
{
    return x->item * (x->begin ? x->begin[rollout + 1] - x->begin[rollout] : 1);
}

/* Copies the values of one micro-batch's rollouts to the buffer, or back. Returns the end of the
 * copied part of the buffer. */
static char *copy_values(const struct cut *c, int64_t i, const struct rollout_values *x, char *buffer, bool back)
{
    for (int64_t k = c->micro[i].begin; k < c->micro[i].end; k++) {
        const int64_t r = c->rollout[k], n = bytes_of(x, r);
        char *at = x->at + x->item * (x->begin ? x->begin[r] : r);
        memcpy(back ? at : buffer, back ? buffer : at, (size_t)n);
        buffer += n;
    }
    return buffer;
}

/* Gives every rank the values of all rollouts. */
static tare_status gather_values(struct trainer *t, const struct cut *c, const struct rollout_values *x, struct err *e)
{
    const struct model *m = t->m;
    char *mine, *all, *at;
    int64_t *bytes, total = 0;
    if (!x->at || m->ranks == 1) return TARE_OK;
    TRY(arena_new(&t->work, &bytes, c->n, e));
    for (int64_t i = 0; i < c->n; i++) {
        for (int64_t k = c->micro[i].begin; k < c->micro[i].end; k++) bytes[i] += bytes_of(x, c->rollout[k]);
        total += bytes[i];
    }
    TRY(arena_new_raw(&t->work, &mine, total + 1, e));
    TRY(arena_new_raw(&t->work, &all, total + 1, e));
    at = mine;
    for (int64_t i = m->rank; i < c->n; i += m->ranks) at = copy_values(c, i, x, at, false);
    TRY(gather_micros(t, c, bytes, mine, all, e));
    at = all;
    for (int r = 0; r < m->ranks; r++)
        for (int64_t i = r; i < c->n; i += m->ranks) at = copy_values(c, i, x, at, true);
    return TARE_OK;
}

static tare_status gather_tokens(struct trainer *t, const struct batch *b, const struct cut *c, float *x, struct err *e)
{
    return gather_values(t, c, &(struct rollout_values){(char *)x, b->token_begin, (int64_t)sizeof *x}, e);
}

/* Asks for the shares of one micro-batch's rollouts. */
static tare_status take_shares(const struct microbatch_job *j, const struct cut *c, const struct micro *m, struct err *e)
{
    for (int64_t k = m->begin; j->n_shares && k < m->end; k++)
        TRY(j->share(j->ctx, c->rollout[k], j->shares + j->n_shares * c->rollout[k], e));
    return TARE_OK;
}

static tare_status reserve_positions(struct trainer *t, const struct microbatch_job *j, struct err *e)
{
    int64_t longest = 0;
    for (int64_t g = 0; g < j->n_groups; g++) {
        const int64_t id = j->groups[g];
        for (int64_t i = j->b->group_begin[id]; i < j->b->group_begin[id + 1]; i++) {
            const int64_t n = prompt_of(j->b, id) + rows_of(j->b, i);
            if (n > longest) longest = n;
        }
    }
    TRY(model_positions(j->m, longest, e));
    return j->exact_kl ? model_positions(t->reference, longest, e) : TARE_OK;
}

tare_status microbatch_run(struct trainer *t, const struct microbatch_job *j, struct err *e)
{
    const int64_t ranks = t->m->ranks, rank = t->m->rank;
    struct cut c;
    struct tally *tally;
    TRY(reserve_positions(t, j, e));
    /* A forward pass gives the same values however the batch is split. */
    TRY(cut_job(t, j, j->loss ? t->gradient_shards : ranks, &c, e));
    TRY(arena_new(&t->work, &tally, c.n / ranks + 1, e));
    for (int64_t first = 0; first < c.n; first += ranks) {
        const int64_t remaining = c.n - first;
        t->grads.active = (int)(remaining < ranks ? remaining : ranks);
        if (rank < remaining) {
            struct packing p;
            TRY(pack_micro(t, j, &c, &c.micro[first + rank], &p, e));
            TRY(run_packing(t, j, &p, &tally[first / ranks], e));
            TRY(take_shares(j, &c, &c.micro[first + rank], e));
        } else if (j->loss) {
            TRY(model_backward_idle(t->m, &t->grads, e));
        }
    }
    if (j->loss) {
        TRY(add_tallies(t, &c, tally, j, e));
        const struct rollout_values shares = {(char *)j->shares, NULL, j->n_shares * (int64_t)sizeof *j->shares};
        return j->n_shares ? gather_values(t, &c, &shares, e) : TARE_OK;
    }
    TRY(gather_tokens(t, j->b, &c, j->logprob, e));
    return gather_tokens(t, j->b, &c, j->entropy, e);
}

tare_status update_logprobs(struct trainer *t, struct model *m, const struct batch *b, float *logprob, float *entropy,
                            struct err *e)
{
    int64_t *groups;
    TRY(arena_new(&t->work, &groups, b->n_groups, e));
    for (int64_t g = 0; g < b->n_groups; g++) groups[g] = g;
    return microbatch_run(
        t,
        &(struct microbatch_job){.b = b, .groups = groups, .n_groups = b->n_groups, .m = m, .logprob = logprob, .entropy = entropy},
        e);
}
