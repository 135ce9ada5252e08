/* Gradients on their way from a micro-batch into the sums of an optimizer step.
 *
 * The gradient of a unit is made in a window of zeros; grads_end then adds it to the sums: first rank 0's window, then rank 1's, and so on, each rank
 * for its own piece. Micro-batch i runs on rank i mod R in round i / R, so every sum is the chain
 *
 *   ((0 + g_0) + g_1) + g_2 + ...            over all micro-batches of the minibatch, in their order
 *
 * whatever R is, and the weights get the same bits on every number of ranks. A tree would need log2 of the number of summands more copies of the gradient on one
 * rank; the chain needs one window. */
#ifndef TARE_CORE_GRADS_H
#define TARE_CORE_GRADS_H

#include "model/model.h"

struct grads {
    struct model *m;
    float *sum;          /* [n_own] */
    float *ends, *layer; /* windows: the unit that holds the head or the embedding; the others */
    float *received;     /* the ranks' pieces of a window; NULL on one rank */
    int active;          /* ranks that have a micro-batch in this round: the first ones */
    int64_t sum_bytes, window_bytes;
};

tare_status grads_new(struct model *m, struct grads *out, struct err *e);
void grads_free(struct grads *g);
/* The window of unit u, zero. Two may be open: the head's, and one other. */
float *grads_begin(struct grads *g, int64_t u);
/* The window of the unit with the head, as it is. */
float *grads_head(const struct grads *g);
/* Adds the windows of all active ranks to the sums. Collective. */
tare_status grads_end(struct grads *g, int64_t u, struct err *e);

#endif
