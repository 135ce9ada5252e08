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

/* Memory for the sums of slices that are added afterwards, filled with NaN; NULL otherwise. */
static float *parts_of(const struct kctx *c, const planted_product *o)
{
    const int64_t bytes = chain_slices(cut_of(o)) * o->t * o->n * (int64_t)sizeof(float);
    if (!o->apart || chain_slices(cut_of(o)) == 1) return nullptr;
    float *parts = static_cast<float *>(cuda_scratch(c, bytes));
    CUDA_TRY(c, cudaMemsetAsync(parts, 0xff, (size_t)bytes, cuda_stream(c)));
    return parts;
}

void planted_by_mma(const struct kctx *c, const planted_product *o)
{
    CUDA_OP(c, "planted product", "t n k", o->t, o->n, o->k);
    float *parts = parts_of(c, o);
    matmul_chain_many(c, product_of(o), cut_of(o), parts);
    if (parts) matmul_add(c, product_of(o), parts, chain_slices(cut_of(o)), nullptr);
}

void planted_by_wgmma(const struct kctx *c, const planted_product *o)
{
    CUDA_OP(c, "planted product", "t n k", o->t, o->n, o->k);
    const product p = product_of(o);
    float *parts = parts_of(c, o);
    if (!matmul_wgmma_fits(p) || !matmul_wgmma(c, p, cut_of(o), parts, 0))
        cuda_failed(c, TARE_E_DEVICE, "wgmma", "the shape does not fit");
    if (parts) matmul_add(c, p, parts, chain_slices(cut_of(o)), nullptr);
}
