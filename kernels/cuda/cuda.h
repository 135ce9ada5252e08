/* What the files of the CUDA backend share. One file a family of operations; the functions have the table's signatures and are named cuda_NAME;
 * table.cu fills the table. Compiled by nvcc, and, with TARE_CUDA_SHIM, for the host by a C++ compiler (shim/shim.h), where kernels without
 * tensor cores run as fibers in the tests.
 *
 *   void cuda_add(const struct kctx *c, float *y, const float *x, int64_t n)
 *   {
 *       CUDA_OP(c, "add", "n", n);
 *       if (n > 0) CUDA_LAUNCH(c, add_kernel, cuda_blocks(n, 256), 256, 0, y, x, n);
 *   }
 *
 * Numbers. Compiled with -fmad=false: a multiplication and an addition are fused only where fmaf stands, as on the CPU, so element-wise
 * operations have the reference's bits. A row's reduction runs in one block, thread i taking elements i, i + B, ..., then in a fixed tree: the
 * order depends on neither the number of rows nor their place. No atomics on floating point anywhere.
 *
 * Threads: one process a GPU; one host thread at a time uses a context. Everything is issued to one stream; results are there after finish. */
#ifndef TARE_KERNELS_CUDA_H
#define TARE_KERNELS_CUDA_H

#ifdef TARE_CUDA_SHIM
#include "shim/shim.h"
#else
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#endif

#include "fault.h"
#include "kernels.h"

#define EXACT_FUNCTION static __host__ __device__ inline
#include "exact.h"

/* ---- state.cu: the process's device, its stream, its working memory */

/* Begins an operation: false when the context has failed before. names: of the shapes, "t n k". Gives the working memory of the last one back. */
bool cuda_begin(const struct kctx *c, const char *op, const char *names, int n, const int64_t *shapes);
/* Records a failure of the current operation with its shapes. what: the call, NULL for a launch. */
void cuda_failed(const struct kctx *c, tare_status code, const char *what, const char *why);
/* After a launch. */
void cuda_launched(const struct kctx *c, const char *kernel);
bool cuda_try(const struct kctx *c, cudaError_t status, const char *what);
cudaStream_t cuda_stream(const struct kctx *c);
/* Device memory until the operation returns (and, in stream order, until the next one writes there); 256-byte aligned, not zeroed. NULL after a
 * failure. During a capture it cannot grow: cuda_scratch_reserve before it. */
void *cuda_scratch(const struct kctx *c, int64_t bytes);
bool cuda_scratch_reserve(const struct kctx *c, int64_t bytes);
/* A copy of host bytes on the device, at least until the operation returns; the host's may change at once. Not during a capture. NULL after a
 * failure. */
void *cuda_upload_args(const struct kctx *c, const void *host, int64_t bytes);
/* Device memory that an operation keeps, from the region where one is reserved; not zeroed. what: for the message when there is none (NULL then). Only
 * operations of one stream use it: given back, it may be handed out while they run. */
void *cuda_take(const struct kctx *c, int64_t bytes, const char *what);
void cuda_give(void *p);
/* Counts operations: the present one's number. */
uint64_t cuda_operation(void);
/* Multiprocessors of the device. */
int cuda_processors(void);

#define CUDA_OP(C, NAME, NAMES, ...)                                                                                               \
    const int64_t op_shapes_[] = {__VA_ARGS__};                                                                                    \
    if (!cuda_begin((C), (NAME), (NAMES), (int)(sizeof op_shapes_ / sizeof *op_shapes_), op_shapes_)) return
/* The same for an operation with a result. */
#define CUDA_OP_OR(C, RESULT, NAME, NAMES, ...)                                                                                    \
    const int64_t op_shapes_[] = {__VA_ARGS__};                                                                                    \
    if (!cuda_begin((C), (NAME), (NAMES), (int)(sizeof op_shapes_ / sizeof *op_shapes_), op_shapes_)) return (RESULT)
#define CUDA_TRY(C, CALL) cuda_try((C), (CALL), #CALL)

