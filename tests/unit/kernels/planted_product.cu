#include "matmul.h"

#include "planted_product.h"

static product product_of(const planted_product *o)
{
    return product{o->y, o->x, o->w, o->bias, o->residual, o->n, o->t, o->n, o->k};
}

static chain_cut cut_of(const planted_product *o)
{
    return chain_cut{(int)((o->k + CHAIN_STEP - 1) / CHAIN_STEP), o->slice};
}

void planted_by_mma(const struct kctx *c, const planted_product *o)
{
    CUDA_OP(c, "planted product", "t n k", o->t, o->n, o->k);
    matmul_chain_many(c, product_of(o), cut_of(o));
}

void planted_by_wgmma(const struct kctx *c, const planted_product *o)
{
    CUDA_OP(c, "planted product", "t n k", o->t, o->n, o->k);
    const product p = product_of(o);
    if (!matmul_wgmma_fits(p) || !matmul_wgmma(c, p, cut_of(o), 0))
        cuda_failed(c, TARE_E_DEVICE, "wgmma", "the shape does not fit");
}
