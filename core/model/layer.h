/* One layer, forward and backward, on T rows. Sampling, training and the recomputation in the backward pass call the same layer_forward.
 *
 *   n1 = rms(x)   qkv = n1 Wqkv^T + b   (Qwen3: q, k normed per head)   q, k turned by position   a = attention(qkv)   x2 = x + a Wo^T
 *   n2 = rms(x2)  gu = n2 Wgu^T         m = silu(gate) * up             out = x2 + m Wdown^T
 *
 * With model.dtype = bf16 every pass rounds q, k and v to bf16 before attention, its output before Wo, and gate and up before the activation; so they are
 * kept for the backward pass.
 *
 * That is Llama. By the model's shape n1 and n2 may be x and x2 themselves, the products with Wo and Wdown may have norms of their own before they are
 * added, and a factor r:  out = x2 + r rms(m Wdown^T); silu may be GELU, and a layer may turn no positions or see a window of them only.
 */
#ifndef TARE_CORE_MODEL_LAYER_H
#define TARE_CORE_MODEL_LAYER_H

#include "model/lora.h"
#include "model/model.h"

struct layer_acts {        /* rows T; what only the backward pass reads may be NULL (*) */
    enum dtype dtype;      /* of norm1, norm2, act and att, which products round */
    void *norm1;           /* [T, C] */
    float *rms1;           /* [T] * */
    float *raw;            /* [T, (H+2J)D] qkv before the q and k norms, where there are any * */
    float *rms_q;          /* [T, H] * */
    float *rms_k;          /* [T, J] * */
    float *qkv;            /* [T, (H+2J)D] as the product gives it; then turned */
    void *kept_qkv;        /* [T, (H+2J)D] in bf16, of each layer where qkv is one buffer of all; NULL: qkv is kept itself * */
    void *att;             /* [T, HD] */
    float *stats;          /* [T, H, 2] * */
    float *mid;            /* [T, C] x2 */
    void *norm2;           /* [T, C] */
    float *rms2;           /* [T] * */
    float *gate_up;        /* [T, 2F] as the product gives it */
    void *kept_gate_up;    /* [T, 2F] in bf16, of each layer where gate_up is one buffer of all; NULL: gate_up is kept itself * */
    void *act;             /* [T, F] */
    float *after1;         /* [T, C] a Wo^T where it has a norm, else NULL */
    float *after2;         /* [T, C] m Wdown^T, the same; sampling uses one buffer for the two */
    float *rms_after1;     /* [T] * */
    float *rms_after2;     /* [T] * */
    struct lora_rows lora; /* the same for all layers but what one keeps */
};

/* Of a layer without a window; layer_window is that of layer l, 0: none. */
struct attn_shape model_attn_shape(const struct model *m);
int64_t layer_window(const struct model_shape *s, int64_t l);
/* Layer l's table of positions; NULL: it has none. */
const float *layer_rope(const struct model *m, int64_t l);
/* q and k of layer l turned by their positions. inverse: the transpose. */
void layer_turn(const struct model *m, int64_t l, float *qkv, const struct forward_batch *b, int inverse);
/* x[t, C] *= scale; 0: stays. */
void layer_scale_rows(const struct model *m, float *x, int64_t t, double scale);
/* x[T, C] of the first layer. */
void layer_embed_rows(const struct model *m, const struct forward_batch *b, float *x);
/* hidden[n, C] = rms(x), over logits_divisor where there is one, so that its product with the head is the logits. rms may be NULL, hidden x. */
void layer_final_norm(const struct model *m, const float *x, float *rms, float *hidden, int64_t n);
/* Of rows that products alone read: bf16 where products round them anyway and the backend can keep them so. */
enum dtype layer_rows_dtype(const struct model *m);
/* For the backward pass. */
struct product_rows layer_kept_qkv(const struct layer_acts *a);
struct product_rows layer_kept_gate_up(const struct layer_acts *a);
/* Room for T rows from a; training: also what only the backward pass reads. What *out has already stays: {0}, or buffers of another layer. */
tare_status layer_acts_new(const struct model *m, int64_t t, bool training, struct arena *a, struct layer_acts *out, struct err *e);
struct layer_rows {
    const float *x;
    float *out;            /* may be x */
    bool normed;           /* a->norm1 has rms(x) already */
    const float *next;     /* the norm that follows out, or NULL: the caller's */
    void *next_y;          /* where it goes */
    enum dtype next_dtype; /* and how */
};
/* out[T, C] may be x when a->mid is not needed afterwards; NULL: the last product is left out (recomputation). True: r.next was done too. */
bool layer_forward(const struct model *m, int64_t l, struct layer_rows r, const struct layer_acts *a, struct kv_layer kv,
                   const struct forward_batch *b);
/* norm1, norm2 and act once more from x, mid and what is kept of gate_up, with RECOMPUTE_MLP gate_up too: the same bits. */
void layer_again(const struct model *m, int64_t l, const float *x, const struct layer_acts *a, int64_t t, enum recompute recompute);
/* The batch with its index arrays where operations may read them: copies in a, or the host's own. Descriptors of sequences stay where they are. */
tare_status layer_batch_to_backend(const struct model *m, const struct forward_batch *b, struct arena *a, struct forward_batch *out,
                                   struct err *e);
/* The pass over a batch whose arrays lie with the backend: x [T, C], hidden [n_out, C]. Checks nothing. */
void layer_forward_rows(struct model *m, struct kv_cache *cache, const struct forward_batch *b, const struct layer_acts *acts,
                        float *x, float *hidden);
/* Checks positions, rows and ids of a batch against the model and the cache. */
tare_status layer_check_batch(struct model *m, const struct kv_cache *cache, int64_t n_layers, const struct forward_batch *b,
                              struct err *e);

#endif
