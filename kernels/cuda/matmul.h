/* The kernels for products, and when they are used (matmul.cu). W [N,K] and x [T,K] are row-major;
 * sums are fp32.
 *
 *   lt       cuBLASLt: training and prefill
 *   stream   few rows (decoding): every weight is read once, from memory to tensor cores
 *   chain    tensor cores, one order over K for every T: deterministic = batch_invariant
 *   wgmma    the same sums of many rows by Hopper's wgmma, if a check has found identical bits
 *   plain    fp32 without tensor cores, the chain that kernels_ops.h defines: bit-identical to ref
 *   add      adds the slices of K made by stream and chain */
#ifndef TARE_KERNELS_CUDA_MATMUL_H
#define TARE_KERNELS_CUDA_MATMUL_H

#include "mma.cuh"

/* y[T,N] = x W^T (+ bias) (+ residual); rows of y and residual are ldy floats apart. */
struct product {
    float *y;
    const void *x, *w; /* fp32 or bf16 */
    const float *bias, *residual;
    int64_t ldy, t, n, k;
};

/* C[m,n] = (continues: C +) sum_k A[m,k] B[k,n], elements at i * row + j * col; round: round the
 * factors to bf16 first. */
struct plain_product {
    float *c;
    const void *a, *b;
    const float *bias, *residual;
    int64_t m, n, k, a_row, a_col, b_row, b_col, c_row;
    int continues, round;
    enum dtype a_dtype;
    enum dtype b_dtype;
};
void matmul_plain(const struct kctx *c, const struct plain_product &p);

struct product_norm;

/* The slices into which K is split. Each is a separate chain over its steps of CHAIN_STEP k, in
 * order; the last step is padded with zeros. */
enum { CHAIN_STEP = 32 };
struct chain_cut {
    int steps, slice; /* steps in K; steps in a slice */
};
static inline int chain_slices(const struct chain_cut &cut)
{
    return cut.steps > 0 ? (cut.steps + cut.slice - 1) / cut.slice : 1;
}

/* x bf16, w bf16 packed; k is a multiple of 8. scratch: matmul_chain_bytes bytes of scratch
 * memory. */
int64_t matmul_chain_bytes(const struct product &p);
/* norm: NULL, or a norm to compute too if the result is a sum of slices. Returns true if it was
 * computed. */
bool matmul_chain(const struct kctx *c, const struct product &p, void *scratch, const struct product_norm *norm);
/* The kernel for many rows, usable with any number. parts: NULL or, with more than one slice,
 * memory for their sums [slices, T, N], which are written there instead of y (matmul_add). */
void matmul_chain_many(const struct kctx *c, const struct product &p, const struct chain_cut &cut, float *parts);

/* ---- matmul_wgmma.cu: the same sums for sm_90a */
/* True if a tensor map can hold the shapes and addresses, and results can be stored in pairs. */
bool matmul_wgmma_fits(const struct product &p);
/* parts: as above. blocks: maximum number of blocks; 0: one per multiprocessor. Returns false,
 * without a launch, if the driver could not create a tensor map. */
bool matmul_wgmma(const struct kctx *c, const struct product &p, const struct chain_cut &cut, float *parts, int blocks);
/* ---- matmul_wgmma_check.cu: returns true if this process uses wgmma; decided on first use */
bool matmul_wgmma_taken(const struct kctx *c);

/* Rows of W are f rows of a gate and then f rows of the gated values: act[T,f] replaces y, as in
 * swiglu (kernels_ops.h). No bias and no residual. */
struct product_gate {
    void *act;
    int64_t f;
    int gelu;
    enum dtype dtype; /* of act */
    int rounds;       /* 1: round gate and up to bf16 first */
};

/* w bf16 packed, t <= STREAM_ROWS, k a multiple of 64. gate: may be NULL. parts: memory for
 * [slices, T, N] if there is more than one slice, whose sums are written there instead of y;
 * otherwise not read. */
enum { STREAM_ROWS = 32 };
struct stream_cut {
    int slices, groups; /* slices of K; groups of 64 k in a slice */
};
bool matmul_stream_fits(int64_t t, int64_t k);
/* There is more than one slice if a product with a residual (attention's output, the MLP's) would
 * otherwise give fewer blocks than there are multiprocessors: there the norm's sum over the rows
 * follows anyway, and adds the slices on its way. The split depends on N and K alone. */
struct stream_cut stream_cut_of(const struct product &p);
void matmul_stream(const struct kctx *c, const struct product &p, bool x_is_bf16, const struct product_gate *gate, float *parts);

/* y = the sum of the slices, in order, + bias + residual; parts [slices, T, N]. norm: also compute
 * rmsnorm of y's rows, bit-identically; NULL: none. */
struct product_norm {
    void *y;
    const float *w;
    float *rms; /* or NULL */
    float eps;
    enum dtype dtype; /* of y */
};
bool matmul_add_norms(int64_t width); /* true if it supports the norm of rows of this width */
void matmul_add(const struct kctx *c, const struct product &p, const float *parts, int slices, const struct product_norm *norm);

/* ---- matmul_lt.cu (not in the shim's build). D[n,m] = A^T or A times B, column-major as in
 * cuBLASLt. */
struct lt_product {
    float *d;
    const void *a, *b;
    const float *bias, *residual; /* residual: same layout as d; NULL: none; d itself: accumulate */
    int64_t rows, cols, inner;    /* shape of D, column-major (rows are contiguous), and of the sum */
    int64_t lda, ldb, ldd, ld_residual;
    int trans_a, trans_b;
    enum dtype dtype; /* of a and b */
};
void matmul_lt(const struct kctx *c, const struct lt_product &p);

#endif
