/* Digests of the weights (kernels.h, op_digest), computed in the memory that holds the weights:
 * only the digests are copied to the host. */
#ifndef TARE_CORE_MODEL_PROOF_H
#define TARE_CORE_MODEL_PROOF_H

#include "model/model.h"

/* Proves on several ranks that every rank has the weights trained by their owners and the same
 * compute copy of them. begin computes the digests of all slices as their owners hold them; unit
 * those of the slices in this rank's gathered unit u; copy that of the next part of the compute
 * copy. end waits for all of them and compares. On one rank it does nothing. */
struct refresh_proof {
    uint64_t *digests; /* backend memory: own [L+2], slices [L+2, R], the compute copy, the weights */
    uint64_t *owners;  /* [R, L+2] */
    int64_t copied;    /* words of the compute copy so far */
};
tare_status proof_refresh_begin(const struct model *m, struct refresh_proof *p, struct err *e);
void proof_refresh_unit(const struct model *m, struct refresh_proof *p, int64_t u, const float *whole);
void proof_refresh_copy(const struct model *m, struct refresh_proof *p, const void *copy, int64_t bytes);
/* *weights: model_hash of the refreshed weights; unchanged on one rank. Frees the proof, also after
 * an error. */
tare_status proof_refresh_end(const struct model *m, struct refresh_proof *p, uint64_t *weights, struct err *e);
void proof_refresh_free(const struct model *m, struct refresh_proof *p);

/* Returns the hash that proof_weights_kept compares with, after proof_refresh_begin. */
uint64_t proof_refresh_own(const struct model *m, const struct refresh_proof *p);
/* Checks on several ranks that the weights held by this rank are those of the last refresh: a bit
 * flipped since then would be trained from, and with zero1 be lost afterwards. Not collective.
 * TARE_E_CORRUPT names the rank. */
tare_status proof_weights_kept(const struct model *m, struct err *e);
/* Inject the faults of base/fault.h: `weights` at the beginning of an update, and `gathered` into
 * unit u as it has arrived. */
tare_status proof_weights_fault(const struct model *m, struct err *e);
tare_status proof_gathered_fault(const struct model *m, int64_t u, const float *whole, struct err *e);

/* Computes the digest of the whole weights, equal for every number of ranks; m must be whole on
 * this rank. */
tare_status proof_digest(const struct model *m, uint64_t *out, struct err *e);

#endif
