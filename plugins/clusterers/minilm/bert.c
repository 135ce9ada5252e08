#include "bert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* tokens of a group that goes through all layers together, so that its activations stay in the
 * cache */
enum { TOKENS = 360 };

struct scratch {
    float *h, *qkv, *mixed, *inner; /* [T, C], [T, 3C], [T, C], [T, F] */
    float *keys, *values,
        /* of one head of one text: packed [L', D], packed [L, D], [L, L'], L' = L rounded up to a
         * multiple of 16 */
        *scores;
    void *memory;
};

static int64_t round_up_16(int64_t n)
{
    return (n + PANEL - 1) / PANEL * PANEL;
}

static tare_status scratch_new(const struct bert *b, int64_t tokens, int64_t longest, struct scratch *s, tare_error *error)
{
    const int64_t c = b->width, d = c / b->heads, l = round_up_16(longest);
    const int64_t sizes[] = {tokens * c, tokens * 3 * c, tokens * c, tokens * b->inner, l * d, l * d, longest * l};
    float **const parts[] = {&s->h, &s->qkv, &s->mixed, &s->inner, &s->keys, &s->values, &s->scores};
    int64_t total = 0;
    for (int i = 0; i < 7; i++) total += round_up_16(sizes[i]);
    float *at = s->memory = aligned_alloc(64, (size_t)total * sizeof(float));
    if (!at) return tare_fail(error, TARE_E_NOMEM, "no memory for %lld tokens", (long long)tokens);
    for (int i = 0; i < 7; i++) {
        *parts[i] = at;
        at += round_up_16(sizes[i]);
    }
    return TARE_OK;
}

