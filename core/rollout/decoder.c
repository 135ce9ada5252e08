#include "rollout/decoder.h"

#include "base/fs.h"
#include "model/layer.h"

enum { BUCKET = 64 }; /* most rows that a backend adds to a batch */

struct decoder {
    struct model *model;
    struct decode *session;
    int64_t capacity; /* capacity in rows */
    struct arena tensors, host;
    struct layer_acts acts;
    float *x, *hidden, *logits;
    struct decode_row *rows;
    int32_t *token;
    float *logprob, *entropy;
};

tare_status decoder_new(struct model *m, struct decoder **out, struct err *e)
{
    *out = NULL;
    if (!m->k->decode_open) return TARE_OK;
    struct decoder *d;
    TRY(mem_new((int64_t)sizeof *d, (void **)&d, e));
    d->model = m;
    model_arena_init(m, &d->tensors, "a token of all sequences");
    arena_init(&d->host, "decoder");
    *out = d;
    return TARE_OK;
}

static void drop_session(struct decoder *d)
{
    if (d->session) d->model->k->decode_close(&d->model->ctx, d->session);
    d->session = NULL;
    d->capacity = 0;
}

void decoder_free(struct decoder *d)
{
    if (!d) return;
    drop_session(d);
    arena_free(&d->tensors);
    arena_free(&d->host);
    mem_free(d);
}

int64_t decoder_bytes(const struct decoder *d)
{
    return d ? arena_tensor_bytes(&d->tensors) : 0;
}

/* Allocates tensors for `rows` rows and closes the session that used the old ones. */
static tare_status grow_tensors(struct decoder *d, int64_t rows, struct err *e)
{
    const struct model *m = d->model;
    const int64_t padded = rows + BUCKET;
    drop_session(d);
    arena_reset(&d->tensors);
    arena_reset(&d->host);
    d->acts = (struct layer_acts){0};
    TRY(layer_acts_new(m, padded, false, &d->tensors, &d->acts, e));
    TRY(lora_rows_new(m, padded, false, &d->tensors, &d->acts.lora, e));
    TRY(tensor_new(&d->tensors, &d->x, padded * m->shape.hidden, e));
    TRY(tensor_new(&d->tensors, &d->hidden, padded * m->shape.hidden, e));
    TRY(tensor_new(&d->tensors, &d->logits, padded * m->shape.vocab, e));
    TRY(arena_new(&d->host, &d->rows, rows, e));
    TRY(arena_new(&d->host, &d->token, rows * DECODER_TOKENS, e));
    TRY(arena_new(&d->host, &d->logprob, rows * DECODER_TOKENS, e));
    TRY(arena_new(&d->host, &d->entropy, rows * DECODER_TOKENS, e));
    d->session = m->k->decode_open(&m->ctx);
    if (!d->session) FAIL(e, TARE_E_NOMEM, "no memory for a decode session");
    d->capacity = rows;
    return TARE_OK;
}

tare_status decoder_begin(struct decoder *d, int64_t n, struct decoder_batch *b, struct err *e)
{
    if (n > d->capacity) TRY(grow_tensors(d, n, e));
    *b = (struct decoder_batch){.rows = d->rows, .n = n, .token = d->token, .logprob = d->logprob, .entropy = d->entropy};
    return TARE_OK;
}

/* Issues one token of all rows, from its ids to the next. */
static void issue_token(struct decoder *d, struct kv_cache *cache, const struct decode_places *p)
{
    struct model *m = d->model;
    const struct forward_batch b = {.t = p->rows,
                                    .ids = p->ids,
                                    .pos = p->pos,
                                    .write_row = p->write_row,
                                    .write_slot = p->write_slot,
                                    .n_writes = p->rows,
                                    .row_by_row = true,
                                    .out_all = true,
                                    .out_rows = p->out_rows,
                                    .n_out = p->rows};
    layer_forward_rows(m, cache, &b, &d->acts, d->x, d->hidden);
    model_logits(m, d->hidden, p->rows, d->logits);
    kernels_at(&m->ctx, "drawing tokens", -1);
    KERNEL(m->k, &m->ctx, sample, .token = p->token, .logprob = p->logprob, .entropy = p->entropy, .logits = d->logits,
           .ld = m->shape.vocab, .rows = p->draw, .r = p->rows, .v = m->shape.vocab);
}

/* Hashes every address that issue_token passes to an operation. */
static uint64_t hash_addresses(const struct decoder *d, const struct kv_cache *cache)
{
    const struct model *m = d->model;
    const void *const own[] = {m->rope, m->rope_local, m->table, m->final_norm_vector, d->x, d->hidden, d->logits};
    uint64_t h = fs_hash(own, (int64_t)sizeof own, 0);
    h = fs_hash(&d->acts, (int64_t)sizeof d->acts, h);
    h = fs_hash(m->vectors, m->shape.layers * (int64_t)sizeof *m->vectors, h);
    for (int64_t i = 0; i < m->n_products; i++) h = fs_hash(&m->products[i].packed, (int64_t)sizeof m->products[i].packed, h);
    return fs_hash(cache->layers, cache->n_layers * (int64_t)sizeof *cache->layers, h);
}

tare_status decoder_run(struct decoder *d, struct kv_cache *cache, struct decoder_batch *b, struct err *e)
{
    const struct model *m = d->model;
    const struct kernels *k = m->k;
    struct decode_places places = {0};
    const struct decode_load load = {.rows = b->rows,
                                     .n = b->n,
                                     .tokens = b->tokens,
                                     .stop = b->stop,
                                     .n_stop = b->n_stop,
                                     .shape = model_attn_shape(m),
                                     .addresses = hash_addresses(d, cache)};
    kernels_at(&m->ctx, "decoding", -1);
    k->decode_load(&m->ctx, d->session, &load, &places);
    if (places.rows)
        for (int64_t i = 0; i < b->tokens; i++) {
            while (k->decode_begin(&m->ctx, d->session)) {
                issue_token(d, cache, &places);
                if (!k->decode_end(&m->ctx, d->session)) break;
            }
        }
    k->decode_read(&m->ctx, d->session, b->token, b->logprob, b->entropy);
    return model_finish(m, e);
}
