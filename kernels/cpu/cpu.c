/* The SIMD backend in one translation unit, built once per instruction set: CPU_TABLE and CPU_NAME name the build, the compiler's
 * target flags choose the vectors (simd.h). Definitions of the operations: kernels.h and ref/. */
#include "kernels.h"
#include "kernels_cpu.h"
#include "scratch.h"
#include "simd.h"
#include "spans.h"

#include "../ref/memory.c"

#include "gemm.c"
#include "small.c"

#include "attention.c"
#include "attention_grad.c"
#include "elementwise.c"
#include "head.c"
#include "matmul.c"
#include "norm.c"
#include "optimizer.c"
#include "rope.c"
#include "sample.c"
#include "swiglu.c"

const struct kernels CPU_TABLE = {
    .name = CPU_NAME,
    .alloc = memory_alloc,
    .release = memory_release,
    .upload = memory_copy,
    .download = memory_copy,
    .zero = memory_zero,
    .packed_bytes = matmul_packed_bytes,
    .pack = matmul_pack,
    .matmul = matmul,
    .matmul_dx = matmul_dx,
    .matmul_dw = matmul_dw,
    .matmul_dw_apart = matmul_dw_apart,
    .embed = embed,
    .embed_grad = embed_grad,
    .rmsnorm = rmsnorm,
    .rmsnorm_grad = rmsnorm_grad,
    .rope = rope,
    .kv_write = kv_write,
    .kv_copy = kv_copy,
    .attention = attention,
    .attention_grad = attention_grad,
    .swiglu = swiglu,
    .swiglu_grad = swiglu_grad,
    .head_stats = head_stats,
    .head_kl = head_kl,
    .head_grad = head_grad,
    .sample = sample,
    .add = add,
    .gather_rows = gather_rows,
    .scatter_add_rows = scatter_add_rows,
    .sum_squares = sum_squares,
    .adamw = adamw,
};
