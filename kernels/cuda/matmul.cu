/* The products of the table. Packed weights are W itself, [N,K], in the precision of the
 * computation. The choice of kernel depends only on the product's shape. */
#include "matmul.h"

#include "convert.h"
#include "sizes.h"

int64_t cuda_packed_bytes(int64_t n, int64_t k, enum dtype dtype)
{
    return gpu_packed_bytes(n, k, dtype);
}

void cuda_pack(const struct kctx *c, const struct op_pack *o)
{
    CUDA_OP(c, "pack", "n k", o->n, o->k);
    if (o->dtype == DTYPE_BF16)
        to_bf16(c, static_cast<__nv_bfloat16 *>(o->packed), o->w, o->n * o->k);
    else if (o->n * o->k > 0)
        CUDA_TRY(c,
                 cudaMemcpyAsync(o->packed, o->w, (size_t)(o->n * o->k) * sizeof *o->w, cudaMemcpyDeviceToDevice, cuda_stream(c)));
}

/* The shim has no cuBLASLt and uses the kernels of batch_invariant. */
#ifdef TARE_CUDA_SHIM
static bool has_lt(const struct kctx *)
{
    return false;
}
void matmul_lt(const struct kctx *, const lt_product &) {}
#else
static bool has_lt(const struct kctx *)
{
    return true;
}
#endif

/* Stored rows, n elements. */
struct rows {
    const void *at;
    int64_t n;
    enum dtype dtype;
};

static int64_t copy_bytes(const rows &r)
{
    return r.dtype == DTYPE_BF16 ? 0 : (2 * r.n + 255) / 256 * 256;
}

/* Return r in bf16: r itself, or a copy in scratch memory at `at`, which then advances past it. */
static const void *round_rows(const struct kctx *c, unsigned char **at, const rows &r)
{
    __nv_bfloat16 *to = reinterpret_cast<__nv_bfloat16 *>(*at);
    if (r.dtype == DTYPE_BF16) return r.at;
    to_bf16(c, to, static_cast<const float *>(r.at), r.n);
    *at += copy_bytes(r);
    return to;
}

static unsigned char *round_scratch(const struct kctx *c, const rows &a, const rows &b)
{
    return static_cast<unsigned char *>(cuda_scratch(c, copy_bytes(a) + copy_bytes(b)));
}

/* ---- y = x W^T */

