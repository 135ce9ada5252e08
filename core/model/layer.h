/* One layer, forward and backward, on T rows. Sampling, training and the recomputation in the
 * backward pass call the same layer_forward.
 *
 *   n1 = rms(x)      qkv = n1 Wqkv^T + b   (Qwen3: q, k normed per head)   q, k rotated by position
 *   a = attention(qkv)                     x2 = x + a Wo^T
 *   n2 = rms(x2)     gu = n2 Wgu^T         m = silu(gate) * up             out = x2 + m Wdown^T
 *
 * With model.dtype = bf16 every pass rounds q, k and v to bf16 before attention, the output of
 * attention before Wo, and gate and up before the activation; they are kept for the backward pass
 * in that precision.
 *
 * These are the equations of Llama. Depending on the model's shape n1 and n2 may be x and x2
 * themselves; the products with Wo and Wdown may be normed before they are added, with a factor r:
 * out = x2 + r rms(m Wdown^T); silu may be GELU; and a layer may rotate no positions or attend to a
 * window of them. */
#ifndef TARE_CORE_MODEL_LAYER_H
#define TARE_CORE_MODEL_LAYER_H

#include "model/lora.h"
#include "model/model.h"

struct layer_acts {   /* for T rows; fields marked * are read by the backward pass only and may be NULL */
    enum dtype dtype; /* of norm1, norm2, act and att, which products round */
    void *norm1;      /* [T, C] */
    float *rms1;      /* [T] * */
    float *raw;       /* [T, (H+2J)D] qkv before the q and k norms, if there are any * */
    float *rms_q;     /* [T, H] * */
    float *rms_k;     /* [T, J] * */
    float *qkv;       /* [T, (H+2J)D] output of the product; then rotated in place */
    /* [T, (H+2J)D] in bf16, one for each layer, where all layers share one qkv buffer; NULL: qkv
     * is kept itself * */
    void *kept_qkv;
    void *att;      /* [T, HD] */
    float *stats;   /* [T, H, 2] * */
    float *mid;     /* [T, C] x2 */
    void *norm2;    /* [T, C] */
    float *rms2;    /* [T] * */
    float *gate_up; /* [T, 2F] output of the product */
    /* [T, 2F] in bf16, one for each layer, where all layers share one gate_up buffer; NULL:
     * gate_up is kept itself * */
    void *kept_gate_up;
    void *act;             /* [T, F] */
    float *after1;         /* [T, C] a Wo^T if it is normed, else NULL */
    float *after2;         /* [T, C] m Wdown^T if it is normed; sampling uses one buffer for both */
    float *rms_after1;     /* [T] * */
    float *rms_after2;     /* [T] * */
    struct lora_rows lora; /* shared by all layers except for the kept u */
};

/* The shape of attention without a window. layer_window returns the window of layer l; 0: none. */
struct attn_shape model_attn_shape(const struct model *m);
int64_t layer_window(const struct model_shape *s, int64_t l);
/* Returns layer l's table of positions; NULL: the layer has none. */
const float *layer_rope(const struct model *m, int64_t l);
/* Rotates q and k of qkv[T, (H+2J)D] by their positions in layer l. inverse: applies the
 * transpose. */
void layer_rotate(const struct model *m, int64_t l, float *qkv, const struct forward_batch *b, int inverse);
/* x[t, C] *= scale; scale 0 leaves x unchanged. */
void layer_scale_rows(const struct model *m, float *x, int64_t t, double scale);
/* x[T, C] = embedding of the batch's ids, times embed_scale: the first layer's input. */
void layer_embed_rows(const struct model *m, const struct forward_batch *b, float *x);
/* hidden[n, C] = rms(x), divided by logits_divisor if the family has one, so that its product with
 * the head is the logits. rms may be NULL; hidden may be x. */
void layer_final_norm(const struct model *m, const float *x, float *rms, float *hidden, int64_t n);
/* Precision of rows that only products read: bf16 where products round them anyway and the backend
 * supports it. */
enum dtype layer_rows_dtype(const struct model *m);
/* Return qkv and gate_up as kept for the backward pass. */
struct product_rows layer_kept_qkv(const struct layer_acts *a);
struct product_rows layer_kept_gate_up(const struct layer_acts *a);
/* Allocates buffers for T rows from a; with `training` also those that only the backward pass
 * reads. Buffers already set in *out stay: start from {0}, or from another layer's buffers. */
tare_status layer_acts_new(const struct model *m, int64_t t, bool training, struct arena *a, struct layer_acts *out, struct err *e);
struct layer_rows {
    const float *x;
    float *out;            /* may be x */
    bool normed;           /* a->norm1 holds rms(x) already */
    const float *next;     /* weights of the norm that follows out; NULL: the caller computes it */
    void *next_y;          /* output of that norm */
    enum dtype next_dtype; /* its precision */
};
/* Computes a layer: out[T, C], which may be x if a->mid is not needed afterwards. out NULL omits
 * the last product (recomputation). Returns true if the norm r.next was computed too. */
bool layer_forward(const struct model *m, int64_t l, struct layer_rows r, const struct layer_acts *a, struct kv_layer kv,
                   const struct forward_batch *b);
/* Recomputes norm1, norm2 and act, bit-identical, from x, mid and the kept gate_up; with
 * RECOMPUTE_MLP gate_up too. */
void layer_recompute(const struct model *m, int64_t l, const float *x, const struct layer_acts *a, int64_t t,
                     enum recompute recompute);
/* Copies the batch's index arrays to a, or uses the host's arrays where operations can read them.
 * Descriptors of sequences stay on the host. */
tare_status layer_batch_to_backend(const struct model *m, const struct forward_batch *b, struct arena *a, struct forward_batch *out,
                                   struct err *e);
/* Runs all layers on a batch whose arrays are in the backend's memory: x [T, C], hidden [n_out, C].
 * Checks nothing. */
void layer_forward_rows(struct model *m, struct kv_cache *cache, const struct forward_batch *b, const struct layer_acts *acts,
                        float *x, float *hidden);
/* Checks positions, rows and ids of a batch against the model and the cache. */
tare_status layer_check_batch(struct model *m, const struct kv_cache *cache, int64_t n_layers, const struct forward_batch *b,
                              struct err *e);

#endif
