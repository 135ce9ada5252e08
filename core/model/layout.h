/* The flat layout of the parameters: fills tensors, units, layers, offsets, n_params and n_own of m from m->shape and m->ranks. The arrays are
 * mem_new'd and belong to m. */
#ifndef TARE_CORE_LAYOUT_H
#define TARE_CORE_LAYOUT_H

#include "model/model.h"

tare_status layout_make(struct model *m, struct err *e);

/* compute_copy.c: the buffers of the compute copy; weights and windows come before. */
tare_status compute_copy_new(struct model *m, struct err *e);
void compute_copy_free(struct model *m);

#endif
