/* Digests of the weights (kernels.h, op_digest), computed where the weights lie: nothing is copied to the host but the digests. */
#ifndef TARE_CORE_MODEL_PROOF_H
#define TARE_CORE_MODEL_PROOF_H

#include "model/model.h"

/* Proof of a refresh on several ranks: every rank has the weights that their owners trained, and the same compute copy of them. begin: the digests of
 * all pieces as their owners hold them; unit: of those pieces as they are in this rank's whole unit u; copy: of the next part of the compute copy.
 * end waits for all of them and compares. Nothing on one rank. */
struct refresh_proof {
    uint64_t *digests; /* backend memory: own [L+2], pieces [L+2, R], the compute copy, the weights */
    uint64_t *owners;  /* [R, L+2] */
    int64_t copied;    /* words of the compute copy so far */
};
tare_status proof_refresh_begin(const struct model *m, struct refresh_proof *p, struct err *e);
void proof_refresh_unit(const struct model *m, struct refresh_proof *p, int64_t u, const float *whole);
void proof_refresh_copy(const struct model *m, struct refresh_proof *p, const void *copy, int64_t bytes);
/* *weights: model_hash of the refreshed weights; untouched on one rank. Frees the proof, after an error too. */
tare_status proof_refresh_end(const struct model *m, struct refresh_proof *p, uint64_t *weights, struct err *e);
void proof_refresh_free(const struct model *m, struct refresh_proof *p);

/* proof_refresh_begin: what proof_weights_kept compares with. */
uint64_t proof_refresh_own(const struct model *m, const struct refresh_proof *p);
/* Not collective. On several ranks: whether the weights that this rank holds are those that the last refresh left it. A bit that turned since would be
 * trained from, and with zero1 be gone afterwards. TARE_E_CORRUPT names the rank. */
tare_status proof_weights_kept(const struct model *m, struct err *e);
/* The fault `weights` of base/fault.h, at the beginning of an update; and `gathered`, of unit u as it has arrived. */
tare_status proof_weights_fault(const struct model *m, struct err *e);
tare_status proof_gathered_fault(const struct model *m, int64_t u, const float *whole, struct err *e);

/* Of the whole weights, the same for every number of ranks; m must be whole on this rank. */
tare_status proof_digest(const struct model *m, uint64_t *out, struct err *e);

#endif
