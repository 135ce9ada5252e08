/* Forward and backward over groups, a micro-batch at a time: pack, run the layers, then the head in chunks of rows, so that logits
 * never exist for more than a chunk. A chunk's loss gradient is known as soon as its logprobs are, so the head is run once. */
#include "update/update.h"

#include "model/pack.h"

#include <stdlib.h>
#include <string.h>

enum { LOGITS_FLOATS = 8 << 20, ROWS_MOST = 1024, ROWS_LEAST = 16 };

/* One micro-batch: pieces of groups (a prompt and some of its rollouts), and the token of b behind each head row. */
struct plan {
    struct pack_group *pieces;
    int64_t n_pieces;
    int64_t *token; /* [n_targets] index into b->ids */
    int64_t n_tokens;
    struct packed_batch packed;
};

static bool takes_part(const struct microbatch_job *j, int64_t rollout)
{
    return !j->row_weight || j->row_weight[rollout] > 0;
}

/* Rows that a rollout adds: all its tokens but the last, which is only a target. */
static int64_t rows_of(const struct batch *b, int64_t rollout)
{
    return b->token_begin[rollout + 1] - b->token_begin[rollout] - 1;
}

/* Walks groups and rollouts; a cursor, so that the next micro-batch goes on where this one stopped. */
struct cursor {
    int64_t group, rollout; /* group: index into job->groups; rollout: absolute, or -1: the group's first */
};

/* Takes rollouts until the next would exceed the budget (at least one). A group cut in two has its prompt computed in both. */
static tare_status plan_next(struct trainer *t, const struct microbatch_job *j, struct cursor *at, struct plan *p, struct err *e)
{
    const struct batch *b = j->b;
    struct arena *a = &t->pack;
    arena_reset(a);
    *p = (struct plan){0};
    TRY(arena_new(a, struct pack_group, j->n_groups, &p->pieces, e));
    int64_t rows = 0, taken = 0, most_tokens = 0;
    const int32_t **completion;
    int64_t *length;
    TRY(arena_new(a, const int32_t *, b->n_rollouts, &completion, e));
    TRY(arena_new(a, int64_t, b->n_rollouts, &length, e));
    for (int64_t i = 0; i < b->n_rollouts; i++) most_tokens += b->token_begin[i + 1] - b->token_begin[i];
    TRY(arena_new_raw(a, int64_t, most_tokens, &p->token, e));
    for (; at->group < j->n_groups; at->group++, at->rollout = -1) {
        const int64_t g = j->groups[at->group], end = b->group_begin[g + 1];
        if (at->rollout < 0) at->rollout = b->group_begin[g];
        const int64_t prompt = b->prompt_begin[g + 1] - b->prompt_begin[g];
        struct pack_group *piece = NULL;
        for (; at->rollout < end; at->rollout++) {
            const int64_t i = at->rollout;
            if (!takes_part(j, i)) continue;
            const int64_t cost = rows_of(b, i) + (piece && t->train->prompt_sharing ? 0 : prompt);
            if (taken && rows + cost > t->train->micro_tokens) return TARE_OK;
            if (!piece) {
                piece = &p->pieces[p->n_pieces++];
                *piece = (struct pack_group){.prompt = b->prompt_ids + b->prompt_begin[g],
                                             .prompt_len = prompt,
                                             .completion = completion + taken,
                                             .completion_len = length + taken};
            }
            piece->n++;
            completion[taken] = b->ids + b->token_begin[i];
            length[taken++] = b->token_begin[i + 1] - b->token_begin[i];
            rows += cost;
            for (int64_t k = b->token_begin[i]; k < b->token_begin[i + 1]; k++) p->token[p->n_tokens++] = k;
        }
    }
    return TARE_OK;
}

static tare_status reserve_cache(const struct model *m, struct kv_cache *c, int64_t layers, int64_t blocks, struct err *e)
{
    if (c->n_blocks >= blocks) return TARE_OK;
    kv_cache_free(m, c);
    return kv_cache_new(m, layers, blocks + blocks / 4, c, e);
}

