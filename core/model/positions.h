/* The table of rotary positions: cos and sin of every position that the model has, made once. It never moves: what a backend has recorded with its address (decode_begin of kernels.h) stays valid. */
#ifndef TARE_CORE_POSITIONS_H
#define TARE_CORE_POSITIONS_H

#include "model/model.h"

/* The memory of m->rope; its values, [max_position, D] cos | sin, from m->shape. */
tare_status positions_new(struct model *m, struct err *e);
tare_status positions_fill(struct model *m, struct err *e);
void positions_free(struct model *m);

#endif