static __device__ float odd_value(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

static __device__ float odd_value(float x)
{
    return odd_value(__float2bfloat16_rn(x));
}

/* For bf16 weights that the bf16 kernels do not support, because K is not a multiple of 8. Tiny
 * models only. */
template <typename X> static __global__ void product_odd(const product p)
{
    const int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y;
    if (n >= p.n) return;
    const X *x = static_cast<const X *>(p.x) + t * p.k;
    const __nv_bfloat16 *w = static_cast<const __nv_bfloat16 *>(p.w) + n * p.k;
    float acc = 0;
    for (int64_t k = 0; k < p.k; k++) acc = fmaf(odd_value(x[k]), __bfloat162float(w[k]), acc);
    if (p.bias) acc += p.bias[n];
    if (p.residual) acc += p.residual[t * p.ldy + n];
    p.y[t * p.ldy + n] = acc;
}

template <typename X> static void matmul_odd(const struct kctx *c, const product &p)
{
    for (int64_t t = 0; t < p.t; t += 65535) { /* the maximum height of a grid */
        product q = p;
        q.t = p.t - t < 65535 ? p.t - t : 65535;
        q.x = static_cast<const X *>(p.x) + t * p.k, q.y = p.y + t * p.ldy;
        if (p.residual) q.residual = p.residual + t * p.ldy;
        CUDA_LAUNCH(c, product_odd<X>, dim3(cuda_blocks(p.n, 128), (unsigned)q.t), 128, 0, q);
    }
}

/* True if every weight is to be read once and the result is batch-invariant (kernels.h). */
static bool uses_stream(const struct kctx *c, const product &p)
{
    return !c->batch_invariant && matmul_stream_fits(p.t, p.k);
}

/* Fused after a product: a gate of its result, or a norm computed together with the sum of its
 * slices. */
struct product_end {
    const product_gate *gate;
    const product_norm *norm;
};

/* Returns true if the norm was computed. */
static bool matmul_few(const struct kctx *c, product p, enum dtype x_dtype, product_end end)
{
    /* x fits in the L1 cache in fp32 */
    const bool as_it_is = x_dtype == DTYPE_F32 && p.k <= 4096 && p.t <= 16;
    const rows x = {p.x, p.t * p.k, x_dtype};
    const int slices = end.gate ? 1 : stream_cut_of(p).slices;
    const int64_t parts = slices > 1 ? slices * p.t * p.n * (int64_t)sizeof(float) : 0,
                  bytes = (as_it_is ? 0 : copy_bytes(x)) + parts;
    unsigned char *at = bytes ? static_cast<unsigned char *>(cuda_scratch(c, bytes)) : nullptr;
    if (bytes && !at) return false;
    if (!as_it_is) p.x = round_rows(c, &at, x);
    matmul_stream(c, p, !as_it_is, end.gate, parts ? reinterpret_cast<float *>(at) : nullptr);
    if (!parts) return false;
    matmul_add(c, p, reinterpret_cast<const float *>(at), slices, end.norm);
    return end.norm;
}

static bool matmul_bf16(const struct kctx *c, product p, enum dtype x_dtype, const product_norm *norm)
{
    const rows x = {p.x, p.t * p.k, x_dtype};
    if (uses_stream(c, p)) return matmul_few(c, p, x_dtype, product_end{nullptr, norm});
    if (p.k % 8 || p.k <= 0) {
        if (x_dtype == DTYPE_BF16)
            matmul_odd<__nv_bfloat16>(c, p);
        else
            matmul_odd<float>(c, p);
        return false;
    }
    const bool chain = c->batch_invariant || !has_lt(c);
    const int64_t bytes = copy_bytes(x) + (chain ? matmul_chain_bytes(p) : 0);
    unsigned char *at = bytes ? static_cast<unsigned char *>(cuda_scratch(c, bytes)) : nullptr;
    if (bytes && !at) return false;
    p.x = round_rows(c, &at, x);
    if (chain) return matmul_chain(c, p, at, norm);
    matmul_lt(c, lt_product{p.y, p.w, p.x, p.bias, p.residual, p.n, p.t, p.k, p.k, p.k, p.ldy, p.ldy, 1, 0, DTYPE_BF16});
    return false;
}

void cuda_matmul(const struct kctx *c, const struct op_matmul *o)
{
    CUDA_OP(c, "matmul", "t n k", o->t, o->n, o->k);
    if (o->t <= 0 || o->n <= 0) return;
    if (o->dtype == DTYPE_BF16)
        matmul_bf16(c, product{o->y, o->x, o->packed, o->bias, o->residual, o->n, o->t, o->n, o->k}, o->x_dtype, nullptr);
    else if (c->batch_invariant || !has_lt(c) || o->k <= 0)
        matmul_plain(c, plain_product{o->y, o->x, o->packed, o->bias, o->residual, o->t, o->n, o->k, o->k, 1, 1, o->k, o->n, 0, 0,
                                      o->x_dtype, DTYPE_F32});
    else
        matmul_lt(
            c, lt_product{o->y, o->packed, o->x, o->bias, o->residual, o->n, o->t, o->k, o->k, o->k, o->n, o->n, 1, 0, DTYPE_F32});
}

void cuda_matmul_swiglu(const struct kctx *c, const struct op_matmul *o, const struct op_swiglu *act)
{
    const product p = {o->y, o->x, o->packed, nullptr, nullptr, o->n, o->t, o->n, o->k};
    const product_gate gate = {act->act, act->f, act->gelu, act->act_dtype, act->dtype == DTYPE_BF16};
    if (o->dtype != DTYPE_BF16 || o->bias || !uses_stream(c, p)) {
        cuda_matmul(c, o);
        cuda_swiglu(c, act);
        return;
    }
    CUDA_OP(c, "matmul_swiglu", "t n k", o->t, o->n, o->k);
    if (o->t > 0 && act->f > 0) matmul_few(c, p, o->x_dtype, product_end{&gate, nullptr});
}

void cuda_matmul_rmsnorm(const struct kctx *c, const struct op_matmul *o, const struct op_rmsnorm *then)
{
    const product_norm norm = {then->y, then->w, then->rms, then->eps, then->y_dtype};
    if (o->dtype != DTYPE_BF16 || o->t <= 0 || !matmul_add_norms(o->n)) {
        cuda_matmul(c, o);
        cuda_rmsnorm(c, then);
        return;
    }
    CUDA_OP(c, "matmul_rmsnorm", "t n k", o->t, o->n, o->k);
    if (!matmul_bf16(c, product{o->y, o->x, o->packed, o->bias, o->residual, o->n, o->t, o->n, o->k}, o->x_dtype, &norm))
        cuda_rmsnorm(c, then);
}

/* ---- gradients */

/* The last operation's dy in bf16, at the start of the scratch memory: in the backward pass, dx
 * follows dw of the same product. */
static struct last_dy {
    const void *dy, *at;
    int64_t n;
    uint64_t operation;
} last;

static const void *rounded_dy(const struct kctx *c, unsigned char **at, const rows &dy)
{
    if (dy.dtype == DTYPE_BF16) return dy.at;
    const bool there = last.dy == dy.at && last.n == dy.n && last.at == *at && last.operation + 1 == cuda_operation();
    const void *to = *at;
    last = last_dy{dy.at, to, dy.n, cuda_operation()};
    if (!there) return round_rows(c, at, dy);
    *at += copy_bytes(dy);
    return to;
}

void cuda_matmul_dx(const struct kctx *c, const struct op_matmul_dx *o)
{
    CUDA_OP(c, "matmul_dx", "t n k", o->t, o->n, o->k);
    if (o->t <= 0 || o->k <= 0) return;
    const int round = o->dtype == DTYPE_BF16;
    if (!has_lt(c) || o->n <= 0) {
        matmul_plain(c, plain_product{o->dx, o->dy, o->packed, nullptr, nullptr, o->t, o->k, o->n, o->n, 1, o->k, 1, o->k, 0, round,
                                      o->dy_dtype, o->dtype});
        return;
    }
    const void *b = o->dy;
    if (round) {
        const rows dy = {o->dy, o->t * o->n, o->dy_dtype}, none = {nullptr, 0, DTYPE_BF16};
        unsigned char *at = copy_bytes(dy) ? round_scratch(c, dy, none) : nullptr;
        if (copy_bytes(dy) && !at) return;
        b = rounded_dy(c, &at, dy);
    }
    matmul_lt(c, lt_product{o->dx, o->packed, b, nullptr, nullptr, o->k, o->t, o->n, o->k, o->n, o->k, o->k, 0, 0, o->dtype});
}

/* dbias[n] += sum_t dy[t, n]: a block takes 32 columns, each warp every 8th row in order; then the
 * warps' sums are added in order. */
static __global__ void product_dbias(float *dbias, const float *dy, int64_t t, int64_t n)
{
    __shared__ float sums[8][32];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int64_t column = (int64_t)blockIdx.x * 32 + lane;
    float sum = 0;
    for (int64_t i = warp; i < t && column < n; i += 8) sum += dy[i * n + column];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp || column >= n) return;
    for (int i = 1; i < 8; i++) sum += sums[i][lane];
    dbias[column] += sum;
}

