/* A BERT encoder read from a Hugging Face folder (config.json, model.safetensors in f16, bf16 or
 * f32), and sentence embeddings by it.
 *
 *   h_0 = LN(word[id] + position[i] + type[0])
 *   h'  = LN(h + O softmax(Q K^T / sqrt D) V),   Q, K, V = linear maps of h, by heads
 *   h   = LN(h' + W2 gelu(W1 h' + b1) + b2)      for each layer (Devlin et al. 2019)
 *   E   = e / ||e||_2,  e = mean of the last h over all tokens of the text ([CLS] and [SEP]
 *                       included), or h of [CLS]
 *
 * Letters: T tokens of a group of texts (packed, no padding), C width, H heads, D = C/H, F inner
 * width, L layers. Read only after bert_open. */
#ifndef TARE_CLUSTERERS_BERT_H
#define TARE_CLUSTERERS_BERT_H

#include "../kmeans/safetensors.h"
#include "kernels.h"

struct bert_layer {
    float *qkv, *out, *up, *down;                     /* packed: [3C,C], [C,C], [F,C], [C,F] */
    float *qkv_bias, *out_bias, *up_bias, *down_bias; /* padded to 16 */
    float *gain1, *bias1, *gain2, *bias2;             /* [C] */
};

struct bert {
    struct safetensors file;
    char *path; /* of the file */
    const struct bert_kernels *kernels;
    int64_t width, layers, heads, inner, vocabulary, positions, max_length;
    int pool_cls;
    float eps;
    const struct tensor *words; /* stays in the file's type */
    float *position;            /* [positions, C], type[0] added */
    float *gain, *bias;
    struct bert_layer *layer;
    float *memory; /* all floats above */
    uint64_t hash; /* of the weights */
};

/* max_length 0: as in sentence_bert_config.json, else all positions. */
tare_status bert_open(struct bert *b, const char *folder, int64_t max_length, tare_error *error);
void bert_close(struct bert *b);
/* Embeds n texts of ids, text i = ids[begin[i] .. begin[i+1]). out: [n, C]. */
tare_status bert_encode(const struct bert *b, const int32_t *ids, const int64_t *begin, int64_t n, float *out, tare_error *error);

#endif