/* Logits and scores of a chunk of head rows. */
struct chunk {
    float *logits, *logprob, *entropy, *lse, *ref_logits, *ref_logprob, *ref_lse, *kl;
    struct head_grad_row *coef;
    int64_t rows;
};

static tare_status chunk_new(struct arena *a, int64_t vocab, bool reference, struct chunk *c, struct err *e)
{
    int64_t rows = LOGITS_FLOATS / vocab;
    c->rows = rows < ROWS_LEAST ? ROWS_LEAST : rows > ROWS_MOST ? ROWS_MOST : rows;
    arena_reset(a);
    TRY(arena_new_raw(a, float, c->rows *vocab, &c->logits, e));
    TRY(arena_new_raw(a, float, c->rows * 5, &c->logprob, e));
    c->entropy = c->logprob + c->rows;
    c->kl = NULL;
    c->lse = c->entropy + c->rows;
    TRY(arena_new_raw(a, struct head_grad_row, c->rows, &c->coef, e));
    if (!reference) return TARE_OK;
    TRY(arena_new_raw(a, float, c->rows *vocab, &c->ref_logits, e));
    TRY(arena_new_raw(a, float, c->rows * 4, &c->ref_logprob, e));
    c->ref_lse = c->ref_logprob + c->rows;
    c->kl = c->ref_lse + 2 * c->rows;
    return TARE_OK;
}

/* The head over all targets. dhidden [n, C] is filled when there is a loss. */
static tare_status run_head(struct trainer *t, const struct microbatch_job *j, const struct plan *p, const float *hidden,
                            const float *ref_hidden, float *dhidden, struct err *e)
{
    struct model *m = j->m;
    const struct kernels *k = m->k;
    const int64_t vocab = m->shape.vocab, width = m->shape.hidden;
    const float temperature = (float)t->temperature;
    struct chunk c = {0};
    TRY(chunk_new(&t->head, vocab, ref_hidden != NULL, &c, e));
    for (int64_t begin = 0; begin < p->n_tokens; begin += c.rows) {
        const int64_t n = p->n_tokens - begin < c.rows ? p->n_tokens - begin : c.rows;
        const int32_t *target = p->packed.target + begin;
        model_logits(m, hidden + begin * width, n, c.logits);
        k->head_stats(&m->ctx, c.logprob, c.entropy, c.lse, c.logits, vocab, target, temperature, n, vocab);
        if (ref_hidden) {
            model_logits(t->reference, ref_hidden + begin * width, n, c.ref_logits);
            k->head_stats(&m->ctx, c.ref_logprob, NULL, c.ref_lse, c.ref_logits, vocab, target, temperature, n, vocab);
            k->head_kl(&m->ctx, c.kl, c.logits, c.lse, c.ref_logits, c.ref_lse, vocab, temperature, n, vocab);
        }
        for (int64_t i = 0; i < n; i++) {
            if (j->logprob) j->logprob[p->token[begin + i]] = c.logprob[i];
            if (j->entropy) j->entropy[p->token[begin + i]] = c.entropy[i];
        }
        if (!j->loss) continue;
        TRY(j->loss(j->ctx, p->token + begin, n, c.logprob, c.entropy, c.kl, c.coef, e));
        k->head_grad(&m->ctx, c.logits, vocab, target, c.lse, c.entropy, c.ref_logits, c.ref_lse, c.kl, c.coef, temperature, n,
                     vocab);
        model_logits_grad(m, c.logits, hidden + begin * width, n, dhidden + begin * width, t->grads);
    }
    return TARE_OK;
}

