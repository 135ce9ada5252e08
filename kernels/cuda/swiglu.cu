/* Gated MLP (definition: ref/swiglu.c). gu[t] = gate | up, F numbers each; silu(g) = g s(g), s(g) =
 * 1/(1 + e^-g).
 *
 *   act = silu(gate) up          dup = dact silu(gate)      dgate = dact up s (1 + gate (1 - s))
 *
 * For GELU, s(h) replaces s(g), where h = g (c + c3 g^2); in dgate, gate h' replaces gate, where h'
 * = c + 3 c3 g^2. */
#include "swiglu.cuh"

enum { SWIGLU_THREADS = 256, SWIGLU_COLUMNS = 4 * SWIGLU_THREADS };

/* A block handles SWIGLU_COLUMNS columns of a row. rounds: round gate and up to bf16 first. */
template <int GELU, typename A, typename G>
static __global__ void swiglu_kernel(A *__restrict__ act, __nv_bfloat16 *__restrict__ kept, const G *__restrict__ gu, int64_t f,
                                     unsigned parts, int rounds)
{
    const int64_t row = blockIdx.x / parts, begin = (int64_t)(blockIdx.x % parts) * SWIGLU_COLUMNS + threadIdx.x;
    const G *gate = gu + row * 2 * f, *up = gate + f;
    for (int64_t j = begin; j < f && j < begin + SWIGLU_COLUMNS; j += SWIGLU_THREADS) {
        const float g = rounded_if(rounds, row_load(gate + j)), u = rounded_if(rounds, row_load(up + j));
        if (kept) {
            row_store(kept + row * 2 * f + j, g);
            row_store(kept + row * 2 * f + f + j, u);
        }
        row_store(act + row * f + j, g * swiglu_gate<GELU>(g) * u);
    }
}

template <int GELU, typename D, typename G>
static __global__ void swiglu_grad_kernel(D *__restrict__ dgu, const float *__restrict__ dact, const G *__restrict__ gu, int64_t f,
                                          unsigned parts, int rounds)
{
    const int64_t row = blockIdx.x / parts, begin = (int64_t)(blockIdx.x % parts) * SWIGLU_COLUMNS + threadIdx.x;
    const G *gate = gu + row * 2 * f, *up = gate + f;
    D *dgate = dgu + row * 2 * f, *dup = dgate + f;
    for (int64_t j = begin; j < f && j < begin + SWIGLU_COLUMNS; j += SWIGLU_THREADS) {
        const float g = rounded_if(rounds, row_load(gate + j)), u = rounded_if(rounds, row_load(up + j)), d = dact[row * f + j],
                    s = swiglu_gate<GELU>(g);
        const float slope = GELU ? g * gelu_slope(g, 3 * GELU_C3) : g;
        row_store(dgate + j, d * u * (s * fmaf(slope, 1.0f - s, 1.0f)));
        row_store(dup + j, d * (g * s));
    }
}

template <typename A, typename G> static void swiglu_to(const struct kctx *c, const struct op_swiglu *o)
{
    const unsigned parts = cuda_blocks(o->f, SWIGLU_COLUMNS), blocks = (unsigned)o->t * parts;
    const int rounds = o->dtype == DTYPE_BF16;
    A *act = static_cast<A *>(o->act);
    __nv_bfloat16 *kept = static_cast<__nv_bfloat16 *>(o->kept);
    const G *gu = static_cast<const G *>(o->gu);
    if (o->gelu)
        CUDA_LAUNCH(c, (swiglu_kernel<1, A, G>), blocks, SWIGLU_THREADS, 0, act, kept, gu, o->f, parts, rounds);
    else
        CUDA_LAUNCH(c, (swiglu_kernel<0, A, G>), blocks, SWIGLU_THREADS, 0, act, kept, gu, o->f, parts, rounds);
}

template <typename A> static void swiglu_of(const struct kctx *c, const struct op_swiglu *o)
{
    if (o->gu_dtype == DTYPE_BF16)
        swiglu_to<A, __nv_bfloat16>(c, o);
    else
        swiglu_to<A, float>(c, o);
}

void cuda_swiglu(const struct kctx *c, const struct op_swiglu *o)
{
    CUDA_OP(c, "swiglu", "t f", o->t, o->f);
    if (o->t <= 0 || o->f <= 0) return;
    if (o->act_dtype == DTYPE_BF16)
        swiglu_of<__nv_bfloat16>(c, o);
    else
        swiglu_of<float>(c, o);
}

template <typename D, typename G> static void swiglu_grad_to(const struct kctx *c, const struct op_swiglu_grad *o)
{
    const unsigned parts = cuda_blocks(o->f, SWIGLU_COLUMNS), blocks = (unsigned)o->t * parts;
    const int rounds = o->dtype == DTYPE_BF16;
    D *dgu = static_cast<D *>(o->dgu);
    const G *gu = static_cast<const G *>(o->gu);
    if (o->gelu)
        CUDA_LAUNCH(c, (swiglu_grad_kernel<1, D, G>), blocks, SWIGLU_THREADS, 0, dgu, o->dact, gu, o->f, parts, rounds);
    else
        CUDA_LAUNCH(c, (swiglu_grad_kernel<0, D, G>), blocks, SWIGLU_THREADS, 0, dgu, o->dact, gu, o->f, parts, rounds);
}

template <typename D> static void swiglu_grad_of(const struct kctx *c, const struct op_swiglu_grad *o)
{
    if (o->gu_dtype == DTYPE_BF16)
        swiglu_grad_to<D, __nv_bfloat16>(c, o);
    else
        swiglu_grad_to<D, float>(c, o);
}

void cuda_swiglu_grad(const struct kctx *c, const struct op_swiglu_grad *o)
{
    CUDA_OP(c, "swiglu_grad", "t f", o->t, o->f);
    if (o->t <= 0 || o->f <= 0) return;
    if (o->dgu_dtype == DTYPE_BF16)
        swiglu_grad_of<__nv_bfloat16>(c, o);
    else
        swiglu_grad_of<float>(c, o);
}
