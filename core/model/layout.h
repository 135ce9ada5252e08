/* The flat layout of the parameters: fills tensors, units, layers, offsets, n_params and n_own of m from m->shape and m->ranks. The arrays are
 * mem_new'd and belong to m. */
#ifndef TARE_CORE_MODEL_LAYOUT_H
#define TARE_CORE_MODEL_LAYOUT_H

#include "model/model.h"

tare_status layout_make(struct model *m, struct err *e);
/* In its place the layout of m->lora: its tensors by peft's names, and where its groups begin. layers, embed, layer_final_norm and head are the base's. */
tare_status layout_make_adapters(struct model *m, struct err *e);
void layout_free(struct model *m);

/* Product i of the packed ones (see packed in model.h): its size [n, k], its unit and its place there (0 where the base has no layout). */
struct product {
    int64_t unit, offset, n, k;
};
struct product model_product_of(const struct model *m, int64_t i);
/* Its bytes in the compute copy, and whether they are int8. */
int64_t model_product_bytes(const struct model *m, int64_t i);
int model_product_int8(const struct model *m, int64_t i);
/* The places in layer l's unit; all 0 where the base has no layout. */
struct layer_offsets model_layer_offsets(const struct model *m, int64_t l);

/* compute_copy.c: the buffers of the compute copy; weights and windows come before. */
tare_status compute_copy_new(struct model *m, struct err *e);
void compute_copy_free(struct model *m);
/* The compute copy of unit u of the base: its products and, where they lie apart, its vectors. whole: its fp32 weights. */
struct refresh_proof;
tare_status model_copy_unit(struct model *m, struct refresh_proof *proof, int64_t u, const float *whole, struct err *e);

/* Refuses a file with a tensor that the model of its config.json does not have: a layer more, a bias or a norm would be left out of the computation and of
 * every checkpoint without a word. Passed over: what older versions of transformers wrote beside the weights, and a head that is tied. */
struct safetensors;
bool layout_has(const struct model *m, const char *name);
tare_status layout_check_names(const struct model *m, const struct safetensors *file, const char *folder, struct err *e);

#endif
