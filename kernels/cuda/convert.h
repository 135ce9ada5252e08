/* fp32 to bf16, nearest even. */
#ifndef TARE_CUDA_CONVERT_H
#define TARE_CUDA_CONVERT_H

#include "mma.cuh"

void to_bf16(const struct kctx *c, __nv_bfloat16 *to, const float *from, int64_t n);

#endif
