#include "engine/embed_service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 4096 }; /* tokens of one forward pass, unless one text is longer */

struct embed_service {
    tare_embed_v1 extension;
    struct model *m;
    const struct tokenizer *tokenizer;
    /* One layer, shown as every layer's: whole sequences in one pass need no more. */
    struct kv_cache cache, view;
    struct arena arena;
    struct token_ids ids;
};

static int64_t service_dim(void *ctx)
{
    return ((const struct embed_service *)ctx)->m->shape.hidden;
}

static tare_status service_identity(void *ctx, const tare_stream *out, tare_error *error)
{
    const struct embed_service *s = ctx;
    uint64_t weights;
    char text[80];
    (void)error;
    TRY(model_hash(s->m, &weights, NULL));
    const int n = snprintf(text, sizeof text, "weights %016llx tokenizer %016llx", (unsigned long long)weights,
                           (unsigned long long)tokenizer_hash(s->tokenizer));
    return out->write(out->ctx, text, n);
}

/* Lays texts [n] out as sequences of one batch; begin [n+1]: their positions. */
static tare_status plan_batch(struct embed_service *s, const int64_t *begin, int64_t n, struct forward_batch *b, struct err *e)
{
    struct arena *a = &s->arena;
    const int64_t rows = begin[n];
    int32_t *pos, *blocks;
    int64_t *row, *slot, n_blocks = 0;
    struct attn_seq *seqs;
    TRY(arena_new(a, &pos, rows, e));
    TRY(arena_new(a, &row, rows, e));
    TRY(arena_new(a, &slot, rows, e));
    TRY(arena_new(a, &seqs, n, e));
    TRY(arena_new(a, &blocks, rows / KV_BLOCK + n + 1, e));
    for (int64_t i = 0; i < n; i++) {
        const int64_t len = begin[i + 1] - begin[i];
        seqs[i] = (struct attn_seq){.q_begin = begin[i], .q_len = len, .pos = 0, .blocks = blocks + n_blocks};
        for (int64_t t = 0; t < len; t++) {
            const int64_t at = begin[i] + t;
            pos[at] = (int32_t)t;
            row[at] = at;
            slot[at] = (n_blocks + t / KV_BLOCK) * KV_BLOCK + t % KV_BLOCK;
        }
        for (int64_t k = 0; k < (len + KV_BLOCK - 1) / KV_BLOCK; k++, n_blocks++) blocks[n_blocks] = (int32_t)n_blocks;
    }
    if (s->cache.n_blocks < n_blocks) {
        kv_cache_free(s->m, &s->cache);
        TRY(kv_cache_new(s->m, 1, n_blocks, &s->cache, e));
        for (int64_t l = 0; l < s->view.n_layers; l++) s->view.layers[l] = s->cache.layers[0];
        s->view.n_blocks = s->cache.n_blocks;
    }
    *b = (struct forward_batch){.t = rows,
                                .ids = s->ids.data,
                                .pos = pos,
                                .write_row = row,
                                .write_slot = slot,
                                .n_writes = rows,
                                .seqs = seqs,
                                .n_seqs = n,
                                .out_rows = row,
                                .n_out = rows};
    return TARE_OK;
}

static tare_status embed_some(struct embed_service *s, const int64_t *begin, int64_t n, float *out, struct err *e)
{
    const int64_t width = s->m->shape.hidden;
    struct forward_batch b;
    float *there, *host;
    TRY(plan_batch(s, begin, n, &b, e));
    TRY(model_forward(s->m, &s->view, &b, &s->arena, &there, e));
    TRY(arena_new_raw(&s->arena, &host, kernels_staging_bytes(s->m->k, b.n_out * width), e));
    const float *hidden = model_from_backend(s->m, host, there, b.n_out * width * (int64_t)sizeof(float));
    TRY(model_finish(s->m, e));
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = 0; d < width; d++) {
            double sum = 0;
            for (int64_t t = begin[i]; t < begin[i + 1]; t++) sum += (double)hidden[t * width + d];
            out[i * width + d] = (float)(sum / (double)(begin[i + 1] - begin[i]));
        }
    return TARE_OK;
}

static tare_status embed_all(struct embed_service *s, const tare_text *texts, int64_t n, float *out, struct err *e)
{
    const int64_t most = s->m->shape.max_position;
    for (int64_t done = 0; done < n;) {
        int64_t *begin, k = 0;
        arena_reset(&s->arena);
        s->ids.n = 0;
        TRY(arena_new(&s->arena, &begin, n - done + 1, e));
        while (done + k < n && (!k || s->ids.n < ROWS_MOST)) {
            TRY(tokenizer_encode(s->tokenizer, texts[done + k].data, texts[done + k].size, &s->ids, e));
            if (s->ids.n - begin[k] > most) s->ids.n = begin[k] + most;
            if (s->ids.n == begin[k]) FAIL(e, TARE_E_INVALID, "text %lld has no token", (long long)(done + k));
            TRY(model_positions(s->m, s->ids.n - begin[k], e));
            begin[++k] = s->ids.n;
        }
        TRY(embed_some(s, begin, k, out + done * s->m->shape.hidden, e));
        done += k;
    }
    return TARE_OK;
}

static tare_status service_embed(void *ctx, const tare_text *texts, int64_t n, float *out, tare_error *error)
{
    struct err e = {0};
    const tare_status status = embed_all(ctx, texts, n, out, &e);
    if (status && error) {
        error->code = status;
        snprintf(error->message, sizeof error->message, "%.*s", (int)sizeof error->message - 1, e.message);
    }
    return status;
}

tare_status embed_service_new(struct model *m, const struct tokenizer *t, struct embed_service **out, struct err *e)
{
    struct embed_service *s;
    TRY(mem_new((int64_t)sizeof *s, (void **)&s, e));
    s->m = m;
    s->tokenizer = t;
    s->view.n_layers = m->shape.layers;
    s->extension = (tare_embed_v1){
        .struct_size = sizeof s->extension, .ctx = s, .dim = service_dim, .identity = service_identity, .embed = service_embed};
    model_arena_init(m, &s->arena, "embedding");
    const tare_status status = mem_new(m->shape.layers * (int64_t)sizeof *s->view.layers, (void **)&s->view.layers, e);
    if (status) {
        embed_service_free(s);
        return status;
    }
    *out = s;
    return TARE_OK;
}

const tare_embed_v1 *embed_service_extension(const struct embed_service *s)
{
    return &s->extension;
}

void embed_service_free(struct embed_service *s)
{
    if (!s) return;
    kv_cache_free(s->m, &s->cache);
    mem_free(s->view.layers);
    token_ids_free(&s->ids);
    arena_free(&s->arena);
    mem_free(s);
}
