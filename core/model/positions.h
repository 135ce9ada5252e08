/* The table of rotary positions: cos and sin of every position of the model, made once. It never
 * moves, so the addresses that a backend has recorded (decode_begin of kernels.h) stay valid. */
#ifndef TARE_CORE_MODEL_POSITIONS_H
#define TARE_CORE_MODEL_POSITIONS_H

#include "model/model.h"

/* Returns R, the number of elements of a head that positions rotate. */
int64_t positions_rope_width(const struct model_shape *s);
/* Allocate m->rope and m->rope_local, and fill them from m->shape: [max_position, R] cos | sin. */
tare_status positions_new(struct model *m, struct err *e);
tare_status positions_fill(struct model *m, struct err *e);
void positions_free(struct model *m);

#endif
