/* Adds the gradients of micro-batches to the sums of an optimizer step.
 *
 * The gradient of a unit is computed in a window that starts at zero. grads_end adds the window to
 * the sums: first rank 0's window, then rank 1's, and so on, each rank for its own slice.
 * Micro-batch i runs on rank i mod R in round i / R, so every sum is the chain
 *
 *   ((0 + g_0) + g_1) + g_2 + ...        over all micro-batches of the minibatch, in their order
 *
 * for every R, and the weights are bit-identical on every number of ranks. A tree would need
 * log2(summands) more copies of the gradient on one rank; the chain needs one window.
 *
 * One rank needs no window for the matrices of layers: matmul_dw_apart computes g_i in registers
 * and adds it to the sums (bit-identical, with a third of the memory traffic). Its window of a
 * layer then holds only norms and biases.
 *
 * Where transfers overlap with computation (comm.h, overlaps), grads_end only starts sending a
 * window, and the next grads_end adds it: meanwhile the layer below is computed in a second window.
 * One transfer is in progress at a time; the order of all additions stays the same. */
#ifndef TARE_CORE_MODEL_GRADS_H
#define TARE_CORE_MODEL_GRADS_H

#include "model/model.h"
#include "model/moved.h"

struct grads {
    struct model *m;
    float *sum;      /* [n_own] */
    float *ends;     /* window of the unit with the head or the embedding */
    float *layer[2]; /* windows of layers, which alternate where transfers overlap */
    float *received; /* the ranks' slices of a window; NULL on one rank */
    int current;     /* index of the layer window in use */
    int64_t pending; /* unit being sent to received; -1: none */
    int active;      /* the first `active` ranks have a micro-batch in this round */
    int64_t sum_bytes, window_bytes;
    struct moved_digests moved;
    int64_t pending_at; /* offset of the slices being sent (moved.h) */
};

/* Destination of a unit's gradient, at the unit's offsets. */
struct unit_grads {
    float *matrix;
    float *vector; /* norms and biases: always in the window */
    bool apart;    /* matrix points into the sums, which matmul_dw_apart adds to; otherwise into the window */
};

tare_status grads_new(struct model *m, struct grads *out, struct err *e);
void grads_free(struct grads *g);
/* Returns the zeroed window of unit u. At most two are open: the head's and one other. */
struct unit_grads grads_begin(struct grads *g, int64_t u);
/* Returns the window of the unit with the head, with its current contents. */
float *grads_head(const struct grads *g);
/* Adds the windows of all active ranks to the sums, at the latest with the first unit, which is the
 * last of a pass. Collective. */
tare_status grads_end(struct grads *g, int64_t u, struct err *e);

/* Checks that all slices arrived as they were sent. Collective; call it before the sums are
 * used. */
tare_status grads_check(struct grads *g, struct err *e);

#endif