#ifndef TARE_CUDA_SHIM
#define CUDA_LAUNCH(C, KERNEL, GRID, BLOCK, SHARED, ...)                                                                           \
    do {                                                                                                                           \
        if (kernel_faulted(C)) break;                                                                                              \
        KERNEL<<<(GRID), (BLOCK), (size_t)(SHARED), cuda_stream(C)>>>(__VA_ARGS__);                                                \
        cuda_launched((C), #KERNEL);                                                                                               \
    } while (0)
/* Dynamic shared memory of a kernel. */
#define CUDA_SHARED(TYPE, NAME)                                                                                                    \
    extern __shared__ __align__(16) unsigned char cuda_dynamic_shared_[];                                                          \
    TYPE *NAME = reinterpret_cast<TYPE *>(cuda_dynamic_shared_)
#endif

/* Blocks that cover n items, `block` each. */
static inline unsigned cuda_blocks(int64_t n, int64_t block)
{
    return (unsigned)((n + block - 1) / block);
}

/* ---- operations, by file; signatures and definitions: kernels.h */
/* state.cu */
void *cuda_alloc(const struct kctx *c, int64_t bytes);
void cuda_release(const struct kctx *c, void *p);
void cuda_upload(const struct kctx *c, void *dst, const void *host, int64_t bytes);
void cuda_download(const struct kctx *c, void *host, const void *src, int64_t bytes);
void cuda_zero(const struct kctx *c, void *p, int64_t bytes);
int64_t cuda_memory(const struct kctx *c);
int cuda_reserve(const struct kctx *c, int64_t bytes);
void cuda_memory_use(const struct kctx *c, struct kernel_memory *out);
void *cuda_own_stream(const struct kctx *c);
void cuda_finish(const struct kctx *c);
/* matmul.cu */
int64_t cuda_packed_bytes(int64_t n, int64_t k, enum dtype dtype);
void cuda_pack(const struct kctx *c, void *packed, const float *w, int64_t n, int64_t k, enum dtype dtype);
void cuda_matmul(const struct kctx *c, float *y, int64_t ldy, const float *x, const void *packed, const float *bias,
                 const float *residual, int64_t t, int64_t n, int64_t k, enum dtype dtype);
void cuda_matmul_dx(const struct kctx *c, float *dx, const float *dy, const float *w, int64_t t, int64_t n, int64_t k,
                    int accumulate, enum dtype dtype);
void cuda_matmul_dx_packed(const struct kctx *c, float *dx, const float *dy, const void *packed, int64_t t, int64_t n, int64_t k,
                           int accumulate, enum dtype dtype);
void cuda_matmul_dw(const struct kctx *c, float *dw, float *dbias, const float *dy, const float *x, int64_t t, int64_t n, int64_t k,
                    enum dtype dtype);
/* rows.cu */
void cuda_embed(const struct kctx *c, float *x, const float *table, const int32_t *ids, int64_t t, int64_t width);
void cuda_embed_grad(const struct kctx *c, float *dtable, const float *dx, const int32_t *ids, int64_t t, int64_t width);
void cuda_add(const struct kctx *c, float *y, const float *x, int64_t n);
void cuda_gather_rows(const struct kctx *c, float *y, const float *x, const int64_t *rows, int64_t n, int64_t width);
void cuda_scatter_add_rows(const struct kctx *c, float *y, const float *x, const int64_t *rows, int64_t n, int64_t width);
/* norm.cu */
void cuda_rmsnorm(const struct kctx *c, float *y, int64_t ldy, float *rms, const float *x, int64_t ldx, const float *w, int64_t t,
                  int64_t heads, int64_t width, float eps);
void cuda_rmsnorm_grad(const struct kctx *c, float *dx, int64_t lddx, float *dw, const float *dy, int64_t lddy, const float *x,
                       int64_t ldx, const float *w, const float *rms, int64_t t, int64_t heads, int64_t width, int accumulate);
/* rope.cu */
void cuda_rope(const struct kctx *c, float *x, int64_t ld, const float *table, const int32_t *pos, int64_t t, int64_t n_heads,
               int64_t head_dim, int inverse);
/* kv.cu */
int64_t cuda_kv_bytes(struct attn_shape s, int64_t n_blocks);
void cuda_kv_write(const struct kctx *c, struct kv_layer kv, const float *qkv, struct attn_shape s, const int64_t *rows,
                   const int64_t *slots, int64_t n);
void cuda_kv_copy(const struct kctx *c, struct kv_layer kv, struct attn_shape s, const int32_t *to_block, const int32_t *from_block,
                  int64_t n);
/* attention.cu, attention_grad.cu */
void cuda_attention(const struct kctx *c, float *out, float *stats, const float *qkv, struct kv_layer kv, struct attn_shape s,
                    const struct attn_seq *seqs, int64_t n_seqs);
void cuda_attention_grad(const struct kctx *c, float *dqkv, const float *dout, const float *out, const float *stats,
                         const float *qkv, struct attn_shape s, const struct attn_seg *segs, int64_t n_segs, int64_t t);
/* swiglu.cu */
void cuda_swiglu(const struct kctx *c, float *act, const float *gu, int64_t t, int64_t f);
void cuda_swiglu_grad(const struct kctx *c, float *dgu, const float *dact, const float *gu, int64_t t, int64_t f);
/* head.cu */
void cuda_head_stats(const struct kctx *c, float *logprob, float *entropy, float *lse, const float *logits, int64_t ld,
                     const int32_t *target, float temperature, int64_t r, int64_t v);
void cuda_head_kl(const struct kctx *c, float *kl, const float *logits, const float *lse, const float *ref_logits,
                  const float *ref_lse, int64_t ld, float temperature, int64_t r, int64_t v);
void cuda_head_grad(const struct kctx *c, float *logits, int64_t ld, const int32_t *target, const float *lse, const float *entropy,
                    const float *ref_logits, const float *ref_lse, const float *kl, const struct head_grad_row *coef,
                    float temperature, int64_t r, int64_t v);
/* sample.cu */
void cuda_sample(const struct kctx *c, int32_t *token, float *logprob, float *entropy, const float *logits, int64_t ld,
                 const struct sample_row *rows, int64_t r, int64_t v);
/* optimizer.cu */
double cuda_sum_squares(const struct kctx *c, const float *x, int64_t n);
void cuda_block_squares(const struct kctx *c, double *out, const float *x, int64_t n, int64_t block);
void cuda_adamw(const struct kctx *c, float *p, const float *g, float *m, float *v, int64_t n, float grad_scale, float lr,
                float beta1, float beta2, float eps, float decay, double correct1, double correct2);

/* decode.cu */
struct decode *cuda_decode_open(const struct kctx *c);
void cuda_decode_close(const struct kctx *c, struct decode *d);
void cuda_decode_load(const struct kctx *c, struct decode *d, const struct decode_load *load, struct decode_places *places);
int cuda_decode_begin(const struct kctx *c, struct decode *d);
void cuda_decode_end(const struct kctx *c, struct decode *d);
void cuda_decode_read(const struct kctx *c, struct decode *d, int32_t *token, float *logprob, float *entropy);

/* The whole table; in the shim's build, kernels_shim. */
void cuda_table(struct kernels *k);

#endif
