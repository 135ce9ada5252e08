#include "infer/score.h"

#include "model/pack.h"

#include <math.h>

enum { TOKENS_MAX = 16384 }; /* computed together */

struct scorer {
    struct model *m;
    /* One layer. view shows it as every layer's, because a pass over whole sequences needs no
     * more. */
    struct kv_cache cache;
    struct kv_cache view;
    struct arena work;
};

/* Allocates a cache of at least n_blocks. Every layer overwrites the keys of the layer before
 * it. */
static tare_status grow_cache(struct scorer *s, int64_t n_blocks, struct err *e)
{
    if (n_blocks <= s->cache.n_blocks) return TARE_OK;
    kv_cache_free(s->m, &s->cache);
    TRY(kv_cache_new(s->m, 1, n_blocks, &s->cache, e));
    for (int64_t l = 0; l < s->view.n_layers; l++) s->view.layers[l] = s->cache.layers[0];
    s->view.n_blocks = n_blocks;
    return TARE_OK;
}

struct scores {
    float *logprob, *entropy;
};

/* Runs the head in chunks of positions, so that its logits stay within 64 MiB. */
static tare_status score_head(struct scorer *s, const struct packed_batch *p, const float *hidden, double temperature,
                              struct scores out, struct err *e)
{
    const int64_t V = s->m->shape.vocab, C = s->m->shape.hidden, fit = (1 << 24) / V, chunk = fit > 0 ? fit : 1;
    float *logits, *lse;
    TRY(arena_new_raw(&s->work, &logits, (chunk < p->n_targets ? chunk : p->n_targets) * V, e));
    TRY(arena_new_raw(&s->work, &lse, chunk * 2, e));
    for (int64_t at = 0; at < p->n_targets; at += chunk) {
        const int64_t n = p->n_targets - at < chunk ? p->n_targets - at : chunk;
        model_logits(s->m, hidden + at * C, n, logits);
        KERNEL(s->m->k, &s->m->ctx, head_stats, .logprob = out.logprob + at, .entropy = out.entropy + at, .lse = lse,
               .logits = logits, .target = p->target + at, .temperature = (float)temperature, .r = n, .v = V);
    }
    return model_finish(s->m, e);
}

/* Packs line i as a prompt of one token and a completion of the rest. */
static tare_status compute_scores(struct scorer *s, const struct score_lines *x, struct scores out, struct err *e)
{
    struct pack_group *groups;
    const int32_t **rest;
    int64_t *rest_len;
    struct packed_batch p;
    float *hidden;
    arena_reset(&s->work);
    TRY(arena_new(&s->work, &groups, x->n, e));
    TRY(arena_new(&s->work, &rest, x->n, e));
    TRY(arena_new(&s->work, &rest_len, x->n, e));
    for (int64_t i = 0; i < x->n; i++) {
        const int32_t *ids = x->ids + x->begin[i];
        rest[i] = ids + 1;
        rest_len[i] = x->begin[i + 1] - x->begin[i] - 1;
        groups[i] =
            (struct pack_group){.prompt = ids, .prompt_len = 1, .n = 1, .completion = rest + i, .completion_len = rest_len + i};
    }
    TRY(pack_groups(groups, x->n, false, &s->work, &p, e));
    TRY(grow_cache(s, p.n_blocks, e));
    if (!p.n_targets) return TARE_OK;
    TRY(model_forward(s->m, &s->view, &p.forward, &s->work, &hidden, e));
    return score_head(s, &p, hidden, x->temperature, out, e);
}

static tare_status check_score_line(const struct scorer *s, const struct score_lines *x, int64_t i, struct err *e)
{
    const int64_t n = x->begin[i + 1] - x->begin[i], most = s->m->shape.max_position, vocab = s->m->shape.vocab;
    if (n < 1) FAIL(e, TARE_E_INVALID, "line %lld: must have at least one token id", (long long)i);
    if (n - 1 > most)
        FAIL(e, TARE_E_RANGE, "line %lld: has %lld tokens; the model's context is %lld", (long long)i, (long long)n,
             (long long)most);
    for (int64_t k = x->begin[i]; k < x->begin[i + 1]; k++)
        if (x->ids[k] < 0 || x->ids[k] >= vocab)
            FAIL(e, TARE_E_RANGE, "line %lld: token id %d: must be from 0 to %lld", (long long)i, x->ids[k], (long long)vocab - 1);
    return TARE_OK;
}

tare_status scorer_run(struct scorer *s, const struct score_lines *x, float *logprob, float *entropy, struct err *e)
{
    for (int64_t i = 0; i < x->n; i++) TRY(check_score_line(s, x, i, e));
    for (int64_t i = 0, end; i < x->n; i = end) {
        const int64_t at = x->begin[i] - x->begin[0] - i;
        for (end = i + 1; end < x->n && x->begin[end + 1] - x->begin[i] <= TOKENS_MAX;) end++;
        const struct score_lines part = {x->ids, x->begin + i, end - i, x->temperature};
        TRY(compute_scores(s, &part, (struct scores){logprob + at, entropy + at}, e));
    }
    const int64_t n = x->n ? x->begin[x->n] - x->begin[0] - x->n : 0;
    for (int64_t k = 0; k < n; k++)
        if (!isfinite(logprob[k]) || !isfinite(entropy[k]))
            FAIL(e, TARE_E_NOT_FINITE, "the model computed a non-finite logprob; its weights are damaged or dtype is too coarse");
    return TARE_OK;
}

tare_status scorer_new(struct model *m, struct scorer **out, struct err *e)
{
    struct scorer *s;
    *out = NULL;
    TRY(mem_new((int64_t)sizeof *s, (void **)&s, e));
    s->m = m;
    s->view.n_layers = m->shape.layers;
    arena_init(&s->work, "score");
    const tare_status status = mem_new(s->view.n_layers * (int64_t)sizeof *s->view.layers, (void **)&s->view.layers, e);
    if (status) {
        scorer_free(s);
        return status;
    }
    *out = s;
    return TARE_OK;
}

void scorer_free(struct scorer *s)
{
    if (!s) return;
    kv_cache_free(s->m, &s->cache);
    mem_free(s->view.layers);
    arena_free(&s->work);
    mem_free(s);
}
