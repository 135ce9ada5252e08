/* The kernels of the products, by who chooses them (matmul.cu). W [N,K], x [T,K] row-major; sums in fp32.
 *
 *   lt       cuBLASLt: training and prefill
 *   stream   few rows (decoding): every weight is read once, from memory to tensor cores
 *   chain    tensor cores, one order over K whatever T is: deterministic = batch_invariant
 *   wgmma    the same sums of many rows by Hopper's wgmma, where a check has found the same bits
 *   plain    fp32 without tensor cores, the chain that kernels.h defines: ref's bits
 *   add      the sum of what stream and chain have cut K into
 */
#ifndef TARE_KERNELS_CUDA_MATMUL_H
#define TARE_KERNELS_CUDA_MATMUL_H

#include "mma.cuh"

/* y[T,N] = x W^T (+ bias) (+ residual); ldy floats a row of y and residual. */
struct product {
    float *y;
    const void *x, *w; /* fp32 or bf16 */
    const float *bias, *residual;
    int64_t ldy, t, n, k;
};

/* C[m,n] = (continues: C +) sum_k A[m,k] B[k,n], elements at i * row + j * col; round: factors to bf16 first. */
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

/* What K is cut into: each slice a chain of its own over its steps of CHAIN_STEP k, in order, the last step filled up with zeros. */
enum { CHAIN_STEP = 32 };
struct chain_cut {
    int steps, slice; /* of K; of a slice */
};
static inline int chain_slices(const struct chain_cut &cut)
{
    return cut.steps > 0 ? (cut.steps + cut.slice - 1) / cut.slice : 1;
}

/* x bf16, w bf16 packed; k a multiple of 8. room: matmul_chain_bytes bytes of working memory. */
int64_t matmul_chain_bytes(const struct product &p);
/* norm: NULL, or to be done too where the sum is one of slices. True: it was. */
bool matmul_chain(const struct kctx *c, const struct product &p, void *room, const struct product_norm *norm);
/* The kernel of many rows, for any number of them. parts: NULL; or, of more than one slice, room for their sums [slices, T, N], which it gets in the place of y
 * (matmul_add). */
void matmul_chain_many(const struct kctx *c, const struct product &p, const struct chain_cut &cut, float *parts);

/* ---- matmul_wgmma.cu: the same sums for sm_90a */
/* Whether shapes and addresses are such that a tensor map can hold them, and its results be stored in pairs. */
bool matmul_wgmma_fits(const struct product &p);
/* parts: as above. blocks: at most so many; 0: one for each multiprocessor. False: the driver made no tensor map, and nothing was launched. */
bool matmul_wgmma(const struct kctx *c, const struct product &p, const struct chain_cut &cut, float *parts, int blocks);
/* ---- matmul_wgmma_check.cu: whether this process takes it, decided at the first time */
bool matmul_wgmma_taken(const struct kctx *c);

/* Rows of W are f of a gate and then f of what it gates: act[T,f] in the place of y, as swiglu has it (kernels.h). Without bias and residual. */
struct product_gate {
    void *act;
    int64_t f;
    int gelu;
    enum dtype dtype; /* of act */
    int rounds;       /* gate and up to bf16 first */
};

/* w bf16 packed, t <= STREAM_ROWS, k a multiple of 64. gate: NULL: none. parts: room for [slices, T, N] where there is more than one slice, whose sums it
 * gets in the place of y; else not read. */
enum { STREAM_ROWS = 32 };
struct stream_cut {
    int slices, pieces; /* of K; of 64 k in a slice */
};
bool matmul_stream_fits(int64_t t, int64_t k);
/* More than one slice where a product with a residual (attention's output, the MLP's) would give fewer blocks than there are multiprocessors: a sum over
 * the rows follows there anyway, the norm's, and adds the slices on its way. By N and K alone. */
struct stream_cut stream_cut_of(const struct product &p);
void matmul_stream(const struct kctx *c, const struct product &p, bool x_is_bf16, const struct product_gate *gate, float *parts);

/* y = the slices' sums, in order, + bias + residual; parts [slices, T, N]. norm: rmsnorm of y's rows besides, with its bits; NULL: none. */
struct product_norm {
    void *y;
    const float *w;
    float *rms; /* or NULL */
    float eps;
    enum dtype dtype; /* of y */
};
bool matmul_add_norms(int64_t width); /* whether it has the norm of rows that wide */
void matmul_add(const struct kctx *c, const struct product &p, const float *parts, int slices, const struct product_norm *norm);

/* ---- matmul_lt.cu (not in the shim's build). D[n,m] = A^T or A times B, column-major as cuBLASLt has it. */
struct lt_product {
    float *d;
    const void *a, *b;
    const float *bias, *residual; /* residual: [same as d], NULL: none, or d itself to accumulate */
    int64_t rows, cols, inner;    /* of D, column-major: rows run fastest */
    int64_t lda, ldb, ldd, ld_residual;
    int trans_a, trans_b;
    enum dtype dtype; /* of a and b */
};
void matmul_lt(const struct kctx *c, const struct lt_product &p);

#endif
