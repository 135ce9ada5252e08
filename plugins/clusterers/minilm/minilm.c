/* minilm: sentence embeddings by a BERT encoder from a Hugging Face folder (all-MiniLM-L6-v2 and
 * models of the same form): WordPiece, mean pooling over all tokens (or [CLS], as the folder says),
 * L2 norm. Texts are packed, not padded; texts longer than max_length tokens are truncated. */
#include "../../common/built_in.h"
#include "bert.h"
#include "wordpiece.h"

#include <math.h>
#include <stdlib.h>

enum { P_MODEL, P_MAX_LENGTH, N_PARAMS };

static const tare_param PARAMS[N_PARAMS] = {
    TARE_PATH_PARAM("model", NULL, "Hugging Face folder with config.json, model.safetensors and tokenizer.json (or vocab.txt)",
                    TARE_PARAM_REQUIRED),
    {.key = "max_length",
     .fallback = "0",
     .doc = "largest number of tokens of a text, [CLS] and [SEP] included; 0: as in sentence_bert_config.json",
     .unit = "tokens",
     .max = 1000000,
     .type = TARE_PARAM_INT,
     .flags = TARE_PARAM_MIN | TARE_PARAM_MAX | TARE_PARAM_LOCKED_ON_RESUME},
};

struct minilm {
    struct bert bert;
    struct wordpiece pieces;
};

static void destroy(void *self)
{
    struct minilm *m = self;
    if (!m) return;
    wordpiece_close(&m->pieces);
    bert_close(&m->bert);
    free(m);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    if (values[P_MAX_LENGTH].i == 1 || values[P_MAX_LENGTH].i == 2)
        return tare_fail(error, TARE_E_RANGE, "max_length = %lld: must be 0 or at least 3, since [CLS] and [SEP] are two tokens",
                         (long long)values[P_MAX_LENGTH].i);
    struct minilm *m = calloc(1, sizeof *m);
    if (!m) return tare_fail(error, TARE_E_NOMEM, "no memory");
    tare_status status = wordpiece_open(&m->pieces, values[P_MODEL].s, error);
    if (!status) status = bert_open(&m->bert, values[P_MODEL].s, values[P_MAX_LENGTH].i, error);
    if (status) {
        destroy(m);
        return status;
    }
    *self = m;
    return TARE_OK;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    const struct minilm *s = self;
    (void)error;
    out->dim = s->bert.width;
    return TARE_OK;
}

struct text_order {
    int64_t size, index;
};

static int longest_first(const void *x, const void *y)
{
    const struct text_order *a = x, *b = y;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

struct part {
    const tare_text *texts;         /* of the whole call */
    const struct text_order *order; /* [n] of the call */
    int64_t n;
    int32_t *ids; /* memory for PART texts and their embeddings */
    float *embedding;
};

/* Computes ids and begin of the texts in the given order. */
static tare_status tokenize(const struct minilm *m, const struct part *p, int64_t *begin, tare_error *error)
{
    begin[0] = 0;
    for (int64_t i = 0; i < p->n; i++) {
        int64_t size = 0;
        const tare_status status =
            wordpiece_encode(&m->pieces, p->texts[p->order[i].index], m->bert.max_length, p->ids + begin[i], &size, error);
        if (status) return status;
        begin[i + 1] = begin[i] + size;
    }
    return TARE_OK;
}

enum { PART = 64 }; /* texts at a time, so that memory does not grow with the call */

static tare_status encode_part(const struct minilm *m, const struct part *p, float *out, tare_error *error)
{
    int64_t begin[PART + 1];
    const int64_t d = m->bert.width;
    tare_status status = tokenize(m, p, begin, error);
    if (!status) status = bert_encode(&m->bert, p->ids, begin, p->n, p->embedding, error);
    for (int64_t i = 0; i < p->n && !status; i++) {
        for (int64_t j = 0; j < d; j++) {
            if (!isfinite(p->embedding[i * d + j]))
                return tare_fail(error, TARE_E_NOT_FINITE, "the embedding of text %lld is not finite; the weights are damaged",
                                 (long long)p->order[i].index);
            out[p->order[i].index * d + j] = p->embedding[i * d + j];
        }
    }
    return status;
}

static tare_status encode(void *self, const tare_text *texts, int64_t n, float *out, tare_error *error)
{
    const struct minilm *m = self;
    if (n <= 0) return TARE_OK;
    struct text_order *order = malloc((size_t)n * sizeof *order);
    int32_t *ids = malloc((size_t)(PART * m->bert.max_length) * sizeof *ids);
    float *embedding = malloc((size_t)(PART * m->bert.width) * sizeof *embedding);
    tare_status status =
        order && ids && embedding ? TARE_OK : tare_fail(error, TARE_E_NOMEM, "no memory for %lld texts", (long long)n);
    for (int64_t i = 0; i < n && !status; i++) order[i] = (struct text_order){texts[i].size, i};
    if (!status) qsort(order, (size_t)n, sizeof *order, longest_first);
    for (int64_t first = 0; first < n && !status; first += PART) {
        const struct part p = {texts, order + first, n - first < PART ? n - first : PART, ids, embedding};
        status = encode_part(m, &p, out, error);
    }
    free(order);
    free(ids);
    free(embedding);
    return status;
}

static tare_status identity(const void *self, const tare_stream *out, tare_error *error)
{
    const struct minilm *m = self;
    (void)error;
    return tare_print(out, "weights=%016llx vocabulary=%016llx tokens=%lld pooling=%s", (unsigned long long)m->bert.hash,
                      (unsigned long long)m->pieces.hash, (long long)m->bert.max_length, m->bert.pool_cls ? "cls" : "mean");
}

static const tare_encoder FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS,
    .create = create,
    .destroy = destroy,
    .sizes = sizes,
    .encode = encode,
    .identity = identity,
};

BUILT_IN("minilm", .kind = TARE_KIND_ENCODER,
         .summary = "sentence embeddings by a BERT encoder (all-MiniLM-L6-v2 and similar models) from a Hugging Face folder",
         .about = ABOUT("arXiv 1908.10084"), TARE_PARAMS(PARAMS, N_PARAMS), .calls = TARE_CALLS_CONCURRENT)
