/* The table of rotary positions: cos and sin of every position that the model has, made once. It never moves: what a backend has recorded with its address (decode_begin of kernels.h) stays valid. */
#ifndef TARE_CORE_MODEL_POSITIONS_H
#define TARE_CORE_MODEL_POSITIONS_H

#include "model/model.h"

/* R: the elements of a head that positions turn. */
int64_t positions_rope_width(const struct model_shape *s);
/* The memory of m->rope and m->rope_local; their values, [max_position, R] cos | sin, from m->shape. */
tare_status positions_new(struct model *m, struct err *e);
tare_status positions_fill(struct model *m, struct err *e);
void positions_free(struct model *m);

#endif
