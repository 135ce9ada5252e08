/* The flat layout of the parameters: fills tensors, units, layers, offsets, n_params and n_own of m from m->shape and m->ranks. The arrays are
 * mem_new'd and belong to m. */
#ifndef TARE_CORE_MODEL_LAYOUT_H
#define TARE_CORE_MODEL_LAYOUT_H

#include "model/model.h"

tare_status layout_make(struct model *m, struct err *e);
/* Replaces the base's layout with that of m->lora: its tensors by peft's names, and the offsets of its groups. The product
 * table, embed, final_norm and head stay those of the base. */
tare_status layout_make_adapters(struct model *m, struct err *e);
void layout_free(struct model *m);

/* Bytes of product p in the compute copy. */
int64_t model_product_bytes(const struct model *m, const struct model_product *p);
/* Offsets of the vectors in layer l's unit; all 0 once adapters have replaced the base's layout. */
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
