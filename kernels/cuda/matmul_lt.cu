/* Products by cuBLASLt: bf16 factors with fp32 sums, or fp32 throughout (no TF32). Bias and
 * residual go through the epilogue and C.
 *
 * Deterministic: the algorithm is the first of the heuristic for the shape, which the library
 * computes from the shape and the device alone, never from a timing; split sums go through the
 * workspace in a fixed order (no reduction in place). The heuristic is queried once per shape. */
#ifndef TARE_CUDA_SHIM
#include "matmul.h"

#include <cublasLt.h>
#include <map>
#include <stdio.h>
#include <tuple>

enum { WORKSPACE = 64 << 20, PLANS_MOST = 1024 };

/* The parameters on which the algorithm depends: rows, columns and inner index of D;
 * transpositions, bias, residual and accumulation; type; strides; alignment of addresses. */
typedef std::tuple<int64_t, int64_t, int64_t, int, int64_t, int64_t, int64_t, int64_t, uint32_t> lt_key;

struct lt_plan {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c, d;
    cublasLtMatmulAlgo_t algo;
    bool bias_apart; /* no algorithm adds the bias, so a separate kernel does */
};

static struct lt_state {
    cublasLtHandle_t handle;
    void *workspace;
    std::map<lt_key, lt_plan> plans;
} lt;

static bool lt_try(const struct kctx *c, cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS) return true;
    char why[200];
    snprintf(why, sizeof why, "%s (%s)", cublasLtGetStatusString(status), cublasLtGetStatusName(status));
    cuda_failed(c, status == CUBLAS_STATUS_ALLOC_FAILED ? TARE_E_NOMEM : TARE_E_DEVICE, what, why);
    return false;
}
#define LT_TRY(C, CALL) lt_try((C), (CALL), #CALL)

static bool lt_open(const struct kctx *c)
{
    if (lt.handle) return true;
    if (!lt.workspace && !(lt.workspace = cuda_take(c, WORKSPACE, "the workspace of cuBLASLt"))) return false;
    return LT_TRY(c, cublasLtCreate(&lt.handle));
}

static bool make_layout(const struct kctx *c, cublasLtMatrixLayout_t *out, enum dtype dtype, int64_t rows, int64_t cols, int64_t ld)
{
    const cudaDataType_t type = dtype == DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
    return LT_TRY(c, cublasLtMatrixLayoutCreate(out, type, (uint64_t)rows, (uint64_t)cols, ld));
}

template <typename T>
static bool set_attribute(const struct kctx *c, cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, T value)
{
    return LT_TRY(c, cublasLtMatmulDescSetAttribute(d, what, &value, sizeof value));
}

static bool describe_product(const struct kctx *c, const lt_product &p, lt_plan *plan)
{
    const cublasOperation_t a = p.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, b = p.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t epilogue = p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    /* Pedantic for fp32: no kernel that rounds factors to TF32, regardless of the environment. */
    const cublasComputeType_t compute = p.dtype == DTYPE_BF16 ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_PEDANTIC;
    return LT_TRY(c, cublasLtMatmulDescCreate(&plan->product, compute, CUDA_R_32F)) &&
           set_attribute(c, plan->product, CUBLASLT_MATMUL_DESC_TRANSA, a) &&
           set_attribute(c, plan->product, CUBLASLT_MATMUL_DESC_TRANSB, b) &&
           set_attribute(c, plan->product, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue) &&
           (!p.bias || set_attribute(c, plan->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias)) &&
           make_layout(c, &plan->a, p.dtype, p.trans_a ? p.inner : p.rows, p.trans_a ? p.rows : p.inner, p.lda) &&
           make_layout(c, &plan->b, p.dtype, p.trans_b ? p.cols : p.inner, p.trans_b ? p.inner : p.cols, p.ldb) &&
           make_layout(c, &plan->c, DTYPE_F32, p.rows, p.cols, p.residual ? p.ld_residual : p.ldd) &&
           make_layout(c, &plan->d, DTYPE_F32, p.rows, p.cols, p.ldd);
}

/* Alignment of an address, at most 16 bytes. Beyond that, a tensor's alignment may differ between a
 * run and its continuation, and a larger alignment could select another algorithm. NULL: 16. */
static uint32_t address_alignment(const void *p)
{
    const uintptr_t at = (uintptr_t)p;
    return at % 16 == 0 ? 16 : at % 8 == 0 ? 8 : at % 4 == 0 ? 4 : 2;
}

static uint32_t smaller_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

template <typename T>
static bool set_preference(const struct kctx *c, cublasLtMatmulPreference_t f, cublasLtMatmulPreferenceAttributes_t what, T value)
{
    return LT_TRY(c, cublasLtMatmulPreferenceSetAttribute(f, what, &value, sizeof value));
}