static tare_status run_plan(struct trainer *t, const struct microbatch_job *j, struct plan *p, struct err *e)
{
    struct model *m = j->m;
    TRY(pack_groups(p->pieces, p->n_pieces, t->train->prompt_sharing, &t->pack, &p->packed, e));
    float *hidden, *ref_hidden = NULL, *dhidden = NULL;
    arena_reset(&t->acts);
    if (j->exact_kl) {
        struct model *ref = t->reference;
        TRY(reserve_cache(ref, &t->ref_cache, ref->shape.layers, p->packed.n_blocks, e));
        TRY(model_forward(ref, &t->ref_cache, &p->packed.forward, &t->acts, &ref_hidden, e));
    }
    if (!j->loss) {
        TRY(reserve_cache(m, &t->ref_cache, m->shape.layers, p->packed.n_blocks, e));
        TRY(model_forward(m, &t->ref_cache, &p->packed.forward, &t->acts, &hidden, e));
        return run_head(t, j, p, hidden, NULL, NULL, e);
    }
    struct train_pass *pass;
    TRY(reserve_cache(m, &t->cache, 1, p->packed.n_blocks, e));
    TRY(model_train_forward(m, &t->cache, &p->packed.forward, p->packed.segs, p->packed.n_segs,
                            !strcmp(t->train->recompute, "layer"), &t->acts, &pass, &hidden, e));
    TRY(arena_new_raw(&t->acts, float, p->n_tokens * m->shape.hidden, &dhidden, e));
    TRY(run_head(t, j, p, hidden, ref_hidden, dhidden, e));
    return model_backward(m, pass, dhidden, t->grads, e);
}

tare_status microbatch_run(struct trainer *t, const struct microbatch_job *j, struct err *e)
{
    int64_t longest = 0;
    for (int64_t g = 0; g < j->n_groups; g++) {
        const int64_t id = j->groups[g];
        for (int64_t i = j->b->group_begin[id]; i < j->b->group_begin[id + 1]; i++) {
            const int64_t n = j->b->prompt_begin[id + 1] - j->b->prompt_begin[id] + rows_of(j->b, i);
            if (n > longest) longest = n;
        }
    }
    TRY(model_positions(j->m, longest, e));
    if (j->exact_kl) TRY(model_positions(t->reference, longest, e));
    struct cursor at = {0, -1};
    while (at.group < j->n_groups) {
        struct plan p;
        TRY(plan_next(t, j, &at, &p, e));
        if (!p.n_pieces) break;
        TRY(run_plan(t, j, &p, e));
    }
    return TARE_OK;
}

tare_status update_logprobs(struct trainer *t, struct model *m, const struct batch *b, float *logprob, float *entropy,
                            struct err *e)
{
    int64_t *groups;
    TRY(arena_new(&t->work, int64_t, b->n_groups, &groups, e));
    for (int64_t g = 0; g < b->n_groups; g++) groups[g] = g;
    return microbatch_run(
        t,
        &(struct microbatch_job){.b = b, .groups = groups, .n_groups = b->n_groups, .m = m, .logprob = logprob, .entropy = entropy},
        e);
}

/* ---------------------------------------------------------------- supervised training: L = -1/T sum_t log p(t) */

struct sft_loss {
    double weight, loss;
};

static tare_status sft_token_loss(void *ctx, const int64_t *token, int64_t n, const float *logprob, const float *entropy,
                                  const float *kl, struct head_grad_row *coef, struct err *e)
{
    (void)token, (void)entropy, (void)kl, (void)e;
    struct sft_loss *s = ctx;
    for (int64_t i = 0; i < n; i++) {
        coef[i] = (struct head_grad_row){.logprob = (float)-s->weight};
        s->loss -= s->weight * (double)logprob[i];
    }
    return TARE_OK;
}

tare_status sft_step(struct trainer *t, const struct batch *b, double *loss, double *grad_norm, double *lr, struct err *e)
{
    int64_t *groups;
    arena_reset(&t->work);
    TRY(arena_new(&t->work, int64_t, b->n_groups, &groups, e));
    for (int64_t g = 0; g < b->n_groups; g++) groups[g] = g;
    struct sft_loss s = {.weight = 1 / (double)b->n_tokens};
    TRY(microbatch_run(
        t,
        &(struct microbatch_job){.b = b, .groups = groups, .n_groups = b->n_groups, .m = t->m, .loss = sft_token_loss, .ctx = &s},
        e));
    *loss = s.loss;
    bool skipped;
    return optimizer_step(t, grad_norm, lr, &skipped, e);
}
