/* The flat layout of the parameters: fills tensors, units, layers, products, offsets, n_params and
 * n_own of m from m->shape and m->ranks. The arrays are allocated by mem_new and owned by m. */
#ifndef TARE_CORE_MODEL_LAYOUT_H
#define TARE_CORE_MODEL_LAYOUT_H

#include "model/model.h"

tare_status layout_make(struct model *m, struct err *e);
/* Replaces the base's layout with that of m->lora: its tensors by peft's names, and the offsets of
 * its groups. The product table, embed, final_norm and head stay those of the base. */
tare_status layout_make_adapters(struct model *m, struct err *e);
void layout_free(struct model *m);

/* Bytes of product p in the compute copy. */
int64_t model_product_bytes(const struct model *m, const struct model_product *p);
/* Offsets of the vectors in layer l's unit; all 0 once adapters have replaced the base's layout. */
struct layer_offsets model_layer_offsets(const struct model *m, int64_t l);

/* Allocate and free the buffers of the compute copy (compute_copy.c); weights and windows must
 * exist. */
tare_status compute_copy_new(struct model *m, struct err *e);
void compute_copy_free(struct model *m);
/* Makes the compute copy of unit u of the base from its fp32 weights `whole`: its products and,
 * where they are stored separately, its vectors. */
struct refresh_proof;
tare_status model_copy_unit(struct model *m, struct refresh_proof *proof, int64_t u, const float *whole, struct err *e);

/* Refuses a file with a tensor that is not in the model of its config.json: an additional layer,
 * bias or norm would be silently missing from the computation and from every checkpoint. Ignored
 * are the tensors that older versions of transformers wrote next to the weights, and a tied
 * head. */
struct safetensors;
bool layout_has(const struct model *m, const char *name);
tare_status layout_check_names(const struct model *m, const struct safetensors *file, const char *folder, struct err *e);

#endif