/* there: true if the library has an algorithm. */
static bool choose_algorithm(const struct kctx *c, const lt_product &p, lt_plan *plan, bool *there)
{
    cublasLtMatmulPreference_t f;
    cublasLtMatmulHeuristicResult_t found = {};
    int n = 0;
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    if (!LT_TRY(c, cublasLtMatmulPreferenceCreate(&f))) return false;
    const bool ok =
        set_preference(c, f, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, (uint64_t)WORKSPACE) &&
        set_preference(c, f, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions) &&
        set_preference(c, f, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, address_alignment(p.a)) &&
        set_preference(c, f, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, address_alignment(p.b)) &&
        set_preference(c, f, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, address_alignment(p.residual ? p.residual : p.d)) &&
        set_preference(c, f, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, address_alignment(p.d));
    if (ok) { /* "not supported" is an answer here, not a failure */
        const cublasStatus_t status =
            cublasLtMatmulAlgoGetHeuristic(lt.handle, plan->product, plan->a, plan->b, plan->c, plan->d, f, 1, &found, &n);
        *there = status == CUBLAS_STATUS_SUCCESS && n > 0 && found.state == CUBLAS_STATUS_SUCCESS;
    }
    cublasLtMatmulPreferenceDestroy(f);
    if (ok) plan->algo = found.algo;
    return ok;
}

static void destroy_plan(lt_plan *plan)
{
    if (plan->product) cublasLtMatmulDescDestroy(plan->product);
    if (plan->a) cublasLtMatrixLayoutDestroy(plan->a);
    if (plan->b) cublasLtMatrixLayoutDestroy(plan->b);
    if (plan->c) cublasLtMatrixLayoutDestroy(plan->c);
    if (plan->d) cublasLtMatrixLayoutDestroy(plan->d);
}

static lt_plan *plan_for(const struct kctx *c, const lt_product &p)
{
    const int kind = p.trans_a | p.trans_b << 1 | (p.bias != nullptr) << 2 | (p.residual != nullptr) << 3 |
                     (p.residual == p.d) << 4 | (int)p.dtype << 5;
    const uint32_t at = address_alignment(p.a) | address_alignment(p.b) << 5 |
                        smaller_of(address_alignment(p.d), address_alignment(p.residual)) << 10 | address_alignment(p.bias) << 15;
    const lt_key key(p.rows, p.cols, p.inner, kind, p.lda, p.ldb, p.ldd, p.ld_residual, at);
    const auto known = lt.plans.find(key);
    if (known != lt.plans.end()) return &known->second;
    /* micro-batches keep having new row counts; a repeated query gives the same answer */
    if (lt.plans.size() >= PLANS_MOST) {
        for (auto &old : lt.plans) destroy_plan(&old.second);
        lt.plans.clear();
    }
    lt_plan plan = {};
    bool there = false, ok = describe_product(c, p, &plan) && choose_algorithm(c, p, &plan, &there);
    if (ok && !there && p.bias) {
        lt_product without = p;
        without.bias = nullptr;
        destroy_plan(&plan);
        plan = lt_plan{};
        plan.bias_apart = true;
        ok = describe_product(c, without, &plan) && choose_algorithm(c, without, &plan, &there);
    }
    if (ok && !there) cuda_failed(c, TARE_E_UNSUPPORTED, "cublasLtMatmulAlgoGetHeuristic", "no algorithm for this shape");
    if (!ok || !there) {
        destroy_plan(&plan);
        return nullptr;
    }
    return &lt.plans.emplace(key, plan).first->second;
}

static __global__ void add_bias(float *y, const float *bias, int64_t n, int64_t t, int64_t ld)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n * t; i += (int64_t)gridDim.x * blockDim.x)
        y[i / n * ld + i % n] += bias[i % n];
}

void matmul_lt(const struct kctx *c, const lt_product &p)
{
    cuda_no_kernel();
    if (kernel_faulted(c) || p.rows <= 0 || p.cols <= 0 || !lt_open(c)) return;
    lt_plan *plan = plan_for(c, p);
    if (!plan) return;
    const float one = 1, beta = p.residual ? 1 : 0;
    const bool bias = p.bias && !plan->bias_apart;
    if (bias && !set_attribute(c, plan->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias)) return;
    LT_TRY(c, cublasLtMatmul(lt.handle, plan->product, &one, p.a, plan->a, p.b, plan->b, &beta, p.residual ? p.residual : p.d,
                             plan->c, p.d, plan->d, &plan->algo, lt.workspace, WORKSPACE, cuda_stream(c)));
    if (p.bias && !bias) CUDA_LAUNCH(c, add_bias, cuda_blocks(p.rows * p.cols, 256), 256, 0, p.d, p.bias, p.rows, p.cols, p.ldd);
}
#endif
