/* Adds the gradients of micro-batches to the sums of an optimizer step.
 *
 * The gradient of a unit is made in a window of zeros; grads_end then adds it to the sums: first rank 0's window, then rank 1's, and so on, each rank
 * for its own piece. Micro-batch i runs on rank i mod R in round i / R, so every sum is the chain
 *
 *   ((0 + g_0) + g_1) + g_2 + ...            over all micro-batches of the minibatch, in their order
 *
 * whatever R is, and the weights get the same bits on every number of ranks. A tree would need log2 of the number of summands more copies of the gradient on one
 * rank; the chain needs one window.
 *
 * One rank needs no window for the matrices of layers: matmul_dw_apart makes g_i in registers and adds it to the sums (the same bits, and a third of the
 * memory's traffic). Its window of a layer then holds norms and biases only.
 *
 * Where transfers run beside the computation (comm.h, overlaps) grads_end only begins to send a window, and it is added by the next grads_end: the layer
 * below is computed in a second window meanwhile. One transfer is under way at a time; the order of all sums stays the same. */
#ifndef TARE_CORE_MODEL_GRADS_H
#define TARE_CORE_MODEL_GRADS_H

#include "model/model.h"
#include "model/moved.h"

struct grads {
    struct model *m;
    float *sum; /* [n_own] */
    float *ends,
        *layer[2];   /* windows: the unit that holds the head or the embedding; the others, in turns where transfers overlap */
    float *received; /* the ranks' pieces of a window; NULL on one rank */
    int turn;        /* the window of layers that is open */
    int64_t pending; /* the unit whose pieces are being sent to received; -1: none */
    int active;      /* ranks that have a micro-batch in this round: the first ones */
    int64_t sum_bytes, window_bytes;
    struct moved_sums moved;
    int64_t pending_at; /* of the pieces that are being sent (moved.h) */
};

/* Where the gradient of a unit is made, at the unit's offsets. */
struct unit_grads {
    float *matrix;
    float *vector; /* norms and biases: the window */
    bool apart;    /* matrix is the sums, which matmul_dw_apart adds to; else it is the window */
};

tare_status grads_new(struct model *m, struct grads *out, struct err *e);
void grads_free(struct grads *g);
/* The window of unit u, zero. Two may be open: the head's, and one other. */
struct unit_grads grads_begin(struct grads *g, int64_t u);
/* The window of the unit with the head, as it is. */
float *grads_head(const struct grads *g);
/* Adds the windows of all active ranks to the sums, at the latest with the first unit, which comes last. Collective. */
tare_status grads_end(struct grads *g, int64_t u, struct err *e);

/* Whether all pieces arrived as they were sent. Collective; before the sums are used. */
tare_status grads_check(struct grads *g, struct err *e);

#endif
