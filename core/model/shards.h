/* The fp32 masters cut over the ranks of a job, as ZeRO-3 does it (Rajbhandari et al. 2020, arXiv
 * 1910.02054; FSDP's flat units, Zhao et al. 2023, arXiv 2304.11277).
 *
 * A unit (embedding, each layer, final norm and head) is one flat buffer; R ranks hold R equal
 * slices of it, padded with zeros. A rank's own slices of all units are adjacent in buffers of
 * n_own floats: weights, sums of gradients, moments. A unit is gathered whole into a window before
 * it is used, and is valid until the window takes the next one. On one rank, and with zero1 and
 * none, the weights hold every unit whole and nothing is copied.
 *
 * Passes need no gathering: the forward and the backward pass run on the compute copy (packed
 * products, norms, biases, embedding), which every rank has whole for sampling. So the fp32 units
 * are gathered once an optimizer step, when the compute copy is rebuilt.
 *
 * A slice is a whole number of the unit's blocks (UNIT_BLOCKS of them), so that sums over blocks
 * are the same numbers for every R.
 *
 * Functions that return a status are collective where the model is sharded: all ranks call them in
 * the same order. */
#ifndef TARE_CORE_MODEL_SHARDS_H
#define TARE_CORE_MODEL_SHARDS_H

#include "model/model.h"

enum { UNIT_BLOCKS = 240 }; /* divisible by 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 20, 24, 30 */

/* Returns whether this rank holds the masters whole. */
bool model_is_whole(const struct model *m);
int64_t shards_unit_count(const struct model *m); /* L + 2 */
/* Units first .. end-1 have weights: all units, or with adapters the layers. */
int64_t shards_unit_first(const struct model *m);
int64_t shards_unit_end(const struct model *m);
/* The unit that holds the head: 0 if tied, else L + 1. */
int64_t model_head_unit(const struct model *m);
int64_t shards_unit_slice(const struct model *m, int64_t u); /* floats of a slice */
/* Offset of this rank's slice of unit u: in a buffer of own slices, and in the weights. */
int64_t shards_unit_own(const struct model *m, int64_t u);
int64_t shards_unit_own_weights(const struct model *m, int64_t u);

/* Allocate and free the windows where the model is sharded; layout_make must come first. */
tare_status shards_new(struct model *m, struct err *e);
void shards_free(struct model *m);
/* Returns unit u whole. A layer is valid until the layer after the next is requested, the others
 * until the weights change. */
tare_status shards_unit_weights(struct model *m, int64_t u, const float **out, struct err *e);
/* Starts gathering unit u for the next shards_unit_weights. */
tare_status shards_unit_prefetch(struct model *m, int64_t u, struct err *e);
/* Copies those of n floats at `offset` of the flat layout that this rank holds from host memory
 * into the weights. */
void shards_upload(struct model *m, int64_t offset, const float *host, int64_t n);

/* Adds bytes of the backend's memory to *hash (XXH3), through the host. */
tare_status shards_backend_hash(const struct model *m, const void *data, int64_t bytes, uint64_t *hash, struct err *e);

#endif