static float from_half(uint16_t bits, enum tensor_type type)
{
    uint32_t u = (uint32_t)bits << 16;
    if (type == TENSOR_F16) {
        const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
        if (!exponent) return (sign ? -0x1p-24f : 0x1p-24f) * (float)fraction;
        u = sign | (exponent == 31 ? 0x7F800000u : (exponent + 112) << 23) | fraction << 13;
    }
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* h[t] = LN(word[id] + position) */
static tare_status embed(const struct bert *b, const int32_t *ids, int64_t n, float *h, tare_error *error)
{
    const int64_t c = b->width;
    for (int64_t t = 0; t < n; t++) {
        if (ids[t] < 0 || ids[t] >= b->vocabulary)
            return tare_fail(error, TARE_E_RANGE, "invalid token id %d: the model has %lld words", ids[t],
                             (long long)b->vocabulary);
        const float *position = b->position + t * c;
        if (b->words->type == TENSOR_F32) {
            memcpy(h + t * c, b->words->data + ids[t] * c * 4, (size_t)c * 4);
            for (int64_t i = 0; i < c; i++) h[t * c + i] += position[i];
        } else {
            const unsigned char *word = b->words->data + ids[t] * c * 2;
            for (int64_t i = 0; i < c; i++)
                h[t * c + i] = from_half((uint16_t)(word[2 * i] | word[2 * i + 1] << 8), b->words->type) + position[i];
        }
    }
    b->kernels->norm(&(struct bert_norm){.x = h, .gain = b->gain, .bias = b->bias, .t = n, .n = c, .eps = b->eps});
    return TARE_OK;
}

/* mixed[:, head] = softmax(Q K^T / sqrt D) V for the n tokens of one text */
static void attend_heads(const struct bert *b, const float *qkv, int64_t n, float *mixed, struct scratch *s)
{
    const int64_t c = b->width, d = c / b->heads, l = round_up_16(n);
    const float scale = 1 / sqrtf((float)d);
    for (int64_t head = 0; head < b->heads; head++) {
        const float *q = qkv + head * d;
        bert_pack(s->keys, q + c, 3 * c, n, d, 0);
        bert_pack(s->values, q + 2 * c, 3 * c, d, n, 1);
        b->kernels->product(
            &(struct bert_product){.y = s->scores, .ldy = l, .x = q, .ldx = 3 * c, .packed = s->keys, .t = n, .n = l, .k = d});
        b->kernels->softmax(s->scores, l, n, n, scale);
        b->kernels->product(&(struct bert_product){
            .y = mixed + head * d, .ldy = c, .x = s->scores, .ldx = l, .packed = s->values, .t = n, .n = d, .k = n});
    }
}

static void run_layer(const struct bert *b, const struct bert_layer *y, const int64_t *begin, int64_t n_texts, struct scratch *s)
{
    const struct bert_kernels *k = b->kernels;
    const int64_t c = b->width, f = b->inner, t = begin[n_texts] - begin[0];
    const struct bert_product qkv = {s->qkv, 3 * c, s->h, c, y->qkv, y->qkv_bias, t, 3 * c, c};
    /* qkv is no longer needed */
    const struct bert_product out = {s->qkv, c, s->mixed, c, y->out, y->out_bias, t, c, c};
    const struct bert_product up = {s->inner, f, s->h, c, y->up, y->up_bias, t, f, c};
    const struct bert_product down = {s->mixed, c, s->inner, f, y->down, y->down_bias, t, c, f};
    k->product(&qkv);
    for (int64_t i = 0; i < n_texts; i++) {
        const int64_t first = begin[i] - begin[0];
        attend_heads(b, s->qkv + first * 3 * c, begin[i + 1] - begin[i], s->mixed + first * c, s);
    }
    k->product(&out);
    k->norm(&(struct bert_norm){s->h, s->qkv, y->gain1, y->bias1, t, c, b->eps});
    k->product(&up);
    k->gelu(s->inner, t * f);
    k->product(&down);
    k->norm(&(struct bert_norm){s->h, s->mixed, y->gain2, y->bias2, t, c, b->eps});
}

/* out = e / ||e||, e = mean over n rows of h, or the first; sums in double, rows in order */
static void pool_tokens(const struct bert *b, const float *h, int64_t n, float *out)
{
    const int64_t c = b->width, rows = b->pool_cls ? 1 : n;
    double squares = 0;
    for (int64_t i = 0; i < c; i++) {
        double sum = 0;
        for (int64_t t = 0; t < rows; t++) sum += (double)h[t * c + i];
        out[i] = (float)(sum / (double)rows);
        squares += (double)out[i] * (double)out[i];
    }
    const double scale = squares > 0 ? 1 / sqrt(squares) : 0;
    for (int64_t i = 0; i < c; i++) out[i] = (float)((double)out[i] * scale);
}

struct sequences {
    const int32_t *ids;
    const int64_t *begin; /* [n + 1] */
    int64_t n;
};

static tare_status encode_group(const struct bert *b, struct sequences q, struct scratch *s, float *out, tare_error *error)
{
    const int64_t *begin = q.begin;
    for (int64_t i = 0; i < q.n; i++) {
        const tare_status status =
            embed(b, q.ids + begin[i], begin[i + 1] - begin[i], s->h + (begin[i] - begin[0]) * b->width, error);
        if (status) return status;
    }
    for (int64_t y = 0; y < b->layers; y++) run_layer(b, &b->layer[y], begin, q.n, s);
    for (int64_t i = 0; i < q.n; i++)
        pool_tokens(b, s->h + (begin[i] - begin[0]) * b->width, begin[i + 1] - begin[i], out + i * b->width);
    return TARE_OK;
}

tare_status bert_encode(const struct bert *b, const int32_t *ids, const int64_t *begin, int64_t n, float *out, tare_error *error)
{
    struct scratch s;
    int64_t longest = 0;
    for (int64_t i = 0; i < n; i++)
        if (begin[i + 1] - begin[i] > longest) longest = begin[i + 1] - begin[i];
    tare_status status = scratch_new(b, longest > TOKENS ? longest : TOKENS, longest, &s, error);
    if (status) return status;
    for (int64_t first = 0, next; first < n && !status; first = next) {
        for (next = first + 1; next < n && begin[next + 1] - begin[first] <= TOKENS;) next++;
        status = encode_group(b, (struct sequences){ids, begin + first, next - first}, &s, out + first * b->width, error);
    }
    free(s.memory);
    return status;
}
