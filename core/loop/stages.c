/* The stages of a step that join several folders: rows to prompts, tokens to text, the reference's logprobs. */
#include "loop/run.h"

#include <string.h>

tare_status stage_prompts(const struct prompts *p, const struct dataset *d, const int64_t *rows, const int64_t *occurrence, int64_t n,
                          struct token_ids *ids, struct batch *b, struct arena *a, struct err *e)
{
    b->n_groups = n;
    TRY(arena_new(a, const struct row *, n, &b->row, e));
    TRY(arena_new(a, uint64_t, n, &b->prompt_uid, e));
    TRY(arena_new(a, int64_t, n, &b->occurrence, e));
    TRY(arena_new(a, int64_t, n + 1, &b->prompt_begin, e));
    ids->n = 0;
    for (int64_t m = 0; m < n; m++) {
        b->row[m] = &d->rows[rows[m]];
        b->prompt_uid[m] = b->row[m]->uid;
        b->occurrence[m] = occurrence ? occurrence[m] : 0;
        TRY(prompts_encode(p, b->row[m], ids, e));
        b->prompt_begin[m + 1] = ids->n;
        if (b->prompt_begin[m + 1] == b->prompt_begin[m]) FAIL(e, TARE_E_INVALID, "%s: the prompt has no token", b->row[m]->where);
    }
    TRY(arena_new_raw(a, int32_t, ids->n, &b->prompt_ids, e));
    memcpy(b->prompt_ids, ids->data, (size_t)ids->n * sizeof *ids->data);
    return TARE_OK;
}

tare_status stage_data(struct run *r, struct err *e)
{
    const int64_t n = r->config->rollout.prompts;
    int64_t *rows, *occurrence;
    TRY(arena_new(&r->arena, int64_t, n, &rows, e));
    TRY(arena_new(&r->arena, int64_t, n, &occurrence, e));
    TRY(order_next(&r->order, &r->cursor, n, rows, occurrence, e));
    return stage_prompts(r->prompts, &r->train, rows, occurrence, n, &r->prompt_ids, &r->batch, &r->arena, e);
}

static bool is_stop(const struct model *m, int32_t id)
{
    for (int64_t i = 0; i < m->n_eos; i++)
        if (m->eos[i] == id) return true;
    return false;
}

tare_status stage_texts(const struct tokenizer *t, const struct model *m, struct batch *b, struct arena *a, struct err *e)
{
    struct str text = {0};
    tare_status status = arena_new(a, tare_text, b->n_rollouts, &b->completion, e);
    for (int64_t i = 0; !status && i < b->n_rollouts; i++) {
        int64_t n = b->token_begin[i + 1] - b->token_begin[i];
        const int32_t *ids = b->ids + b->token_begin[i];
        if (n && b->finish[i] == FINISH_STOP && (is_stop(m, ids[n - 1]) || tokenizer_is_special(t, ids[n - 1]))) n--;
        str_clear(&text);
        char *copy = NULL;
        status = tokenizer_decode(t, ids, n, true, &text, e);
        if (!status) status = arena_strdup(a, text.data ? text.data : "", text.size, &copy, e);
        if (!status) b->completion[i] = (tare_text){copy, text.size};
    }
    str_free(&text);
    return status;
}

tare_status stage_rollout(struct run *r, struct err *e)
{
    const struct rollout_config *c = &r->config->rollout;
    const struct sample_params p = {.temperature = c->temperature, .top_p = c->top_p, .min_p = c->min_p, .top_k = c->top_k,
                                    .max_new_tokens = c->max_new_tokens, .stop = r->stop, .n_stop = r->n_stop};
    const struct rng_key key = rng_derive(rng_key((uint64_t)r->config->run.seed, RNG_TRAIN), (uint64_t)r->batch.step);
    TRY(rollout_run(r->sampler, c, &p, key, &r->batch, signals_flag(), &r->arena, e));
    return stage_texts(r->tokenizer, r->model, &r->batch, &r->arena, e);
}

/* Logprobs of the frozen reference, where the KL estimate is built from single tokens (k1, k2, k3). */
tare_status stage_reference(struct run *r, struct err *e)
{
    struct batch *b = &r->batch;
    if (!r->reference || !strcmp(r->config->loss.kl, "exact")) return TARE_OK;
    TRY(arena_new(&r->arena, float, b->n_tokens, &b->ref_logprob, e));
    return update_logprobs(r->trainer, r->reference, b, b->ref_logprob, NULL, e);
}
