/* The flat layout of the parameters: fills tensors, unit_begin, layers, offsets and n_params of m from m->shape. The arrays are mem_new'd
 * and belong to m. */
#ifndef TARE_CORE_LAYOUT_H
#define TARE_CORE_LAYOUT_H

#include "model/model.h"

tare_status layout_make(struct model *m, struct err *e);

#endif
