/* A product by one of the two kernels that batch_invariant has for many rows, for the test that
 * they are bit-identical (planted_product.cu). */
#ifndef PLANTED_PRODUCT_H
#define PLANTED_PRODUCT_H

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif
struct planted_product {
    float *y;
    const void *x, *w; /* bf16 */
    const float *bias, *residual;
    int64_t t, n, k;
    int slice; /* steps of 32 k */
    int apart; /* 1: slices are added afterwards */
};
void planted_by_mma(const struct kctx *c, const struct planted_product *o);
void planted_by_wgmma(const struct kctx *c, const struct planted_product *o);
void cuda_about_again(void);
extern int shim_processors;
extern int shim_fails_in, shim_fails_with, shim_failed;
void shim_mend(void);
extern int mma_host_eager, mma_host_cuts, wgmma_host_fault;
#ifdef __cplusplus
}
#endif

#endif