/* apart: the product's sums begin at 0, and dw is added at the end. The library always does so: dw
 * is its C, with beta = 1. */
static void dw_product(const struct kctx *c, const struct op_matmul_dw *o, bool apart)
{
    CUDA_OP(c, "matmul_dw", "t n k", o->t, o->n, o->k);
    if (o->t <= 0) return;
    const int round = o->dtype == DTYPE_BF16;
    if (o->dbias && o->n > 0)
        CUDA_LAUNCH(c, product_dbias, cuda_blocks(o->n, 32), 256, 0, o->dbias, static_cast<const float *>(o->dy), o->t, o->n);
    if (o->n <= 0 || o->k <= 0) return;
    if (!has_lt(c)) {
        matmul_plain(c, plain_product{o->dw, o->dy, o->x, nullptr, apart ? o->dw : nullptr, o->n, o->k, o->t, 1, o->n, o->k, 1,
                                      o->k, !apart, round, o->dy_dtype, o->x_dtype});
        return;
    }
    const void *a = o->x, *b = o->dy;
    const rows x = {o->x, o->t * o->k, o->x_dtype}, dy = {o->dy, o->t * o->n, o->dy_dtype};
    if (round && copy_bytes(x) + copy_bytes(dy)) {
        unsigned char *at = round_scratch(c, dy, x);
        if (!at) return;
        b = rounded_dy(c, &at, dy);
        a = round_rows(c, &at, x);
    }
    matmul_lt(c, lt_product{o->dw, a, b, nullptr, o->dw, o->k, o->n, o->t, o->k, o->n, o->k, o->k, 0, 1, o->dtype});
}

void cuda_matmul_dw(const struct kctx *c, const struct op_matmul_dw *o)
{
    dw_product(c, o, false);
}

void cuda_matmul_dw_apart(const struct kctx *c, const struct op_matmul_dw *o)
{
    dw_product(c, o, true);
}
