/* Operations that are not written yet: each says so. A file that defines one replaces it here (weak symbols). */
#include "cuda.h"

#define PENDING(C, NAME)                                                                                                           \
    CUDA_OP(C, NAME, "", 0);                                                                                                       \
    cuda_failed((C), TARE_E_UNSUPPORTED, NULL, "this operation is not written yet")
#define WEAK __attribute__((weak))

WEAK int64_t cuda_packed_bytes(int64_t, int64_t, enum dtype)
{
    return 0;
}
WEAK void cuda_pack(const struct kctx *c, void *, const float *, int64_t, int64_t, enum dtype)
{
    PENDING(c, "pack");
}
WEAK void cuda_matmul(const struct kctx *c, float *, int64_t, const float *, const void *, const float *, const float *, int64_t,
                      int64_t, int64_t, enum dtype)
{
    PENDING(c, "matmul");
}
WEAK void cuda_matmul_dx(const struct kctx *c, float *, const float *, const float *, int64_t, int64_t, int64_t, int, enum dtype)
{
    PENDING(c, "matmul_dx");
}
WEAK void cuda_matmul_dw(const struct kctx *c, float *, float *, const float *, const float *, int64_t, int64_t, int64_t,
                         enum dtype)
{
    PENDING(c, "matmul_dw");
}
WEAK void cuda_attention(const struct kctx *c, float *, float *, const float *, struct kv_layer, struct attn_shape,
                         const struct attn_seq *, int64_t)
{
    PENDING(c, "attention");
}
WEAK void cuda_attention_grad(const struct kctx *c, float *, const float *, const float *, const float *, const float *,
                              struct attn_shape, const struct attn_seg *, int64_t, int64_t)
{
    PENDING(c, "attention_grad");
}
